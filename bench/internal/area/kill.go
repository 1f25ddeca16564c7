// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// measureKill kills one of three nodes.
func measureKill(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	f, err := startFleet(ctx, s, k, 1)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer f.end()
	before, err := f.baseline(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	victim := len(f.others) - 1
	if s.Oldest {
		victim = 0
	}
	address := f.at[victim]
	lost := 0
	for _, host := range before.hosts {
		if host == address {
			lost++
		}
	}
	if lost == 0 {
		return figure.Outcome{}, errors.New("bench: the node to kill hosts nothing")
	}
	killed := time.Now()
	f.others[victim].Kill()
	f.others = append(f.others[:victim:victim], f.others[victim+1:]...)
	took, err := f.watches.allSince(ctx, killed, answerLimit)
	if err != nil {
		return figure.Outcome{}, err
	}
	after := f.watches.summary(false)
	survive := func(host string) bool { return host != address }
	out := figure.Outcome{Values: map[string]float64{
		"gap-idle":  rig.Milliseconds(before.longest),
		"gap":       rig.Milliseconds(after.longestOf(before.hosts, survive)),
		"answer":    took.Seconds(),
		"survivors": float64(after.failures(before.hosts, survive)),
		"victim":    float64(after.failures(before.hosts, func(host string) bool { return host == address })),
		"hosted":    float64(lost),
	}}
	if after.cause != nil {
		out.Note = "first failed ask: " + after.cause.Error()
	}
	err = f.census(ctx, &out)
	return out, err
}
