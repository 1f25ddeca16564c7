// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// measureRebalance has a third node join two with very many shards. What counts as a move is that of a
// shard, whether an entity lives in it or not.
func measureRebalance(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	f, err := startFleet(ctx, s, k, 0)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer f.end()
	before, err := f.baseline(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	if err := f.add(ctx); err != nil {
		return figure.Outcome{}, err
	}
	settled, moved, err := f.settleShards(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	after := f.watches.summary(false)
	out := figure.Outcome{Values: map[string]float64{
		"failed":   float64(after.failures(before.hosts, func(string) bool { return true })),
		"moved":    float64(moved),
		"settled":  settled.Seconds(),
		"p99":      f.watches.percentile(0.99),
		"p99-idle": before.p99,
	}}
	if after.cause != nil {
		out.Note = "first failed ask: " + after.cause.Error()
	}
	err = f.census(ctx, &out)
	return out, err
}

// settleShards waits until the youngest node has its part of the shards and gets no more of them, or has
// got none for long. It returns how long after its start it got the last one, and how many it has.
func (f *fleet) settleShards(ctx context.Context) (time.Duration, int, error) {
	part := f.node.Sharding().Kinds()[0].Shards / f.spec.Nodes
	began := time.Now()
	last, hosted := began, 0
	for {
		if err := rig.Pause(ctx, 20*time.Millisecond); err != nil {
			return 0, 0, err
		}
		var n int
		if err := f.others[len(f.others)-1].Call(ctx, requestHosted, &n); err != nil {
			return 0, 0, err
		}
		now := time.Now()
		if n != hosted {
			hosted, last = n, now
		}
		still := now.Sub(last)
		if hosted >= part && still > joinStill || still > joinSettle {
			return last.Sub(began), hosted, nil
		}
	}
}
