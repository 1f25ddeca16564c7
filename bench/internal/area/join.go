// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"strings"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// measureJoin has a third node join two under load.
func measureJoin(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
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
	settled, err := f.settle(ctx, before.hosts)
	if err != nil {
		return figure.Outcome{}, err
	}
	after := f.watches.summary(false)
	out := figure.Outcome{Values: map[string]float64{
		"gap":      rig.Milliseconds(after.longest),
		"gap-idle": rig.Milliseconds(before.longest),
		"failed":   float64(after.failures(before.hosts, func(string) bool { return true })),
		"moved":    100 * float64(after.movedFrom(before.hosts)) / float64(s.Entities),
		"settled":  settled.Seconds(),
	}}
	if after.movedFrom(before.hosts) == 0 {
		out.Note = "nothing moved to the new node"
	}
	if after.cause != nil {
		out.Note = strings.TrimPrefix(out.Note+"; first failed ask: "+after.cause.Error(), "; ")
	}
	err = f.census(ctx, &out)
	return out, err
}

// settle waits until no entity moves any more, and returns how long after the
// join the last one did; zero when none did.
func (f *fleet) settle(ctx context.Context, hosts []string) (time.Duration, error) {
	began := time.Now()
	last, moved := began, 0
	for {
		if err := rig.Pause(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
		now := time.Now()
		if n := f.watches.summary(false).movedFrom(hosts); n != moved {
			moved, last = n, now
		}
		if moved > 0 && now.Sub(last) > joinStill || now.Sub(began) > joinSettle {
			return last.Sub(began), nil
		}
	}
}
