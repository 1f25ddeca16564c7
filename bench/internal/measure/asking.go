// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/statistics"
)

// Asking measures questions and answers.
type Asking struct {
	Askers int
	Time   time.Duration
	// Ask asks once as one of the askers. An answer to another question is an error.
	Ask func(ctx context.Context, asker uint32, seq uint64) error
	// Mark returns the progress of the receivers.
	Mark func(context.Context) (Mark, error)
}

// Run asks for a while. The values are p50 and p99 in microseconds and the rate per
// second.
func (a Asking) Run(ctx context.Context) (process.Outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop, measuring atomic.Bool
	var asked atomic.Uint64
	took := make([][]time.Duration, a.Askers)
	var askers sync.WaitGroup
	// Owned by Run, which waits for them: they end with stop or ctx.
	for i := range a.Askers {
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
	if err := Pause(ctx, a.Time/4); err != nil {
		return process.Outcome{}, err
	}
	own := CPUTime()
	from, err := a.Mark(ctx)
	if err != nil {
		return process.Outcome{}, err
	}
	began := time.Now()
	measuring.Store(true)
	if err := Pause(ctx, a.Time); err != nil {
		return process.Outcome{}, err
	}
	measuring.Store(false)
	elapsed := time.Since(began)
	to, err := a.Mark(ctx)
	if err != nil {
		return process.Outcome{}, err
	}
	own = CPUTime() - own
	stop.Store(true)
	askers.Wait()
	if err := context.Cause(ctx); err != nil {
		return process.Outcome{}, err
	}
	return a.result(ctx, took, elapsed, own+to.CPU-from.CPU, asked.Load())
}

// askOn asks until it is told to stop, and keeps how long each answer took during the
// measuring time.
func (a Asking) askOn(ctx context.Context, asker uint32, stop, measuring *atomic.Bool, took *[]time.Duration) (n uint64, err error) {
	for !stop.Load() {
		n++
		began := time.Now()
		if err := a.Ask(ctx, asker, n); err != nil {
			return n, fmt.Errorf("bench: ask %d of asker %d: %w", n, asker, err)
		}
		if measuring.Load() {
			*took = append(*took, time.Since(began))
		}
	}
	return n, nil
}

// result computes the outcome, with what the other side has checked.
func (a Asking) result(ctx context.Context, took [][]time.Duration, elapsed, cpu time.Duration, asked uint64) (process.Outcome, error) {
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	if len(all) == 0 {
		return process.Outcome{}, fmt.Errorf("bench: no answer within %v", a.Time)
	}
	m, err := a.Mark(ctx)
	if err != nil {
		return process.Outcome{}, err
	}
	return process.Outcome{
		Values: map[string]float64{
			"p50":  Microseconds(statistics.Percentile(all, 0.5)),
			"p99":  Microseconds(statistics.Percentile(all, 0.99)),
			"rate": float64(len(all)) / elapsed.Seconds(),
		},
		CPU:  Microseconds(cpu) / float64(len(all)),
		Lost: asked - min(asked, m.Totals.Received), OutOfOrder: m.Totals.OutOfOrder, Duplicated: m.Totals.Duplicated,
	}, m.Totals.Err()
}
