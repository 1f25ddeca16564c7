// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
)

// Flood measures messages per second.
type Flood struct {
	Senders int
	Time    time.Duration
	// Send sends as one of the senders until stop is set, and returns how many messages
	// it sent. All of them have left the sender when it returns.
	Send func(ctx context.Context, sender uint32, stop *atomic.Bool) (uint64, error)
	// Mark returns the progress of the receivers.
	Mark MarkFunction
}

// DrainTimeout is how long sent messages may take to arrive.
const DrainTimeout = 20 * time.Second

// Run sends for a while, measures in the middle of it, and then waits until
// everything has arrived.
func (f Flood) Run(ctx context.Context) (out figure.Outcome, err error) {
	sent, err := beside(ctx, f.Senders, f.Time, f.Send, func(ctx context.Context) (err error) {
		out, err = f.window(ctx)
		return err
	})
	if err != nil {
		return figure.Outcome{}, err
	}
	return f.drain(ctx, out, sent)
}

// beside measures while so many senders send, each until stop is set, of which a quarter of the measuring time
// passes before. It returns how many messages they sent together. One that fails ends all.
func beside(
	ctx context.Context, senders int, during time.Duration, send func(ctx context.Context, sender uint32, stop *atomic.Bool) (uint64, error),
	measure func(context.Context) error,
) (uint64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop atomic.Bool
	var sent atomic.Uint64
	var sending sync.WaitGroup
	// Owned by this function, which waits for them: they end with stop or ctx.
	for i := range senders {
		sending.Go(func() {
			n, err := send(ctx, uint32(i), &stop)
			sent.Add(n)
			if err != nil {
				cancel(err)
			}
		})
	}
	defer sending.Wait()
	defer stop.Store(true)
	if err := Pause(ctx, during/4); err != nil {
		return 0, err
	}
	if err := measure(ctx); err != nil {
		return 0, err
	}
	stop.Store(true)
	sending.Wait()
	return sent.Load(), context.Cause(ctx)
}

// window measures from one mark to another.
func (f Flood) window(ctx context.Context) (figure.Outcome, error) {
	own := CPUTime()
	from, err := f.Mark(ctx)
	if err != nil {
		return figure.Outcome{}, err
	}
	to, stall, err := f.look(ctx, from)
	if err != nil {
		return figure.Outcome{}, err
	}
	own = CPUTime() - own
	n := float64(to.Totals.Received - from.Totals.Received)
	if n == 0 {
		return figure.Outcome{}, fmt.Errorf("bench: nothing arrived within %v", DrainTimeout)
	}
	return figure.Outcome{
		Values: map[string]float64{"rate": n / (to.At - from.At).Seconds(), "stall": Milliseconds(stall)},
		CPU:    Microseconds(own+to.CPU-from.CPU) / n,
	}, nil
}

// lookEvery is how often the arrival of messages is checked.
const lookEvery = 20 * time.Millisecond

// look waits until the measuring time is over, and longer if no message has arrived by
// then, as on a machine that is too busy. It returns the last mark and the longest time
// without an arrival.
func (f Flood) look(ctx context.Context, from Mark) (last Mark, stall time.Duration, err error) {
	last, moved := from, from.At
	for last.At-from.At < f.Time || last.Totals.Received == from.Totals.Received && last.At-from.At < DrainTimeout {
		if err := Pause(ctx, min(lookEvery, f.Time)); err != nil {
			return last, 0, err
		}
		now, err := f.Mark(ctx)
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

// drain waits until all messages have arrived, or no more come.
func (f Flood) drain(ctx context.Context, out figure.Outcome, sent uint64) (figure.Outcome, error) {
	var t Totals
	_, err := Poll(ctx, lookEvery, func(waited time.Duration) (bool, error) {
		m, err := f.Mark(ctx)
		t = m.Totals
		return t.Received >= sent || waited > DrainTimeout, err
	})
	if err != nil {
		return figure.Outcome{}, err
	}
	out.Lost, out.OutOfOrder, out.Duplicated = sent-min(t.Received, sent), t.OutOfOrder, t.Duplicated
	return out, t.Err()
}
