// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// ClusterMembers is the cluster as one node sees it. Nodes are written as
// "host:port#uid".
type ClusterMembers struct {
	Self     string `json:"self"`     // The node that answers.
	Standing bool   `json:"standing"` // It may act for the cluster at this moment.
	Leader   string `json:"leader,omitempty"`

	// Converged says that everybody who counts has seen this state; Blockers in
	// words who has not, or stands in the way otherwise.
	Converged bool   `json:"converged"`
	Blockers  string `json:"blockers,omitempty"`

	Voters  []string `json:"voters"`  // Whose votes count towards a majority.
	Members []Member `json:"members"` // The oldest first, those not up yet last.
}

// Member is one member.
type Member struct {
	Node     string   `json:"node"`
	Status   string   `json:"status"`
	Age      int      `json:"age,omitempty"`      // 1 for the oldest member, 2 for the next; none before it is up.
	UpNumber uint64   `json:"upNumber,omitempty"` // The number that it got with being up.
	Zone     string   `json:"zone,omitempty"`
	Roles    []string `json:"roles,omitempty"`
	Version  string   `json:"appVersion,omitempty"`
	Voter    bool     `json:"voter"`
	Seen     bool     `json:"seen"` // It is known to have seen the state.

	// UnreachableFor are the members that cannot reach it. Empty: it is
	// reachable.
	UnreachableFor []string `json:"unreachableFor,omitempty"`
}

// Members returns the route of the members, /v1/members.
func Members(node *membership.Node) []Route {
	return []Route{{Path: "/v1/members", Answer: func(context.Context, Request) (any, error) {
		return membersOf(node.View(), node.Standing().Held()), nil
	}}}
}

// membersOf describes a view.
func membersOf(view membership.View, standing bool) ClusterMembers {
	state := view.State
	voters := state.Config().Voters
	answer := ClusterMembers{
		Self: view.Self.String(), Standing: standing, Converged: view.Converged,
		Voters: texts(voters), Members: []Member{},
	}
	if !view.Leader.IsZero() {
		answer.Leader = view.Leader.String()
	}
	if _, blockers := state.Convergence(view.Self, nil); !view.Converged {
		answer.Blockers = blockers.String()
	}
	members := slices.Clone(state.Members())
	slices.SortFunc(members, func(a, b *gossip.Member) int {
		switch {
		case a.OlderThan(b):
			return -1
		case b.OlderThan(a):
			return 1
		}
		return 0
	})
	for i, m := range members {
		item := Member{
			Node: m.Node.String(), Status: m.Status.String(), UpNumber: uint64(m.UpNumber), Zone: m.Zone, Roles: m.Roles, Version: m.AppVersion,
			Voter: slices.Contains(voters, m.Node), Seen: state.Seen(m.Node),
		}
		if m.UpNumber != 0 {
			item.Age = i + 1
		}
		if observers := state.Observers(m.Node); len(observers) > 0 {
			item.UnreachableFor = texts(observers)
		}
		answer.Members = append(answer.Members, item)
	}
	return answer
}

// texts returns the text forms of nodes.
func texts(nodes []gossip.NodeID) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.String()
	}
	return all
}
