// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// asking measures questions and answers.
type asking struct {
	askers int
	time   time.Duration
	// ask asks once as one of the askers. An answer to another question is an
	// error.
	ask func(ctx context.Context, asker uint32, seq uint64) error
	// cpu returns the processor time of the other process.
	mark func(context.Context) (mark, error)
}

// run asks for a while. The values are p50 and p99 in microseconds and the
// rate a second.
func (a asking) run(ctx context.Context) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop, measuring atomic.Bool
	var asked atomic.Uint64
	took := make([][]time.Duration, a.askers)
	var askers sync.WaitGroup
	// Owned by run, which waits for them: they end with stop or ctx.
	for i := range a.askers {
		askers.Go(func() {
			n, err := a.askOn(ctx, uint32(i), &stop, &measuring, &took[i])
			asked.Add(n)
			if err != nil {
				cancel(err)
			}
		})
	}
	defer askers.Wait()
	defer stop.Store(true)
	if err := pause(ctx, a.time/4); err != nil {
		return outcome{}, err
	}
	own := cpuTime()
	from, err := a.mark(ctx)
	if err != nil {
		return outcome{}, err
	}
	began := time.Now()
	measuring.Store(true)
	if err := pause(ctx, a.time); err != nil {
		return outcome{}, err
	}
	measuring.Store(false)
	elapsed := time.Since(began)
	to, err := a.mark(ctx)
	if err != nil {
		return outcome{}, err
	}
	own = cpuTime() - own
	stop.Store(true)
	askers.Wait()
	if err := context.Cause(ctx); err != nil {
		return outcome{}, err
	}
	return a.result(ctx, took, elapsed, own+to.CPU-from.CPU, asked.Load())
}

// askOn asks until it is told to stop, and keeps how long each took while it
// is measured.
func (a asking) askOn(ctx context.Context, asker uint32, stop, measuring *atomic.Bool, took *[]time.Duration) (n uint64, err error) {
	for !stop.Load() {
		n++
		began := time.Now()
		if err := a.ask(ctx, asker, n); err != nil {
			return n, fmt.Errorf("bench: ask %d of asker %d: %w", n, asker, err)
		}
		if measuring.Load() {
			*took = append(*took, time.Since(began))
		}
	}
	return n, nil
}

// result adds up, with what the other side has checked.
func (a asking) result(ctx context.Context, took [][]time.Duration, elapsed, cpu time.Duration, asked uint64) (outcome, error) {
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	if len(all) == 0 {
		return outcome{}, fmt.Errorf("bench: no answer within %v", a.time)
	}
	m, err := a.mark(ctx)
	if err != nil {
		return outcome{}, err
	}
	return outcome{
		Values: map[string]float64{
			"p50":  microseconds(percentile(all, 0.5)),
			"p99":  microseconds(percentile(all, 0.99)),
			"rate": float64(len(all)) / elapsed.Seconds(),
		},
		CPU:  microseconds(cpu) / float64(len(all)),
		Lost: asked - min(asked, m.Totals.Received), OutOfOrder: m.Totals.OutOfOrder, Duplicated: m.Totals.Duplicated,
	}, damage(m.Totals)
}
