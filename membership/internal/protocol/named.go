// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/gossip"
)

// Absent says that no member has the name that a command gave, and what became of it.
type Absent struct {
	// Named is what the command named, without a uid for whoever lives at the address.
	Named gossip.NodeID
	// Now is the member that lives at the address in its place, zero if there is none.
	Now gossip.NodeID
	// Removed is how the node was removed, or who was the last to be removed at the
	// address; zero if that is not known, or not any more.
	Removed gossip.Tombstone
}

// Find returns the member of a name: with a uid that incarnation alone, whoever else lives
// at its address; without one whoever lives there. If there is none, it returns what became
// of it.
func Find(s *gossip.State, named gossip.NodeID) (*gossip.Member, *Absent) {
	now := s.ByAddress(named.Address)
	if named.UID == 0 && now != nil {
		return now, nil
	}
	if m := s.Member(named); m != nil {
		return m, nil
	}
	absent := &Absent{Named: named}
	if now != nil {
		absent.Now = now.Node
	}
	for _, t := range s.Tombstones() {
		if t.Node == named {
			absent.Removed = t
			break
		}
		if t.Node.Address == named.Address && t.RemovedAt >= absent.Removed.RemovedAt {
			absent.Removed = t
		}
	}
	return nil, absent
}

// reason says for a refusal why no member is meant.
func (a *Absent) reason() string {
	switch {
	case a.Named.UID == 0:
		return "no member lives at this address"
	case !a.Now.IsZero():
		return "it is no member any more: " + a.Now.String() + " has its address"
	default:
		return "it is no member"
	}
}

// memberOfCommand finds the member that a command is about, nil if there is none: that is refused,
// and answered.
func (c *core) memberOfCommand(named gossip.NodeID, what string, id uint64) *gossip.Member {
	absent := &Absent{Named: named}
	if c.phase == phaseMember {
		var member *gossip.Member
		if member, absent = Find(c.state, named); member != nil {
			return member
		}
	}
	c.refuse(named, what, RefusedUnknown, absent.reason())
	c.answerCommand(CommandAnswered{ID: id, Absent: absent})
	return nil
}

// answerCommand answers a command, unless it asked for no answer.
func (c *core) answerCommand(a CommandAnswered) {
	if a.ID != 0 {
		c.out.Publish(a)
	}
}
