// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
)

// Questions and answers. Run starts the askers and lets measure open the windows of time, in
// which askOn keeps how long each answer took; result and latencies make figures of that.

// Asking measures questions and answers.
type Asking struct {
	Askers int
	Time   time.Duration
	// Ask asks once as one of the askers. An answer to another question is an error.
	Ask func(ctx context.Context, asker uint32, seq uint64) error
	// Mark returns the progress of the receivers.
	Mark MarkFunction

	// Pairs, if not zero, is how many times one situation and then another one are measured, in
	// turns within Time: what moves both, such as other work on the machine, moves them
	// together. Other begins or ends the other situation.
	Pairs int
	Other func(on bool)
}

// Run asks for a while. The values are p50 and p99 in microseconds and the rate per
// second. With Pairs these are of the other situation, "first-p50" and "first-p99" are of
// the first one, and "p99-ratio" is the median of the pairs' ratios of the other's p99 to the
// first one's.
func (a Asking) Run(ctx context.Context) (figure.Outcome, error) {
	var window atomic.Uint64
	var elapsed, cpu time.Duration
	took := make([][][]time.Duration, a.Askers)
	for i := range took {
		took[i] = make([][]time.Duration, a.windows())
	}
	asked, err := beside(ctx, a.Askers, a.Time, func(ctx context.Context, asker uint32, stop *atomic.Bool) (uint64, error) {
		return a.askOn(ctx, asker, stop, &window, took[asker])
	}, func(ctx context.Context) error {
		own := CPUTime()
		from, err := a.Mark(ctx)
		if err != nil {
			return err
		}
		if elapsed, err = a.measure(ctx, &window); err != nil {
			return err
		}
		to, err := a.Mark(ctx)
		cpu = CPUTime() - own + to.CPU - from.CPU
		return err
	})
	if err != nil {
		return figure.Outcome{}, err
	}
	return a.result(ctx, took, elapsed, cpu, asked)
}

// windows returns into how many parts the measuring time is cut.
func (a Asking) windows() int { return max(1, 2*a.Pairs) }

// measure has answers taken into one window after the other, which are counted from 1, and
// returns how long they were together.
func (a Asking) measure(ctx context.Context, window *atomic.Uint64) (elapsed time.Duration, err error) {
	each := a.Time / time.Duration(a.windows())
	for i := range a.windows() {
		if a.Pairs > 0 {
			a.Other(i%2 == 1)
			if err := Pause(ctx, each/10); err != nil { // What has begun before ends.
				return 0, err
			}
		}
		began := time.Now()
		window.Store(uint64(i) + 1)
		if err := Pause(ctx, each); err != nil {
			return 0, err
		}
		window.Store(0)
		elapsed += time.Since(began)
	}
	return elapsed, nil
}

// askOn asks until it is told to stop, and keeps how long each answer took that came in a
// window.
func (a Asking) askOn(ctx context.Context, asker uint32, stop *atomic.Bool, window *atomic.Uint64, took [][]time.Duration) (n uint64, err error) {
	for !stop.Load() {
		n++
		began := time.Now()
		if err := a.Ask(ctx, asker, n); err != nil {
			return n, fmt.Errorf("bench: ask %d of asker %d: %w", n, asker, err)
		}
		if w := window.Load(); w > 0 {
			took[w-1] = append(took[w-1], time.Since(began))
		}
	}
	return n, nil
}

// result computes the outcome, with what the other side has checked.
func (a Asking) result(ctx context.Context, took [][][]time.Duration, elapsed, cpu time.Duration, asked uint64) (figure.Outcome, error) {
	windows, count := make([][]time.Duration, a.windows()), 0
	for _, t := range took {
		for w := range t {
			windows[w] = append(windows[w], t[w]...)
			count += len(t[w])
		}
	}
	for _, w := range windows {
		if len(w) == 0 {
			return figure.Outcome{}, fmt.Errorf("bench: no answer within %v", a.Time/time.Duration(len(windows)))
		}
	}
	m, err := a.Mark(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	values := a.latencies(windows)
	values["rate"] = float64(count) / elapsed.Seconds()
	return figure.Outcome{
		Values: values,
		CPU:    Microseconds(cpu) / float64(count),
		Lost:   asked - min(asked, m.Totals.Received), OutOfOrder: m.Totals.OutOfOrder, Duplicated: m.Totals.Duplicated,
	}, m.Totals.Err()
}

// latencies computes the percentiles of the windows, and compares those of pairs.
func (a Asking) latencies(windows [][]time.Duration) map[string]float64 {
	values := map[string]float64{}
	percentiles := func(prefix string, all []time.Duration) {
		values[prefix+"p50"] = Microseconds(figure.Percentile(all, 0.5))
		values[prefix+"p99"] = Microseconds(figure.Percentile(all, 0.99))
	}
	if a.Pairs == 0 {
		percentiles("", windows[0])
		return values
	}
	var first, other []time.Duration
	var ratios []float64
	for i := range a.Pairs {
		f, o := windows[2*i], windows[2*i+1]
		first, other = append(first, f...), append(other, o...)
		ratios = append(ratios, float64(figure.Percentile(o, 0.99))/float64(figure.Percentile(f, 0.99)))
	}
	percentiles("first-", first)
	percentiles("", other)
	values["p99-ratio"] = figure.Median(ratios)
	return values
}
