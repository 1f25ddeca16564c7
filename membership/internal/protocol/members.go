// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
)

// These functions read the state and the last survey for all parts: first about this node
// and its cluster, then about a member, then about votes.

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
