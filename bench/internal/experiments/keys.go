// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
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
func measureKeys(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	t, err := startDataCluster(ctx, s, k, 0)
	if err != nil {
		return out, err
	}
	defer t.end()
	empty := memoryUsageNow()
	if err := t.fill(ctx); err != nil {
		return out, err
	}
	spread, err := t.held(ctx)
	if err != nil {
		return out, err
	}
	out.Values = map[string]float64{"spread": spread.Seconds()}
	if err := t.check(ctx, uint64(s.Entities), &out); err != nil || !out.Correct() {
		return out, err
	}
	if err := harness.Pause(ctx, settleTime); err != nil {
		return out, err
	}
	out.Values["key"] = memoryUsageNow().each(empty, s.Entities).heap
	if err := t.joined(ctx, &out); err != nil {
		return out, err
	}
	if err := t.check(ctx, uint64(s.Entities), &out); err != nil {
		return out, err
	}
	return out, t.quiet(ctx, &out)
}

// fill adds one to every counter.
func (t *dataCluster) fill(ctx context.Context) error {
	return harness.Together(t.spec.Senders, func(sender int) error {
		for i := sender; i < t.spec.Entities; i += t.spec.Senders {
			if err := t.node.add(ctx, counter(prefixOf(t.spec), i), ddata.Local()); err != nil {
				return err
			}
		}
		return nil
	})
}

// joined starts a third node, which is ready when it holds all keys. Meanwhile no node loses
// its standing or takes another for unreachable: otherwise the run has failed.
func (t *dataCluster) joined(ctx context.Context, out *figure.Outcome) error {
	was, err := t.total(ctx)
	if err != nil {
		return err
	}
	if err := t.add(ctx); err != nil {
		return err
	}
	all, err := t.reports(ctx)
	if err != nil {
		return err
	}
	joiner, is := all[len(all)-1], total(all)
	out.Lost += uint64(max(t.spec.Entities-joiner.Keys, 0)) // It says that it is ready.
	out.CPU = harness.Microseconds(is.CPU-was.CPU) / float64(t.spec.Entities)
	out.Values["joined"], out.Values["cpu"] = joiner.Took.Seconds(), (is.CPU - was.CPU).Seconds()
	out.Values["counts"] = joiner.Since.Seconds()
	out.Values["wire"] = float64(is.Bytes-was.Bytes) / float64(t.spec.Entities)
	before, heard := was.Heard, is.Heard
	out.Values["lapses"], out.Values["marks"] = float64(heard.Lapses-before.Lapses), float64(heard.Marks-before.Marks)
	out.Values["beat-before"], out.Values["beat"] = 1000*before.Beats.percentile(0.99), 1000*heard.Beats.minus(before.Beats).percentile(0.99)
	if heard.Lapses+heard.Marks+heard.Missed > 0 {
		return fmt.Errorf("bench: %d standings were lost, %d nodes marked or removed and %d events missed while a node took over %d keys",
			heard.Lapses, heard.Marks, heard.Missed, t.spec.Entities)
	}
	return nil
}

// quiet measures what the nodes send when nothing changes. A round is the time in which each
// of them compares its data with that of another one.
func (t *dataCluster) quiet(ctx context.Context, out *figure.Outcome) error {
	if err := harness.Pause(ctx, settleTime); err != nil {
		return err
	}
	before, err := t.total(ctx)
	if err != nil {
		return err
	}
	began, round := time.Now(), ddata.Default().GossipInterval
	if err := harness.Pause(ctx, max(quietSteps*t.spec.Time, roundsMin*round)); err != nil {
		return err
	}
	after, err := t.total(ctx)
	rounds := time.Since(began).Seconds() / round.Seconds()
	out.Values["round"] = float64(after.Bytes-before.Bytes) / rounds
	return err
}
