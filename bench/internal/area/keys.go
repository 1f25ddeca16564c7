// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/ddata"
)

// A million counters on two nodes, and a third that joins: first the memory of a key, then
// the node that takes all of them over, then a time in which nothing changes.

const (
	settleTime = 3 * time.Second // Between the last change and a measurement of what is quiet.
	quietSteps = 5               // Measuring times for which a quiet cluster is measured,
	roundsMin  = 3               // and at least so many rounds.
)

// measureKeys measures keys by the number.
func measureKeys(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	t, err := startTrio(ctx, s, k, 0)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer t.end()
	heap := liveHeap()
	if err := t.fill(ctx); err != nil {
		return figure.Outcome{}, err
	}
	began := time.Now()
	if err := t.held(ctx); err != nil {
		return figure.Outcome{}, err
	}
	out := figure.Outcome{Values: map[string]float64{"spread": time.Since(began).Seconds()}}
	if err := t.check(ctx, uint64(s.Entities), &out); err != nil || !out.Correct() {
		return out, err
	}
	if err := rig.Pause(ctx, settleTime); err != nil {
		return out, err
	}
	out.Values["key"] = (liveHeap() - heap) / float64(s.Entities)
	if err := t.joined(ctx, &out); err != nil {
		return out, err
	}
	if err := t.check(ctx, uint64(s.Entities), &out); err != nil {
		return out, err
	}
	return out, t.quiet(ctx, &out)
}

// liveHeap returns the bytes of live heap.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // Frees what finalizers and pools released in the first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// fill adds one to every counter.
func (t *trio) fill(ctx context.Context) error {
	var senders sync.WaitGroup
	failed := make([]error, t.spec.Senders)
	// Owned by fill, which waits for them.
	for sender := range t.spec.Senders {
		senders.Go(func() {
			for i := sender; i < t.spec.Entities && failed[sender] == nil; i += t.spec.Senders {
				failed[sender] = t.node.add(ctx, counter(prefixOf(t.spec), i), ddata.Local())
			}
		})
	}
	senders.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// joined starts a third node, which is ready when it holds all keys. Meanwhile no node loses
// its standing or takes another for unreachable: otherwise the run has failed.
func (t *trio) joined(ctx context.Context, out *figure.Outcome) error {
	before, err := t.looks(ctx)
	if err != nil {
		return err
	}
	if err := t.add(ctx); err != nil {
		return err
	}
	after, err := t.looks(ctx)
	if err != nil {
		return err
	}
	joiner := after[len(after)-1]
	out.Lost += uint64(max(t.spec.Entities-joiner.Keys, 0)) // It says that it is ready.
	var was, is sighting
	for _, l := range before {
		was = was.plus(l.Heard)
	}
	for _, l := range after {
		is = is.plus(l.Heard)
	}
	took := cpuOf(after) - cpuOf(before)
	out.CPU = rig.Microseconds(took) / float64(t.spec.Entities)
	out.Values["joined"], out.Values["cpu"] = joiner.Took.Seconds(), took.Seconds()
	out.Values["counts"] = joiner.Since.Seconds()
	out.Values["wire"] = float64(bytesOf(after)-bytesOf(before)) / float64(t.spec.Entities)
	out.Values["lapses"], out.Values["marks"] = float64(is.Lapses-was.Lapses), float64(is.Marks-was.Marks)
	out.Values["beat-before"], out.Values["beat"] = 1000*was.Beats.percentile(0.99), 1000*is.Beats.minus(was.Beats).percentile(0.99)
	if is.Lapses+is.Marks+is.Missed > 0 {
		return fmt.Errorf("bench: %d standings were lost, %d nodes marked or removed and %d events missed while a node took over %d keys", is.Lapses, is.Marks, is.Missed, t.spec.Entities)
	}
	return nil
}

// quiet measures what the nodes send when nothing changes. A round is the time in which each
// of them compares its data with that of another one.
func (t *trio) quiet(ctx context.Context, out *figure.Outcome) error {
	if err := rig.Pause(ctx, settleTime); err != nil {
		return err
	}
	before, err := t.looks(ctx)
	if err != nil {
		return err
	}
	began, round := time.Now(), ddata.Default().GossipInterval
	if err := rig.Pause(ctx, max(quietSteps*t.spec.Time, roundsMin*round)); err != nil {
		return err
	}
	after, err := t.looks(ctx)
	rounds := time.Since(began).Seconds() / round.Seconds()
	out.Values["round"] = float64(bytesOf(after)-bytesOf(before)) / rounds
	return err
}
