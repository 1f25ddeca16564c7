// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// Senders that flood the actors of a library ([Library.tellAll], [tellOn]), and what holds them back where the library
// does not ([window]).

// Ahead is how many messages each sender may be before the receivers, on average of all senders, if nothing else
// holds it back.
const Ahead = 10_000

const (
	localLook  = 2 * time.Millisecond // How often it is looked how far the receivers are, in the same process,
	remoteLook = 5 * time.Millisecond // and in another one.
	giveUp     = time.Second          // After this time without an arrival, what has not arrived is lost.
	roomEvery  = 100                  // Messages of a sender from one look for room to the next.
)

// tellAll floods actors. With as many actors as senders each sender has an actor of its own; with more, each sender
// tells all of them in turn.
func (l Library) tellAll(ctx context.Context, s harness.Spec, a Actors, at harness.MarkFunction, every time.Duration) (figure.Outcome, error) {
	if err := prime(ctx, s, a); err != nil {
		return figure.Outcome{}, err
	}
	at = alone(harness.Without(uint64(s.Entities), at))
	w := &window{most: Ahead * int64(s.Senders), every: every}
	room := func(context.Context, int) error { return nil }
	if l.Unbounded {
		room = w.room
	}
	follow, end := context.WithCancel(ctx)
	var following sync.WaitGroup
	// Owned by this function, which ends it and waits for it. It runs also where nobody is held back, so that all
	// libraries bear what it costs to look.
	following.Go(func() { w.follow(follow, at) })
	defer following.Wait()
	defer end()
	return harness.Flood{
		Senders: s.Senders, Time: s.Time, Mark: at,
		Send: func(ctx context.Context, sender uint32, stop *atomic.Bool) (uint64, error) {
			first, count := 0, s.Entities
			if s.Entities == s.Senders {
				first, count = int(sender), 1
			}
			return tellOn(ctx, a, first, count, sender, stop, room)
		},
	}.Run(ctx)
}

// tellOn tells actors in turn until it is told to stop, and returns how many messages were accepted. The numbers of a
// sender begin anew at each actor.
func tellOn(
	ctx context.Context, a Actors, first, count int, sender uint32, stop *atomic.Bool, room func(context.Context, int) error,
) (n uint64, err error) {
	sequences := make([]uint64, count)
	for i := 0; !stop.Load(); i++ {
		if i%roomEvery == 0 {
			if err := room(ctx, roomEvery); err != nil {
				return n, err
			}
		}
		to := i % count
		if err := a.Tell(ctx, first+to, sender, sequences[to]+1); err != nil {
			return n, err
		}
		sequences[to]++
		n++
	}
	return n, nil
}

// alone lets one caller at a time ask for a mark, since a process answers one question at a time.
func alone(at harness.MarkFunction) harness.MarkFunction {
	var mu sync.Mutex
	return func(ctx context.Context) (harness.Mark, error) {
		mu.Lock()
		defer mu.Unlock()
		return at(ctx)
	}
}

// window holds senders back that are too far before the receivers.
type window struct {
	most  int64         // How many messages all senders together may be before the receivers.
	every time.Duration // How often it is looked.
	sent  atomic.Int64
	over  atomic.Int64 // Messages that were received, or are lost.
}

// follow looks again and again how far the receivers are, until the end of ctx.
func (w *window) follow(ctx context.Context, at harness.MarkFunction) {
	var received, lost int64
	moved := time.Now()
	for harness.Pause(ctx, w.every) == nil {
		m, err := at(ctx)
		if err != nil {
			return // Whoever measures gets the same error.
		}
		switch now := int64(m.Totals.Received); {
		case now != received:
			received, moved = now, time.Now()
		case time.Since(moved) > giveUp:
			lost, moved = w.sent.Load()-received, time.Now()
		}
		w.over.Store(received + lost)
	}
}

// room waits until n more messages may be sent.
func (w *window) room(ctx context.Context, n int) error {
	for w.sent.Add(int64(n))-w.over.Load() > w.most {
		w.sent.Add(-int64(n))
		if err := harness.Pause(ctx, w.every); err != nil {
			return err
		}
	}
	return nil
}
