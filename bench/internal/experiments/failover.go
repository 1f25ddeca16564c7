// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/membership"
)

// What callers notice when a cluster changes while every entity is asked several times a second:
//
//	this process            peers, one a node
//	  watches ── ask ──────────> entities
//	  second node                first, third ... node
//	     └──── spans ─────────────> register of each node
//
// Each entity has a watch, which keeps the longest time between two answers, the errors
// and the node that answered. Each node has a register of the times at which entities
// began and ended to live on it; an entity that is in two registers at the same moment
// was active twice. This process is the second node, so that neither the oldest nor the
// youngest node is the one that measures.

// joinGroup is a node that joins under load.
func joinGroup() harness.Group {
	return harness.Group{
		Name: "join", About: "a third node joins two under load, 1,000 entities",
		Experiments: []harness.Experiment{{Measure: changed(0, joins), Spec: harness.Spec{Entities: 1000, Nodes: 3}, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "longest-gap", Value: "gap", Unit: "ms", Better: figure.Lower, Target: maxGap},
			{Name: "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: "moved", Value: "moved", Unit: "%", Better: figure.Higher, Target: 30},
			{Name: "last-move-after", Value: "settled", Unit: "s", Better: figure.Lower},
			{Name: "active-twice", Value: "twice", Better: figure.Lower, Zero: true},
			{Name: "active-twice-ever", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}, {Measure: changed(0, joins), Spec: harness.Spec{Entities: 1000, Nodes: 3, Senders: busyCallers}, Figures: []figure.Figure{
			{Name: "busy-failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "busy-slowest-ask", Value: "slowest", Unit: "ms", Better: figure.Lower, Target: maxSlowest},
			{Name: "busy-slowest-ask-before", Value: "slowest-idle", Unit: "ms", Better: figure.Lower},
			{Name: "busy-ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "busy-ask-p99-before", Value: "p99-idle", Unit: "ms", Better: figure.Lower},
			{Name: "busy-moved", Value: "moved", Unit: "%", Better: figure.Higher, Target: 30},
			{Name: "busy-active-twice-ever", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}},
	}
}

const (
	busyCallers = 8  // How many callers ask all entities in turn without a pause.
	maxSlowest  = 30 // For how many milliseconds none of them may wait while a node joins.
)

// maxGap is for how many milliseconds no entity may be silent when its node has not failed: each is
// asked every 100 ms.
const maxGap = 300

// rebalanceGroup is a node that joins under load, and takes over a third of very many shards.
func rebalanceGroup() harness.Group {
	spec := harness.Spec{Entities: 1000, Nodes: 3, Shards: 10_000, Limit: 5 * time.Minute}
	return harness.Group{
		Name: "rebalance", About: "a third node joins two that have 10,000 shards, 1,000 entities",
		Experiments: []harness.Experiment{{Measure: changed(0, rebalances), Spec: spec, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "last-move-after", Value: "settled", Unit: "s", Better: figure.Lower},
			{Name: "moved-shards", Value: "moved", Better: figure.Higher, Target: 3300},
			{Name: "ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "ask-p99-before", Value: "p99-idle", Unit: "ms", Better: figure.Lower},
			{Name: "active-twice", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}},
	}
}

// rollingGroup is five nodes that are restarted one after the other, under load.
func rollingGroup() harness.Group {
	spec := harness.Spec{Entities: 1000, Nodes: 5, Proxy: true}
	return harness.Group{
		Name: "rolling", About: "five nodes under load are restarted one after the other",
		Experiments: []harness.Experiment{{Measure: changed(spec.Nodes-1, rolls), Spec: spec, Figures: []figure.Figure{
			{Name: "failed-asks", Value: "failed", Better: figure.Lower, Zero: true},
			{Name: "longest-gap", Value: "gap", Unit: "ms", Better: figure.Lower, Target: maxGap},
			{Name: "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: "ask-p99", Value: "p99", Unit: "ms", Better: figure.Lower},
			{Name: "all-restarted-after", Value: "took", Unit: "s", Better: figure.Lower},
			{Name: "active-twice", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}},
	}
}

// killGroup is a node that is killed under load: the youngest, and the oldest, which leads.
func killGroup() harness.Group {
	kill := func(prefix string, oldest bool) harness.Experiment {
		return harness.Experiment{Measure: changed(1, kills), Spec: harness.Spec{Entities: 1000, Nodes: 3, Oldest: oldest}, Figures: []figure.Figure{
			{Name: prefix + "all-answer-after", Value: "answer", Unit: "s", Better: figure.Lower, Target: 10},
			{Name: prefix + "failed-asks-survivors", Value: "survivors", Better: figure.Lower, Zero: true},
			{Name: prefix + "longest-gap-survivors", Value: "gap", Unit: "ms", Better: figure.Lower, Target: maxGap},
			{Name: prefix + "longest-gap-before", Value: "gap-idle", Unit: "ms", Better: figure.Lower},
			{Name: prefix + "failed-asks-victim", Value: "victim", Better: figure.Lower},
			{Name: prefix + "active-twice", Value: "overlapped", Better: figure.Lower, Zero: true},
		}}
	}
	return harness.Group{
		Name: "kill", About: "kill -9 of one of three nodes under load, 1,000 entities",
		Experiments: []harness.Experiment{kill("", false), kill("oldest-", true)},
	}
}

// The changes of a cluster of which callers notice as little as possible. All are measured the same
// way ([changed]): an undisturbed cluster, a change, what the watches have noticed, and what the
// nodes say of their entities.

const (
	joinSettle = 25 * time.Second // For how long moves are waited for after a join.
	joinStill  = 3 * time.Second  // Without a move: it is over.
)

// A change is done to a cluster, and notes what it alone has measured.
type change func(ctx context.Context, f *processCluster, before summary, out *figure.Outcome) error

// changed measures a change of a cluster of two nodes and so many more.
func changed(more int, do change) harness.MeasureFunction {
	return func(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
		out.Values = map[string]float64{}
		f, err := startProcessCluster(ctx, s, k, more)
		if err != nil {
			return out, err
		}
		defer f.end()
		before, err := f.baseline(ctx)
		if err != nil {
			return out, err
		}
		if err := do(ctx, f, before, &out); err != nil {
			return out, err
		}
		after := f.watches.summary(false)
		survives := func(host string) bool { return host != f.victim } // All do where there is no victim.
		failed, survivors := after.failures(before.hosts, func(string) bool { return true }), after.failures(before.hosts, survives)
		out.Values["failed"], out.Values["survivors"], out.Values["victim"] = float64(failed), float64(survivors), float64(failed-survivors)
		out.Values["gap-idle"], out.Values["gap"] = harness.Milliseconds(before.longest), harness.Milliseconds(after.longestOf(before.hosts, survives))
		out.Values["p99-idle"], out.Values["p99"] = before.p99, f.watches.percentile(0.99)
		out.Values["slowest-idle"], out.Values["slowest"] = before.slowest, f.watches.percentile(1)
		if after.cause != nil {
			remark(&out, "first failed ask: "+after.cause.Error())
		}
		return out, f.census(ctx, &out)
	}
}

// remark adds to the note of an outcome.
func remark(out *figure.Outcome, text string) {
	out.Note = strings.TrimPrefix(out.Note+"; "+text, "; ")
}

// joins has one more node join. What is measured of it is which part of the entities moves there, and
// how long after its start the last one does; zero when none did.
func joins(ctx context.Context, f *processCluster, before summary, out *figure.Outcome) error {
	if err := f.add(ctx); err != nil {
		return err
	}
	began := time.Now()
	last, moved := began, 0
	_, err := harness.Poll(ctx, settleEvery, func(waited time.Duration) (bool, error) {
		now := time.Now()
		if n := f.watches.summary(false).movedFrom(before.hosts); n != moved {
			moved, last = n, now
		}
		return moved > 0 && now.Sub(last) > joinStill || waited > joinSettle, nil
	})
	if moved == 0 {
		remark(out, "nothing moved to the new node")
	}
	out.Values["moved"], out.Values["settled"] = 100*float64(moved)/float64(f.spec.Entities), last.Sub(began).Seconds()
	return err
}

// rebalances has one more node join a cluster with very many shards. What counts as a move is that of
// a shard, whether an entity lives in it or not.
func rebalances(ctx context.Context, f *processCluster, _ summary, out *figure.Outcome) error {
	if err := f.add(ctx); err != nil {
		return err
	}
	settled, moved, err := f.settleShards(ctx)
	out.Values["moved"], out.Values["settled"] = float64(moved), settled.Seconds()
	return err
}

// rolls restarts all nodes but this one, which asks and hosts nothing: each leaves in order, and
// one more joins, before the next one leaves. The oldest, which coordinates, is the first.
func rolls(ctx context.Context, f *processCluster, _ summary, out *figure.Outcome) error {
	began := time.Now()
	for range f.spec.Nodes {
		if err := f.restart(ctx); err != nil {
			return err
		}
	}
	out.Values["took"] = time.Since(began).Seconds()
	// The nodes are asked for their entities one after the other: none may move meanwhile.
	if _, _, err := f.settleShards(ctx); err != nil {
		return err
	}
	_, err := f.watches.allSince(ctx, time.Now(), answerTimeout)
	return err
}

// kills kills one of the other nodes: the youngest, or the oldest.
func kills(ctx context.Context, f *processCluster, before summary, out *figure.Outcome) error {
	victim := f.others.Len() - 1
	if f.spec.Oldest {
		victim = 0
	}
	if f.victim = f.others.Address(victim); !slices.Contains(before.hosts, f.victim) {
		return errors.New("bench: the node to kill hosts nothing")
	}
	killed := time.Now()
	f.others.Take(victim).Kill()
	took, err := f.watches.allSince(ctx, killed, answerTimeout)
	out.Values["answer"] = took.Seconds()
	return err
}

// settleEvery is how often is looked whether something still moves.
const settleEvery = 20 * time.Millisecond

// settleShards waits until the youngest node has its part of the shards and gets no more of them, or has
// got none for long. It returns how long after its start it got the last one, and how many it has.
func (f *processCluster) settleShards(ctx context.Context) (time.Duration, int, error) {
	part := f.node.Sharding().Kinds()[0].Shards / f.spec.Nodes
	began := time.Now()
	last, hosted := began, 0
	_, err := harness.Poll(ctx, settleEvery, func(time.Duration) (bool, error) {
		n := 0
		err := f.others.Youngest().Call(ctx, requestHosted, &n)
		now := time.Now()
		if n != hosted {
			hosted, last = n, now
		}
		still := now.Sub(last)
		return hosted >= part && still > joinStill || still > joinSettle, err
	})
	return last.Sub(began), hosted, err
}

// restart has the oldest of the other nodes leave, and starts one more in its place.
func (f *processCluster) restart(ctx context.Context) error {
	oldest := f.others.Take(0)
	var r entityReport
	err := oldest.Call(ctx, requestLeave, &r)
	oldest.Stop()
	f.left = append(f.left, r)
	if err := errors.Join(err, f.add(ctx)); err != nil {
		return err
	}
	_, err = until(ctx, time.Now(), []*membership.Node{f.node.Membership()}, "the new node is a member, and the old one is none", func() bool {
		return len(f.node.Membership().View().State.Members()) == f.spec.Nodes+1
	})
	return err
}
