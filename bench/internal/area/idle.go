// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"runtime"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
)

// measureIdle measures what an idle entity costs: live heap and stacks, after a
// collection, before and after many entities were started.
func measureIdle(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	settled, node, census, err := crowd(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer dropNode(node)
	if err := rig.Pause(ctx, rest); err != nil {
		return figure.Outcome{}, err
	}
	heap, stack := live()
	if err := settled.activate(ctx, s.Senders, s.Entities); err != nil {
		return figure.Outcome{}, err
	}
	if err := rig.Pause(ctx, rest); err != nil {
		return figure.Outcome{}, err
	}
	heapNow, stackNow := live()
	n := float64(s.Entities)
	return figure.Outcome{
		Values: map[string]float64{
			"bytes": (heapNow + stackNow - heap - stack) / n,
			"heap":  (heapNow - heap) / n,
		},
		Duplicated: census.repeated.Load(),
	}, nil
}

// rest is how long after a burst of messages its goroutines have ended.
const rest = 3 * time.Second

// live returns the bytes of live heap and of stacks.
func live() (heap, stack float64) {
	runtime.GC()
	runtime.GC() // Frees what finalizers and pools released in the first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}
