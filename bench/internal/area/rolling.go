// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/membership"
)

// measureRolling restarts all nodes but this one, which asks and hosts nothing: each leaves in order, and
// one more joins, before the next one leaves. The oldest, which coordinates, is the first.
func measureRolling(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	f, err := startFleet(ctx, s, k, s.Nodes-1)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer f.end()
	before, err := f.baseline(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	began := time.Now()
	for range s.Nodes {
		if err := f.restart(ctx); err != nil {
			return figure.Outcome{}, err
		}
	}
	took := time.Since(began)
	// The nodes are asked for their entities one after the other: none may move meanwhile.
	if _, _, err := f.settleShards(ctx); err != nil {
		return figure.Outcome{}, err
	}
	if _, err := f.watches.allSince(ctx, time.Now(), answerLimit); err != nil {
		return figure.Outcome{}, err
	}
	after := f.watches.summary(false)
	out := figure.Outcome{Values: map[string]float64{
		"failed":   float64(after.failures(before.hosts, func(string) bool { return true })),
		"gap":      rig.Milliseconds(after.longest),
		"gap-idle": rig.Milliseconds(before.longest),
		"p99":      f.watches.percentile(0.99),
		"took":     took.Seconds(),
	}}
	if after.cause != nil {
		out.Note = "first failed ask: " + after.cause.Error()
	}
	err = f.census(ctx, &out)
	return out, err
}

// restart has the oldest of the other nodes leave, and starts one more in its place.
func (f *fleet) restart(ctx context.Context) error {
	p := f.others[0]
	var r residents
	if err := p.Call(ctx, requestLeave, &r); err != nil {
		return err
	}
	p.Stop()
	f.left = append(f.left, r)
	f.others, f.at = f.others[1:], f.at[1:]
	if err := f.add(ctx); err != nil {
		return err
	}
	_, err := until(ctx, time.Now(), []*membership.Node{f.node.Membership()}, "the new node is a member, and the old one is none", func() bool {
		return len(f.node.Membership().View().State.Members()) == f.spec.Nodes+1
	})
	return err
}
