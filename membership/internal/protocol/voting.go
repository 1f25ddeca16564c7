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

// someoneVotes tells whether there are voters after a plan, or could be none for
// another reason than that nobody has the role.
func (l *leading) someoneVotes(p *leaderPlan) bool {
	return !l.founding() && len(l.state.Config().Voters) > 0 || slices.ContainsFunc(p.up, l.cfg.Voters.admit)
}

// awaitVoter holds all newcomers back while nobody votes, and says what is missing.
func (l *leading) awaitVoter(p *leaderPlan) {
	if l.someoneVotes(p) {
		return
	}
	p.up = nil
	if !l.saidNoVoter && !slices.ContainsFunc(l.state.Members(), l.cfg.Voters.admit) {
		l.saidNoVoter = true
		l.out.Decide("leader", "newcomers", "joining", fmt.Sprintf("they stay joining: no member has the role %q, and so none votes", l.cfg.Voters.Role))
	}
}
