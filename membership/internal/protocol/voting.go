// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/gossip"
)

// Voters says which members vote. With the zero value all do.
type Voters struct {
	// Role is the role of the members that vote on which side survives a partition.
	// Empty: every member votes. With a role, members without it host, join and leave by
	// the answers of the voters, and count for no majority: many proxies at the edge do
	// not outvote three backends. A cluster forms when the first member with the role has
	// joined, and ends with the last one. All nodes must have the same role; a node with
	// another one is refused, so changing it means stopping all nodes.
	Role string `koanf:"role"`
}

// Validate reports a role that no member can have.
func (v Voters) Validate() error {
	probe := gossip.Member{
		Node:   gossip.NodeID{Address: gossip.Address{Host: "localhost", Port: 1}, UID: 1}, // Any node will do: only the role is checked.
		Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 1},
	}
	if v.Role != "" {
		probe.Roles = []string{v.Role}
	}
	if invalid, ok := errors.AsType[*gossip.InvalidError](probe.Validate()); ok {
		return &field.Error{Reason: "no member can have it, " + invalid.Detail, Err: invalid}
	}
	return nil
}

// admit tells whether a member votes once it is up.
func (v Voters) admit(member *gossip.Member) bool { return member.HasRole(v.Role) }

// someoneVotes tells whether there are voters after a plan, or would be none for another
// reason than that no member has the role.
func (l *leader) someoneVotes(p *leaderPlan) bool {
	return !l.founding() && len(l.state.Config().Voters) > 0 || slices.ContainsFunc(p.up, l.cfg.Voters.admit)
}

// awaitVoter holds all newcomers back while no member would vote, and says what is
// missing.
func (l *leader) awaitVoter(p *leaderPlan) {
	if l.someoneVotes(p) {
		return
	}
	p.up = nil
	if !l.saidNoVoter && !slices.ContainsFunc(l.state.Members(), l.cfg.Voters.admit) {
		l.saidNoVoter = true
		l.out.Decide("leader", "newcomers", "joining", fmt.Sprintf("they stay joining: no member has the role %q, and so none votes", l.cfg.Voters.Role))
	}
}
