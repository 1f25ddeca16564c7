// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// The types are the answer as JSON; below them the route builds it from the view of a
// node ([Members], [membersOf]).

// ClusterMembers is the cluster as one node sees it. Nodes are written as
// "host:port#uid".
type ClusterMembers struct {
	Self     string `json:"self"`     // The node that answers.
	Standing bool   `json:"standing"` // The node may act for the cluster at this moment.
	Leader   string `json:"leader,omitempty"`

	// Converged says that every member that counts has seen this state; Blockers says in
	// words which have not, or what else stands in the way.
	Converged bool   `json:"converged"`
	Blockers  string `json:"blockers,omitempty"`

	Cluster string `json:"cluster,omitempty"` // Birth and nonce of the cluster; none while the node is in no cluster.
	// Yielded is another cluster of this name that goes on in place of this one: the node
	// hosts nothing, ends shortly, and joins the other cluster when it is started again.
	Yielded string `json:"yielded,omitempty"`
	// Waiting says which voters the node waits for while it is in no cluster.
	Waiting *Waiting `json:"waiting,omitempty"`
	// RecordLost says that the node's record in its data directory could not be written
	// and was removed: after a restart the node has no vote on starting the cluster
	// again.
	RecordLost bool `json:"recordLost,omitempty"`

	Voters  []string `json:"voters"`  // Nodes whose votes count towards a majority.
	Members []Member `json:"members"` // Oldest first; members that were never up last.
}

// Member is one member of a cluster.
type Member struct {
	Node     string   `json:"node"`
	Status   string   `json:"status"`
	Age      int      `json:"age,omitempty"`      // 1 for the oldest member, 2 for the next; none before the member is up.
	UpNumber uint64   `json:"upNumber,omitempty"` // The number that the member got when it became up.
	Zone     string   `json:"zone,omitempty"`
	Roles    []string `json:"roles,omitempty"`
	Version  string   `json:"appVersion,omitempty"`
	Voter    bool     `json:"voter"`
	Seen     bool     `json:"seen"` // The member is known to have seen the state.

	// UnreachableFor are the members that cannot reach this one. Empty: it is reachable.
	UnreachableFor []string `json:"unreachableFor,omitempty"`

	// DownedBy is the node that declared the member down, and DownedWhy its reason.
	// Empty: the member is not down, or that node is of a release that does not say why.
	DownedBy  string `json:"downedBy,omitempty"`
	DownedWhy string `json:"downedWhy,omitempty"`
}

// Waiting says which voters a node waits for that is in no cluster yet.
type Waiting struct {
	Reason string `json:"reason"` // What is missing, in one sentence.
	Cure   string `json:"cure"`   // What an operator can do.
	// Remembered says that the voters are those of the newest cluster that some node
	// remembers; Found that they are contact points that the node has looked up. Otherwise
	// they are the listed seed nodes.
	Remembered bool          `json:"remembered"`
	Found      bool          `json:"found,omitempty"`
	Voters     []WaitedVoter `json:"voters"`
}

// WaitedVoter is a voter whose vote counts for founding a cluster.
type WaitedVoter struct {
	Node string `json:"node"` // The node as it was remembered; a listed seed node has no uid.
	// Answer is "silent", "in no cluster" (its vote counts), "lost its memory" (another
	// disk answers in its place), "has left", "in a cluster without a majority",
	// "not related to this node", or how and why it refuses this node.
	Answer string    `json:"answer"`
	Since  time.Time `json:"since"` // When the voter's answer last changed, by the clock of the node that answers.
}

// Members returns the route of the members, /v1/members.
func Members(node *membership.Node) []Route {
	return []Route{{Path: "/v1/members", Summary: "The members of the cluster, as the node sees it", Result: ClusterMembers{}, Answer: func(context.Context, Request) (any, error) {
		answer := membersOf(node.View(), node.Standing().Held())
		answer.Waiting, answer.RecordLost = waitingOf(node.Waiting()), node.RecordLost()
		return answer, nil
	}}}
}

// waitingOf describes the voters that a node waits for, nil if it does not wait.
func waitingOf(w *membership.Waiting) *Waiting {
	if w == nil {
		return nil
	}
	answer := &Waiting{Reason: w.Reason, Cure: w.Cure, Remembered: w.Remembered, Found: w.Found, Voters: []WaitedVoter{}}
	for _, v := range w.Voters {
		answer.Voters = append(answer.Voters, WaitedVoter{Node: voter(v), Answer: v.Answer, Since: v.Since})
	}
	return answer
}

// voter describes a voter that a node waits for.
func voter(v membership.WaitingVoter) string {
	if v.Node.UID == 0 {
		return v.Node.Address.String()
	}
	return v.Node.String()
}

// membersOf describes a view.
func membersOf(view membership.View, standing bool) ClusterMembers {
	state := view.State
	voters := state.Config().Voters
	answer := ClusterMembers{
		Self: view.Self.String(), Standing: standing, Converged: view.Converged,
		Voters: texts(voters), Members: []Member{},
	}
	if c := state.Cluster(); !c.IsZero() {
		answer.Cluster = c.String()
	}
	if c := state.Yielded(); !c.IsZero() {
		answer.Yielded = c.To.String()
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
		if !m.Downed.IsZero() {
			item.DownedBy, item.DownedWhy = m.Downed.By.String(), m.Downed.Why
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
