// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// Why a cluster is as it is ([Why]), as one node sees it: a finding for each thing that people ask about, in the order
// in which they do: whether this node is in a cluster, whether all agree, who leads, who cannot be
// reached, who waits to be up. Decisions that the node remembers are added to the member that they are about.

// ClusterReasons says why a cluster is as it is.
type ClusterReasons struct {
	Self     string    `json:"self"` // The node that answers, from what it knows.
	Findings []Finding `json:"findings"`
}

// Finding is one thing that is so, and why.
type Finding struct {
	About   string   `json:"about"` // "cluster", "convergence", "leader", "shutdown" while there is one, or a member.
	Is      string   `json:"is"`    // What is so, in a few words.
	Because []string `json:"because"`
	Cure    string   `json:"cure,omitempty"` // What an operator can do, if it does not pass by itself.
	Trouble bool     `json:"trouble"`        // It is not as it should stay.
}

// Requirement says how many members the leader waits for before the first ones become up.
type Requirement struct {
	Members int            // membership.min-nr-of-members.
	OfRole  map[string]int // membership.min-nr-of-members-of-role.
}

// Why returns the route that says why the cluster is as it is, /v1/why. What the leader waits for is told as of the
// settings of this node, which are the same on all.
func Why(node *membership.Node, needed Requirement) []Route {
	return []Route{{
		Path: "/v1/why", Summary: "Why the cluster is as it is: agreement, leader, members that cannot be reached or wait", Result: ClusterReasons{},
		Answer: func(context.Context, Request) (any, error) {
			view := node.View()
			r := reasons{view: view, state: view.State, needed: needed, decisions: lastDecisions(node)}
			answer := ClusterReasons{Self: view.Self.String(), Findings: []Finding{r.membership(node)}}
			if view.Member() != nil {
				answer.Findings = append(answer.Findings, r.convergence(), r.leader())
				answer.Findings = append(answer.Findings, r.shutdown()...)
				answer.Findings = append(answer.Findings, r.members()...)
			}
			return answer, nil
		},
	}}
}

// reasons finds out why a view is as it is.
type reasons struct {
	view      membership.View
	state     *gossip.State
	needed    Requirement
	decisions map[string]membership.Decision // The last one of this node about each subject.
}

// membership says whether the node is in a cluster.
func (r reasons) membership(node *membership.Node) Finding {
	f := Finding{About: "cluster", Because: []string{}}
	switch why := outside(node); {
	case len(why) == 0:
		f.Is, f.Because = "this node takes part in it", append(f.Because, "it is up, and a majority of the voters answers it")
	default:
		f.Is, f.Because, f.Trouble = "this node does not take part in it", why, true
		if w := node.Waiting(); w != nil && r.view.Member() == nil {
			f.Cure = w.Cure
		}
		if b := node.Bootstrap(); b != nil && r.view.Member() == nil {
			f.Because = append(f.Because, b.Line)
		}
	}
	return f
}

// convergence says whether all that count have seen the state.
func (r reasons) convergence() Finding {
	f := Finding{About: "convergence", Is: "all agree", Because: []string{"every member that counts has seen the state of the cluster"}}
	if r.view.Converged {
		return f
	}
	_, blockers := r.state.Convergence(r.view.Self, nil)
	f.Is, f.Because, f.Trouble = "not all agree", []string{}, true
	if blockers.Unstamped {
		f.Because = append(f.Because, "changes of a member that was removed are being taken over by others, which passes by itself")
	}
	for _, n := range blockers.Unreachable {
		f.Because = append(f.Because, fmt.Sprintf("%v is unreachable for %s: agreement waits until it is reachable again, or is declared down", n, strings.Join(texts(r.state.Observers(n)), ", ")))
		f.Cure = "mend the network, or wait for the downing strategy; a member that is gone for good: quorate down"
	}
	for _, n := range blockers.Unseen {
		if !slices.Contains(blockers.Unreachable, n) {
			f.Because = append(f.Because, fmt.Sprintf("%v is not known to have seen the latest state, which takes some rounds of gossip after each change", n))
		}
	}
	if len(f.Because) == 0 {
		f.Because = append(f.Because, "the state has just changed, and is looked at anew")
	}
	return f
}

// leader says who leads, and why.
func (r reasons) leader() Finding {
	f := Finding{About: "leader", Because: []string{}}
	if r.view.Leader.IsZero() {
		f.Is, f.Trouble = "nobody leads", true
		f.Because = append(f.Because, "no member that this node can reach may lead")
		return f
	}
	f.Is = r.view.Leader.String() + " leads"
	rank := "that are up or leaving"
	if m := r.state.Member(r.view.Leader); m != nil && (m.Status < gossip.Up || m.Status > gossip.Leaving) {
		rank = "of which none is up or leaving, by their status"
	}
	f.Because = append(f.Because, "it is the first by address of the members that this node can reach, "+rank)
	for _, m := range r.state.Members() {
		if m.Node == r.view.Leader {
			break
		}
		switch {
		case !r.state.Reachable(m.Node):
			f.Because = append(f.Because, fmt.Sprintf("%v would come before it, and is unreachable", m.Node))
		case m.Status < gossip.Up || m.Status > gossip.Leaving:
			f.Because = append(f.Because, fmt.Sprintf("%v would come before it, and is %v", m.Node, m.Status))
		}
	}
	if !r.view.Converged {
		f.Because = append(f.Because, "while not all agree it changes no member's status but to down: each side of a partition has a leader of its own")
	}
	return f
}

// shutdown says how far a shutdown of the whole cluster is, and for whom it waits, if there is one.
func (r reasons) shutdown() []Finding {
	f := Finding{About: "shutdown", Because: []string{}}
	switch r.state.Shutdown() {
	case gossip.Preparing:
		f.Is = "the members prepare for a shutdown of the whole cluster"
		for _, m := range r.state.Members() {
			if m.Status != gossip.Preparing {
				f.Because = append(f.Because, fmt.Sprintf("%v is %v: they are ready when it prepares too, or is removed", m.Node, m.Status))
			}
		}
		if len(f.Because) == 0 {
			f.Because = append(f.Because, "they are ready when all agree, see convergence")
		}
	case gossip.Ready:
		f.Is = "all members are ready for a shutdown of the whole cluster"
		f.Because = append(f.Because, "it was asked for, and cannot be taken back; when one of them leaves, all do")
	default:
		return nil
	}
	return []Finding{f}
}

// members says of each member that is not simply up why that is so.
func (r reasons) members() []Finding {
	var all []Finding
	waits := r.waits() // The same for all.
	for _, m := range r.state.Members() {
		observers := r.state.Observers(m.Node)
		f := Finding{About: m.Node.String(), Is: m.Status.String(), Because: []string{}}
		if len(observers) > 0 {
			f.Is, f.Trouble = f.Is+", unreachable", true
			f.Because = append(f.Because, r.unreachable(m, observers)...)
		}
		switch m.Status {
		case gossip.Joining, gossip.WeaklyUp:
			f.Trouble = true
			f.Because = append(f.Because, waits...)
		case gossip.Leaving:
			f.Because = append(f.Because, "it hands over what it hosts, then says that it has")
		case gossip.Exiting:
			f.Because = append(f.Because, "it has handed over what it hosted, and is removed when all agree")
		case gossip.Down:
			f.Because = append(f.Because, fmt.Sprintf("declared down by %v: %s", m.Downed.By, m.Downed.Why), "it is removed when all others know that")
		case gossip.Preparing, gossip.Ready:
			f.Because = append(f.Because, "the whole cluster is being shut down")
		case gossip.StatusNone, gossip.Up, gossip.Removed:
			if len(observers) == 0 {
				continue
			}
		}
		if last := r.last(m.Node.String()); last != "" {
			f.Because = append(f.Because, last)
		}
		all = append(all, f)
	}
	return all
}

// unreachable says for whom a member is unreachable, and what comes of it.
func (r reasons) unreachable(m *gossip.Member, observers []gossip.NodeID) []string {
	var failed, ended []string
	for _, o := range observers {
		if slices.ContainsFunc(r.state.RowsOf(o), func(row gossip.Row) bool { return row.Subject == m.Node && row.Status == gossip.Terminated }) {
			ended = append(ended, o.String())
		} else {
			failed = append(failed, o.String())
		}
	}
	var why []string
	if len(failed) > 0 {
		why = append(why, "heartbeats of "+strings.Join(failed, ", ")+" are not answered in time")
	}
	if len(ended) > 0 {
		why = append(why, strings.Join(ended, ", ")+" has heard that it is to be counted on no more")
	}
	if m.Status <= gossip.Leaving {
		why = append(why, "the downing strategy "+r.state.Downing().Name+" decides about it when nothing has changed for downing.stable-after")
	}
	return why
}

// waits says for what a member waits that is not up.
func (r reasons) waits() []string {
	if !r.view.Converged {
		return []string{"it becomes up when all agree, see convergence"}
	}
	var why []string
	if n := len(r.state.Members()); n < r.needed.Members {
		why = append(why, fmt.Sprintf("there are %d members, and membership.min-nr-of-members is %d", n, r.needed.Members))
	}
	for _, role := range slices.Sorted(maps.Keys(r.needed.OfRole)) {
		n := 0
		for _, m := range r.state.Members() {
			if m.HasRole(role) {
				n++
			}
		}
		if n < r.needed.OfRole[role] {
			why = append(why, fmt.Sprintf("there are %d members with the role %s, and membership.min-nr-of-members-of-role wants %d", n, role, r.needed.OfRole[role]))
		}
	}
	if len(why) == 0 {
		why = append(why, "all agree, so that the leader makes it up next")
	}
	return why
}

// lastDecisions returns the last decision of a node about each subject, of the topics that are about members.
func lastDecisions(node *membership.Node) map[string]membership.Decision {
	last := map[string]membership.Decision{}
	for _, topic := range []string{"downing", "leader", "join", "leave", "reachability"} {
		for _, d := range node.Decisions().Of(topic) {
			if before, known := last[d.Subject]; !known || d.At.After(before.At) {
				last[d.Subject] = d
			}
		}
	}
	return last
}

// last says what this node has decided last about a member, nothing if it remembers no decision.
func (r reasons) last(subject string) string {
	d, known := r.decisions[subject]
	if !known {
		return ""
	}
	return fmt.Sprintf("this node decided at %s: %s, because %s", d.At.UTC().Format("15:04:05Z"), d.Verdict, d.Reason)
}
