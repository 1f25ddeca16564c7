// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// These functions read the state and the last survey for all parts: first about this node
// and its cluster, then about a member, then about votes, and last about the base of votes.

// founding reports whether no member has become up in the cluster yet.
func (c *core) founding() bool { return c.state.LastUpNumber() == 0 }

// unsettled tells whether the last change of voters is not known to be over. Until then
// the voters must not change again.
func (c *core) unsettled() bool { return c.surveyed.known != c.state.Config().Generation() }

// monitorsSome tells whether the cluster is so large that a node monitors only some of
// the voters.
func (c *core) monitorsSome() bool {
	k := c.cfg.FailureDetector.MonitoredByNrOfMembers
	return len(c.state.Members()) > k+1 && (c.cfg.Voters.Role == "" || len(c.potentialVoters()) > k)
}

// accusersMin is how many members must have a record about another so that all deny it
// their word: more than half of those that monitor it, and more than one, so that a single
// node that hears nothing takes the standing of nobody. Among so few members that all
// monitor each other, who is accused by so many has lost its majority anyhow.
func (c *core) accusersMin() int {
	return max(c.cfg.FailureDetector.MonitoredByNrOfMembers/2+1, 2)
}

// isAccusedByMany tells whether so many have a record about a node in the state that was
// surveyed last that this node denies it its word. It follows from the records alone, those
// of observers that are down included, so that who holds the same records says the same.
func (c *core) isAccusedByMany(n gossip.NodeID) bool {
	_, found := slices.BinarySearchFunc(c.surveyed.denied, n, gossip.NodeID.Compare)
	return found
}

// isMany tells whether so many voters are more than each node monitors.
func (c *core) isMany(voters int) bool {
	most := c.cfg.FailureDetector.MonitoredByNrOfMembers + 1
	if c.cfg.Voters.Role != "" {
		most-- // Who has no vote monitors all voters but not itself.
	}
	return voters > most
}

// hasManyVoters tells whether proofs are lent: each set of the base is larger than what
// one node monitors. Sides whose bases differ share a set. So if this node lends, all
// sides know of one set that is so large, see [fences].
func (c *core) hasManyVoters() bool {
	return hasVoters(c.surveyed.base) && !slices.ContainsFunc(c.surveyed.base, func(voters []gossip.NodeID) bool {
		return !c.isMany(len(voters))
	})
}

// living leaves out of what was heard those that are down: they count as lost votes.
func (c *core) living(heard map[gossip.NodeID]machine.Instant) func(gossip.NodeID) (machine.Instant, bool) {
	return func(n gossip.NodeID) (machine.Instant, bool) {
		at, ok := heard[n]
		return at, ok && c.lives(n)
	}
}

// lastOfAll is the latest moment since which all voters were heard, except those that are
// down or on their way out: [machine.Never] if there is none besides this node.
func (c *core) lastOfAll(heard func(gossip.NodeID) machine.Instant) machine.Instant {
	all := machine.Never
	for _, voters := range c.surveyed.base {
		for _, v := range voters {
			if member := c.state.Member(v); v != c.self && member != nil && member.Status < gossip.Exiting {
				all = min(all, heard(v))
			}
		}
	}
	return all
}

// trouble returns the unreachable members about which a decision is needed.
func (c *core) trouble() []gossip.NodeID {
	return slices.DeleteFunc(slices.Clone(c.surveyed.lost), func(n gossip.NodeID) bool {
		member := c.state.Member(n)
		return member == nil || n == c.self || !downing.CanBeDowned(member) || c.waits(n)
	})
}

// ownStatus is this node's status, or none.
func (c *core) ownStatus() gossip.Status {
	if me := c.state.Member(c.self); me != nil {
		return me.Status
	}
	return gossip.StatusNone
}

// ownRecord returns what this node recorded about another, or zero.
func (c *core) ownRecord(subject gossip.NodeID) gossip.ReachStatus {
	rows := c.state.RowsOf(c.self)
	i, found := slices.BinarySearchFunc(rows, subject, func(r gossip.Row, n gossip.NodeID) int { return r.Subject.Compare(n) })
	if !found {
		return 0
	}
	return rows[i].Status
}

// lives tells whether a node is a member that is not down.
func (c *core) lives(n gossip.NodeID) bool {
	member := c.state.Member(n)
	return member != nil && member.Status != gossip.Down
}

// isLost tells whether a node is unreachable by a member that counts, in the state that
// was surveyed last.
func (c *core) isLost(node gossip.NodeID) bool {
	_, lost := slices.BinarySearchFunc(c.surveyed.lost, node, gossip.NodeID.Compare)
	return lost
}

// waits tells whether an unreachable member is a newcomer that waits at the gate. It
// lives, since it has seen the state with all records about it. When it dies, a voter
// that reached it says so, or a voter that did not repeats its record; see [gate.renew].
func (c *core) waits(n gossip.NodeID) bool {
	return isNewcomer(c.state.Member(n)) && c.state.Seen(n) && !c.state.Reachable(n)
}

// isVoter tells whether a member votes.
func (c *core) isVoter(member *gossip.Member) bool {
	return votes(member) && c.cfg.Voters.admit(member)
}

// isEstablished tells whether this node's answers may give standing to a member: to a
// voter if it is a voter in every set of this node's base, to another member if all are
// known to have seen it up. Answers prove nothing to a joiner, or to a member that a
// leader has promoted unheard by the surviving members: these need not wait until it has
// heard which nodes are down, and the voters by which it would prove a majority are not
// those of this node.
func (c *core) isEstablished(member *gossip.Member) bool {
	if !c.cfg.Voters.admit(member) {
		return c.surveyed.established[member.Node]
	}
	return votesInAll(c.surveyed.base, member.Node)
}

// potentialVoters returns the members that vote, or may once they are up.
func (c *core) potentialVoters() []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, member := range c.state.Members() {
		if c.cfg.Voters.admit(member) && member.Status != gossip.Down {
			nodes = append(nodes, member.Node)
		}
	}
	return nodes
}

func hasVoters(base gossip.Base) bool {
	return slices.ContainsFunc(base, func(voters []gossip.NodeID) bool { return len(voters) > 0 })
}

// votesInAll tells whether a node is a voter in every set of a base. Without voters no
// node is.
func votesInAll(base gossip.Base, n gossip.NodeID) bool {
	return hasVoters(base) && !slices.ContainsFunc(base, func(voters []gossip.NodeID) bool {
		return len(voters) > 0 && !slices.Contains(voters, n)
	})
}

// votes tells whether the status of a member lets it vote.
func votes(member *gossip.Member) bool {
	return member.UpNumber != 0 && member.Status >= gossip.Up && member.Status <= gossip.Leaving
}

// sameBase compares two bases, which mostly share their voters.
func sameBase(a, b gossip.Base) bool {
	return slices.EqualFunc(a, b, func(x, y []gossip.NodeID) bool {
		return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0] || slices.Equal(x, y))
	})
}
