// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// While a node is a member, the records about it are noted with the moments at which they
// came ([fences.noteCuts]), and who had seen them ([fences.noteSeen], in seensets.go).
// When it is removed ([fences.removed]), those moments say from when on it hosts nothing
// ([fences.endOf]); a timer waits for that ([fences.fenceAt]).

// quarantineAfter is the time after which the transport refuses a removed node. Until
// then the node is answered, so that it learns that it was removed.
const quarantineAfter = 5 * time.Second

// rateErrorDivisor is the inverse of the largest difference between the rates of two
// clocks: one percent.
const rateErrorDivisor = 100

// fences computes from which moment on each removed node can host nothing, and publishes
// [component.Fenced] then.
//
// A voter has cut off a node when its unreachable record about it, unchanged
// since, came to this node. t0 is the moment from which the node together with
// the voters that had not cut it off won in no set of the base. Every answer
// that gave it standing was to a heartbeat that it had sent before t0, so its
// own clock stopped it a fence later; the margin is for clocks that run at
// different rates. The base is the one by which the node may count, see [fences.bases].
//
// A record counts only if the voter is one whose having seen the node down the
// removal waited for, see [fences.cutsOf]. Such a voter denies the node since its
// record: had it taken the record back before it saw the node down, whoever removed
// the node would have known.
//
// Where proofs are lent, see [standingRelay], each voter counts as one that may have lent to
// the node. A voter that goes on lends nothing more once it has cut the node off: the
// latest cut of all these voters counts. A voter that was removed, now or before, has no
// proof of its own later than its t0: the latest t0 of all removed nodes counts. A voter
// that exits lends nothing once it is exiting.
type fences struct {
	*core

	strategies *strategies
	exit       ownLeave

	cuts         []cutRecord // Sorted by observer and subject, as records are.
	pastSeenSets []pastSeenSet
	waiting      map[gossip.NodeID]bool

	// witnesses are the voters of which it is known what they held at the present removal, see
	// [fences.findWitnesses].
	witnesses map[gossip.NodeID]bool

	// bases are, of each member that is down, the sets of voters by which it may count. If not
	// all were known to have seen the last edit of the voters when this node heard that the
	// member is down, the member may count by the voters before alone: nobody waits for it any
	// more, so that the edit is known to have converged when the member is removed, though it
	// has not heard of the edit.
	bases map[gossip.NodeID]gossip.Base

	// many says that this node has known so many voters that proofs were lent.
	many bool

	// exits is when this node first knew of each member that it exits.
	exits map[gossip.NodeID]machine.Instant

	// proofs is when the last node that was removed could last prove a majority: the
	// latest t0. words is when such a node had last heard every voter that goes on.
	proofs, words machine.Instant
}

// cutRecord is an unreachable record, with the moment since which this node has held it
// unchanged.
type cutRecord struct {
	record gossip.Record
	since  machine.Instant
}

// blockTimer fires when the transport is to refuse a removed node.
type blockTimer struct{ Node gossip.NodeID }

func newFences(c *core, s *strategies, exit ownLeave) *fences {
	return &fences{core: c, strategies: s, exit: exit, waiting: map[gossip.NodeID]bool{}, bases: map[gossip.NodeID]gossip.Base{}, exits: map[gossip.NodeID]machine.Instant{}}
}

// noteCuts takes over the unreachable records of the state.
func (f *fences) noteCuts(records []gossip.Record, now machine.Instant) {
	if len(records) == 0 && len(f.cuts) == 0 {
		return
	}
	cuts := make([]cutRecord, len(records))
	j := 0
	for i, r := range records {
		cuts[i] = cutRecord{r, now}
		for j < len(f.cuts) && compareRecords(f.cuts[j].record, r) < 0 {
			j++
		}
		if j < len(f.cuts) && f.cuts[j].record == r {
			cuts[i].since = f.cuts[j].since
		}
	}
	f.cuts = cuts
}

// compareRecords is the order in which states list their records.
func compareRecords(a, b gossip.Record) int {
	if a.Observer != b.Observer {
		return a.Observer.Compare(b.Observer)
	}
	return a.Subject.Compare(b.Subject)
}

// cutBy returns since when each observer that counts had cut off subject.
func (f *fences) cutBy(subject gossip.NodeID, counts func(observer gossip.NodeID) bool) map[gossip.NodeID]machine.Instant {
	by := map[gossip.NodeID]machine.Instant{}
	for _, c := range f.cuts {
		if c.record.Subject == subject && counts(c.record.Observer) {
			by[c.record.Observer] = c.since
		}
	}
	return by
}

// lastStanding returns t0, see [fences], of a node that is removed now.
func lastStanding(subject gossip.NodeID, base gossip.Base, cutAt map[gossip.NodeID]machine.Instant, now machine.Instant) machine.Instant {
	moments := []machine.Instant{now}
	for _, voters := range base {
		for _, v := range voters {
			if at, ok := cutAt[v]; ok && at < now {
				moments = append(moments, at)
			}
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	// Who stands shrinks with time.
	i, _ := slices.BinarySearchFunc(moments, true, func(t machine.Instant, _ bool) int {
		mayStand := func(n gossip.NodeID) bool {
			at, ok := cutAt[n]
			return n == subject || !ok || at > t
		}
		if slices.ContainsFunc(base, func(voters []gossip.NodeID) bool { return gossip.Wins(voters, mayStand) }) {
			return -1
		}
		return 0
	})
	return append(moments, now)[i]
}

// removed begins the fences of members that the state no longer holds; they are given as
// they were.
func (f *fences) removed(gone []*gossip.Member) {
	if len(gone) == 0 {
		return
	}
	f.findWitnesses()
	cuts := make([]map[gossip.NodeID]machine.Instant, len(gone))
	for i, was := range gone {
		cuts[i] = f.cutsOf(was.Node)
		f.lastOf(was, cuts[i])
	}
	for i, was := range gone {
		if was.Node == f.self {
			continue
		}
		f.out.Arm(blockTimer{was.Node}, f.now.Mono.Add(quarantineAfter))
		if was.Status == gossip.Exiting && f.tookPart() {
			// Each step that the leader waited for has been seen by this voter. Had the node
			// been downed after it exited, this voter would have seen that.
			f.out.Publish(component.Fenced{Node: was.Node, Graceful: true})
			continue
		}
		f.fenceAt(was.Node, f.endOf(was.Node, cuts[i]))
	}
	for _, was := range gone {
		delete(f.exits, was.Node)
		delete(f.bases, was.Node)
	}
}

// baseOf returns the sets of voters by which a node that is removed now may have counted.
func (f *fences) baseOf(node gossip.NodeID) gossip.Base {
	if base, wasDown := f.bases[node]; wasDown {
		return base
	}
	return f.surveyed.base
}

// lastOf notes when a removed node could last prove a majority, and when it had last heard all
// voters that go on: it may have lent that to others.
func (f *fences) lastOf(was *gossip.Member, cuts map[gossip.NodeID]machine.Instant) {
	t0, first := lastStanding(was.Node, f.baseOf(was.Node), cuts, f.now.Mono), f.firstCut(cuts)
	if at, exits := f.exits[was.Node]; exits {
		t0, first = min(t0, at), min(first, at)
	}
	f.proofs, f.words = max(f.proofs, t0), max(f.words, first)
}

// endOf returns the moment from which a node that is removed now hosts nothing. Where a
// side without a majority may survive, the node may have lost to such a side: then it
// lost not its majority, but the word of the voter that cut it off first. If the node has
// not heard that the cluster changed to such a strategy, it did lose its majority, since
// the strategy before had to keep this side as well.
func (f *fences) endOf(node gossip.NodeID, cuts map[gossip.NodeID]machine.Instant) machine.Instant {
	proof, word, margin := lastStanding(node, f.baseOf(node), cuts, f.now.Mono), f.firstCut(cuts), f.margin()
	if f.many {
		denied := f.deniedByAll(node, cuts)
		proof, word, margin = max(f.proofs, denied), max(f.words, denied), f.marginOfMany()
	}
	end := proof.Add(byAnyClock(f.cfg.Fence))
	if !f.onlyMajorities() {
		end = max(end, word.Add(byAnyClock(margin)))
	}
	return end
}

// deniedByAll is the moment since which no voter that goes on can have lent a proof to a
// node that is removed now. Where nothing is known of a voter, that is now: the node was
// not removed before the voter had seen it down, or had confirmed that it hosts nothing,
// or was a member of no side that goes on.
func (f *fences) deniedByAll(node gossip.NodeID, cuts map[gossip.NodeID]machine.Instant) machine.Instant {
	var all machine.Instant
	for _, member := range f.settled.Members() {
		if member.Node == node || member.UpNumber == 0 || !f.cfg.Voters.admit(member) || f.state.Member(member.Node) == nil {
			continue
		}
		at, known := cuts[member.Node]
		if member.Status == gossip.Exiting {
			at, known = f.exits[member.Node]
		}
		if !known {
			return f.now.Mono
		}
		all = max(all, at)
	}
	return all
}

// onlyMajorities tells whether only a majority can have removed the nodes of whose
// removal this node hears now: neither before nor with the news did the cluster use a
// strategy that may keep another side.
func (f *fences) onlyMajorities() bool {
	return f.strategies.majorityOnly() && f.strategies.majorityOnlyBy(f.state.Downing())
}

// firstCut returns the earliest moment at which a surviving voter had cut off a node that
// is removed now. The removed node knows each of these voters as a voter, and as one that
// does not exit.
func (f *fences) firstCut(cuts map[gossip.NodeID]machine.Instant) machine.Instant {
	first := f.now.Mono
	for _, at := range cuts { //quorate:unordered a minimum
		first = min(first, at)
	}
	return first
}

// cutsOf returns since when each voter that the removal of a node waited for had cut the
// node off. Of other voters nothing is known after their record: a voter that is removed
// with the node, or was before, may have taken its record back unseen, and has not seen
// the node down. A leaving voter is not waited for once it has confirmed that it hosts
// nothing, and a voter whose promotion is not known to have converged may still be a
// joiner to the member that removed the node.
//
// That the other voters did not take their records back is known to this node only if the
// removal waited for it as well. Otherwise it may have heard of the removal without what
// led to it, and takes the node as cut off by no voter before.
func (f *fences) cutsOf(node gossip.NodeID) map[gossip.NodeID]machine.Instant {
	if !f.wasWaitedFor(f.self) {
		return nil
	}
	by := f.cutBy(node, func(observer gossip.NodeID) bool { return f.witnesses[observer] })
	if f.many {
		f.addPastSeenSets(by, node)
	}
	return by
}

// findWitnesses finds the voters that the removals of which this node hears now waited for.
// Only the records of these voters count: they had seen the removed nodes down.
func (f *fences) findWitnesses() {
	f.witnesses = make(map[gossip.NodeID]bool, len(f.settled.Members()))
	for _, member := range f.settled.Members() {
		if votesInAll(f.surveyed.base, member.Node) && f.wasWaitedFor(member.Node) {
			f.witnesses[member.Node] = true
		}
	}
}

// wasWaitedFor tells whether a removal of which this node hears now waited until a member
// had seen the removed node down, by what was known before.
func (f *fences) wasWaitedFor(n gossip.NodeID) bool {
	member := f.settled.Member(n)
	if member == nil || member.Status < gossip.Up || member.Status > gossip.Leaving || !f.isEstablished(member) {
		return false
	}
	return member.Status < gossip.Leaving || n == f.self && !f.exit.hasConfirmed()
}

// removedUnseen begins the fence of nodes that this node knows only as removed: it joined
// after their removal, or heard of their joining and their end at once.
func (f *fences) removedUnseen(prev, next *gossip.State) {
	fence := f.cfg.Fence
	if !f.onlyMajorities() {
		fence = f.margin()
		if f.many {
			fence = f.marginOfMany()
		}
	}
	for _, t := range next.TombstonesSince(prev) {
		if prev.Member(t.Node) == nil {
			f.proofs, f.words = f.now.Mono, f.now.Mono
			f.fenceAt(t.Node, f.now.Mono.Add(byAnyClock(fence)))
		}
	}
}

// byAnyClock is how long d may last by the clock of another node.
func byAnyClock(d time.Duration) time.Duration { return d + 2*d/rateErrorDivisor }

func (f *fences) fenceAt(node gossip.NodeID, at machine.Instant) {
	if at <= f.now.Mono {
		f.out.Publish(component.Fenced{Node: node})
		return
	}
	f.waiting[node] = true
	f.out.Arm(fenceTimer{node}, at)
}

// tookPart tells whether this node was among the members whose seeing of the state
// convergence waits for.
func (f *fences) tookPart() bool {
	me := f.settled.Member(f.self)
	return me != nil && me.Status >= gossip.Up && me.Status <= gossip.Leaving
}

func (f *fences) fencePassed(node gossip.NodeID) {
	if f.waiting[node] {
		delete(f.waiting, node)
		f.out.Publish(component.Fenced{Node: node})
	}
}

// quarantine has the transport refuse a removed incarnation, with words that tell that
// incarnation why.
func (f *fences) quarantine(node gossip.NodeID) {
	reason := "this incarnation was removed from the cluster"
	if cause := causeOf(f.state, node); !cause.IsZero() {
		reason += " after it was declared down by " + cause.String()
	}
	f.out.Add(Block{Node: node, Reason: reason})
}
