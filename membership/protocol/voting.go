// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Voters says who votes. The zero value is everybody.
type Voters struct {
	// Role is the role of the members that vote about who survives a partition.
	// Empty: every member votes. With a role, the others host, and join and leave,
	// by the answers of those who vote, and do not count for any majority: many
	// proxies at the edge do not outvote three backends. A cluster forms when the
	// first member with the role has joined, and ends with the last one. The same on
	// all nodes, and a node with another value is refused: to change it, all nodes
	// are stopped.
	Role string `koanf:"role"`
}

// Validate reports a role that no member can have.
func (v Voters) Validate() error {
	probe := gossip.Member{
		Node:   gossip.NodeID{Address: gossip.Address{Host: "localhost", Port: 1}, UID: 1}, // Any: the role is looked at.
		Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}
	if v.Role != "" {
		probe.Roles = []string{v.Role}
	}
	if err := probe.Validate(); err != nil {
		return fmt.Errorf("no member can have it: %w", err)
	}
	return nil
}

// admit tells whether a member is one of those that vote once they are up.
func (v Voters) admit(member *gossip.Member) bool { return member.HasRole(v.Role) }

// electorate is what a node knows of those who do not vote, which no set of voters says.
type electorate struct {
	// established are the members without a vote that were up in a state that all
	// had seen.
	established map[gossip.NodeID]bool

	said bool // That nobody votes.
}

// surveyEstablished takes over who is up in the state that was surveyed. Who goes
// is forgotten with it.
func (m *Machine) surveyEstablished() {
	if m.cfg.Voters.Role == "" || !m.links.seen {
		return
	}
	established := map[gossip.NodeID]bool{}
	for _, member := range m.state.Members() {
		if !m.cfg.Voters.admit(member) && member.UpNumber != 0 {
			established[member.Node] = true
		}
	}
	m.electorate.established = established
}

// isEstablished tells whether this node's answers may prove something to a member: to
// one that votes if it is a voter in every set of the base here, to one that does not if
// it is known that all have seen it up. A joiner, or one that a leader has promoted of
// which those who go on have not heard, proves nothing by them: these need not wait
// until it has heard who is down, and the sets of voters by which it would prove a
// majority are not those of this node.
func (m *Machine) isEstablished(member *gossip.Member) bool {
	if !m.cfg.Voters.admit(member) {
		return m.electorate.established[member.Node]
	}
	return votesInAll(m.footing.base, member.Node)
}

// isVoter tells whether a member votes.
func (m *Machine) isVoter(member *gossip.Member) bool {
	return votes(member) && m.cfg.Voters.admit(member)
}

// someoneVotes tells whether there are voters after a plan, or could be none for
// another reason than that nobody has the role.
func (m *Machine) someoneVotes(p *leaderPlan) bool {
	return !m.founding() && len(m.state.Config().Voters) > 0 || slices.ContainsFunc(p.up, m.cfg.Voters.admit)
}

// awaitVoter holds all newcomers back while nobody votes, and says what is missing.
func (m *Machine) awaitVoter(p *leaderPlan) {
	if m.someoneVotes(p) {
		return
	}
	p.up = nil
	if e := &m.electorate; !e.said && !slices.ContainsFunc(m.state.Members(), m.cfg.Voters.admit) {
		e.said = true
		m.out.Decide("leader", "newcomers", "joining", fmt.Sprintf("they stay joining: no member has the role %q, and so none votes", m.cfg.Voters.Role))
	}
}

// potentialVoters returns the members that vote, or may once they are up.
func (m *Machine) potentialVoters() []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, member := range m.state.Members() {
		if m.cfg.Voters.admit(member) && member.Status != gossip.Down {
			nodes = append(nodes, member.Node)
		}
	}
	return nodes
}
