// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// A view and the events come first; the end of the file derives the events from
// two successive views ([difference]).

// View is what a node knows of its cluster at one moment. It is immutable.
type View struct {
	Self      gossip.NodeID
	State     *gossip.State // Never nil; without members before the node has joined.
	Leader    gossip.NodeID // Zero when no member leads.
	Converged bool          // Every member that counts has seen State.
	Base      gossip.Base   // The sets of voters in each of which a side must win.
}

// Member returns the node's own record, or nil before it has joined.
func (v View) Member() *gossip.Member { return v.State.Member(v.Self) }

// Event is something that happened to the cluster as this node sees it:
// [Snapshot], [Missed], [MemberChanged], [MemberRemoved],
// [ReachabilityChanged], [LeaderChanged], [DowningChanged], [Fenced] or [Refused].
type Event interface{ event() }

// Snapshot is the first event of each subscription, and the one after [Missed].
type Snapshot struct{ View View }

// Missed says that N events were dropped because the subscriber was too slow. A
// [Snapshot] follows.
type Missed struct{ N int }

// MemberChanged says that a member has a new status. A new member is announced as joining
// first. Statuses that a member passed between two merges of the state are not announced
// one by one.
type MemberChanged struct {
	Member *gossip.Member
	// Previous is the status before, [gossip.StatusNone] for a new member.
	Previous gossip.Status
}

// MemberRemoved says that a member is gone for good. Member is its last record,
// Previous the last status that this node saw.
type MemberRemoved struct {
	Member   *gossip.Member
	Previous gossip.Status
}

// ReachabilityChanged says that a member became unreachable for some member that monitors
// it, or reachable again for all. It is never published about the subscriber's own node:
// that others do not reach it is for them to act on, and may be wrong.
type ReachabilityChanged struct {
	Member    *gossip.Member
	Reachable bool
}

// LeaderChanged says which member leads now; Leader is zero when none does.
type LeaderChanged struct{ Leader gossip.NodeID }

// DowningChanged says that the cluster uses another downing strategy. While the change
// has not converged a side survives only if the previous strategy keeps it as well,
// unless both strategies keep only majorities.
type DowningChanged struct{ Strategy, Previous gossip.DowningStrategy }

// Fenced says that nothing of a removed node can be running any more, so that its work
// may be taken over.
type Fenced struct {
	Node     gossip.NodeID
	Graceful bool // The node left in order and had confirmed that it stopped.
}

// Refused says that a message, a command or a node was refused, and why.
type Refused struct {
	Peer   gossip.NodeID // The uid may be unknown.
	What   string        // Name of the message or command.
	Reason string
}

func (Snapshot) event()            {}
func (Missed) event()              {}
func (MemberChanged) event()       {}
func (MemberRemoved) event()       {}
func (ReachabilityChanged) event() {}
func (LeaderChanged) event()       {}
func (DowningChanged) event()      {}
func (Fenced) event()              {}
func (Refused) event()             {}

// viewOf makes a View of what the machine published.
func viewOf(c component.Changed) View {
	return View{Self: c.Self, State: c.State, Leader: c.Leader, Converged: c.Converged, Base: c.Base}
}

// difference returns the events that lead from one view to the next: removals,
// other changes of members, reachability, the leader, the downing strategy.
func difference(prev, next View) []Event {
	var removed, changed, reach []Event
	lost, was := next.State.Unreachable(), prev.State.Unreachable()
	reachable := func(lost []gossip.NodeID, m *gossip.Member) bool {
		_, found := slices.BinarySearchFunc(lost, m.Node, gossip.NodeID.Compare)
		return !found
	}
	eachPair(prev.State.Members(), next.State.Members(), func(old, now *gossip.Member) {
		switch {
		case now == nil:
			removed = append(removed, MemberRemoved{Member: old, Previous: old.Status})
			return
		case old == nil:
			changed = append(changed, announce(now)...)
		case old.Status != now.Status || old.UpNumber != now.UpNumber:
			changed = append(changed, MemberChanged{Member: now, Previous: old.Status})
		}
		if is := reachable(lost, now); now.Node != next.Self && is != (old == nil || reachable(was, now)) {
			reach = append(reach, ReachabilityChanged{Member: now, Reachable: is})
		}
	})
	events := append(append(removed, changed...), reach...)
	if prev.Leader != next.Leader {
		events = append(events, LeaderChanged{Leader: next.Leader})
	}
	if was, is := prev.State.Downing(), next.State.Downing(); was.Gen > 0 && was.DowningStrategy != is.DowningStrategy {
		events = append(events, DowningChanged{Strategy: is.DowningStrategy, Previous: was.DowningStrategy})
	}
	return events
}

// announce returns the events for a member that was not known before.
func announce(m *gossip.Member) []Event {
	joined := *m
	joined.Status, joined.UpNumber = gossip.Joining, 0
	events := []Event{MemberChanged{Member: &joined}}
	if m.Status != gossip.Joining {
		events = append(events, MemberChanged{Member: m, Previous: gossip.Joining})
	}
	return events
}

// eachPair walks two lists of members sorted by node and calls f for each node, with nil
// for a list that lacks the node.
func eachPair(a, b []*gossip.Member, f func(a, b *gossip.Member)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Node.Compare(b[0].Node) < 0:
			f(a[0], nil)
			a = a[1:]
		case len(a) == 0 || b[0].Node.Compare(a[0].Node) < 0:
			f(nil, b[0])
			b = b[1:]
		default:
			f(a[0], b[0])
			a, b = a[1:], b[1:]
		}
	}
}
