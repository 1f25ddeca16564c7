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

// mark is how far the receivers are at one moment.
type mark struct {
	At     time.Duration `json:"at"` // By the clock of the receiving process, since any moment.
	CPU    time.Duration `json:"cpu"`
	Totals totals        `json:"totals"`
}

// stopwatch makes marks of receivers in this process. The processor time is
// left out when the senders live in it too, whose time is taken apart.
type stopwatch struct {
	began time.Time
	tally *tally
	cpu   func() time.Duration
}

// newStopwatch returns a stopwatch for the process of the receivers.
func newStopwatch(t *tally, cpu func() time.Duration) *stopwatch {
	return &stopwatch{began: time.Now(), tally: t, cpu: cpu}
}

// noCPU is the processor time of receivers that live with their senders.
func noCPU() time.Duration { return 0 }

// mark returns how far the receivers are.
func (w *stopwatch) mark(context.Context) (mark, error) {
	return mark{At: time.Since(w.began), CPU: w.cpu(), Totals: w.tally.totals()}, nil
}

// The requests that a receiving process answers.
const requestMark = "mark"

// serve answers requests for marks until the parent is gone.
func (w *stopwatch) serve(k *link) error {
	return k.serve(func(request string) (any, error) {
		if request != requestMark {
			return nil, fmt.Errorf("bench: request %q is not known", request)
		}
		return w.mark(context.Background())
	})
}

// remoteMark asks another process for a mark.
func remoteMark(p *process) func(context.Context) (mark, error) {
	return func(ctx context.Context) (m mark, err error) {
		err = p.call(ctx, requestMark, &m)
		return m, err
	}
}

// flood measures messages a second.
type flood struct {
	senders int
	time    time.Duration
	// send sends as one of the senders until stop is set, and returns how many it
	// sent. What it sent has left it when it returns.
	send func(ctx context.Context, sender uint32, stop *atomic.Bool) (uint64, error)
	mark func(context.Context) (mark, error)
}

// drainLimit is how long what was sent may take to arrive.
const drainLimit = 20 * time.Second

// run sends for a while, measures in the middle of it, and then waits until
// everything has arrived.
func (f flood) run(ctx context.Context) (outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop atomic.Bool
	var sent atomic.Uint64
	var senders sync.WaitGroup
	// Owned by run, which waits for them: they end with stop or ctx.
	for i := range f.senders {
		senders.Go(func() {
			n, err := f.send(ctx, uint32(i), &stop)
			sent.Add(n)
			if err != nil {
				cancel(err)
			}
		})
	}
	defer senders.Wait()
	defer stop.Store(true)
	if err := pause(ctx, f.time/4); err != nil {
		return outcome{}, err
	}
	out, err := f.window(ctx)
	if err != nil {
		return outcome{}, err
	}
	stop.Store(true)
	senders.Wait()
	if err := context.Cause(ctx); err != nil {
		return outcome{}, err
	}
	return f.drain(ctx, out, sent.Load())
}

// window measures.
func (f flood) window(ctx context.Context) (outcome, error) {
	own := cpuTime()
	from, err := f.mark(ctx)
	if err != nil {
		return outcome{}, err
	}
	to, stall, err := f.look(ctx, from)
	if err != nil {
		return outcome{}, err
	}
	own = cpuTime() - own
	n := float64(to.Totals.Received - from.Totals.Received)
	if n == 0 {
		return outcome{}, fmt.Errorf("bench: nothing arrived within %v", drainLimit)
	}
	return outcome{
		Values: map[string]float64{"rate": n / (to.At - from.At).Seconds(), "stall": milliseconds(stall)},
		CPU:    microseconds(own+to.CPU-from.CPU) / n,
	}, nil
}

// lookEvery is how often is looked whether messages arrive.
const lookEvery = 20 * time.Millisecond

// look waits until the measuring time is over, and longer when nothing has
// arrived until then, as on a machine that is too busy. It returns the last mark
// and the longest time in which nothing arrived.
func (f flood) look(ctx context.Context, from mark) (last mark, stall time.Duration, err error) {
	last, moved := from, from.At
	for last.At-from.At < f.time || last.Totals.Received == from.Totals.Received && last.At-from.At < drainLimit {
		if err := pause(ctx, min(lookEvery, f.time)); err != nil {
			return last, 0, err
		}
		now, err := f.mark(ctx)
		if err != nil {
			return last, 0, err
		}
		stall = max(stall, now.At-moved)
		if now.Totals.Received != last.Totals.Received {
			moved = now.At
		}
		last = now
	}
	return last, stall, nil
}

// drain waits until everything has arrived, or nothing more comes.
func (f flood) drain(ctx context.Context, out outcome, sent uint64) (outcome, error) {
	deadline := time.Now().Add(drainLimit)
	for {
		m, err := f.mark(ctx)
		if err != nil {
			return outcome{}, err
		}
		t := m.Totals
		if t.Received >= sent || time.Now().After(deadline) {
			out.Lost, out.OutOfOrder, out.Duplicated = sent-min(t.Received, sent), t.OutOfOrder, t.Duplicated
			return out, damage(t)
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return outcome{}, err
		}
	}
}

// damage is the error of a run in which messages came otherwise than sent.
func damage(t totals) error {
	if t.Damaged > 0 {
		return fmt.Errorf("bench: %d messages had another sender or length than was sent", t.Damaged)
	}
	return nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// microseconds is a duration as a number.
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
