// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/runtime"
	world "github.com/quorate/quorate/simulation"
)

// ticksPerNano is the rate of the counters of all processors.
const ticksPerNano = 2.45

// lookEvery is the time between two looks at the standing, besides those for messages.
const lookEvery = 5 * time.Millisecond

// watch is how a node of the simulation reads its clock before messages: as the runtime does,
// by a counter, which goes wrong now and then if the behaviour says so.
type watch struct {
	reader machine.Reader
	filter *machine.Filter
	every  time.Duration // The heartbeat interval; zero: the counter never goes wrong.
	margin time.Duration
}

func newWatch(env world.Env, every time.Duration, faults bool) watch {
	counter := rightCounter(env.World)
	if !faults {
		every = 0
	} else {
		counter = wrongCounter(env.World, env.Rand)
	}
	filter := machine.NewFilter(func() machine.Instant { return env.Clock.Now().Mono }, counter)
	return watch{reader: filter.Reader(), filter: filter, every: every, margin: every + machine.FilterMargin}
}

// HeldAt reports whether the node may host at a moment.
func (c *Cells) HeldAt(now machine.Instant) bool { return c.standing(now) }

// HeldThrough reports whether a reading of the clock proves that the node may host. A
// reading may have been spared, but what it proves must be true.
func (c *Cells) HeldThrough(r machine.Reading) bool {
	held := r.NotAfter(c.until, c.watch.margin) && !c.ended
	if r.Full() {
		c.ledger.counts.Readings++
	} else if held {
		c.ledger.counts.Spared++
	}
	if held && !c.standing(c.looked()) || r.Full() && !held && c.standing(c.now) {
		c.ledger.violate("I14: %v at %v takes itself to have standing, which ended at %v: %v", c.self, c.now, c.until, held)
	}
	return held
}

// looked is when a worker that begins something now has looked at the clock at the earliest: it may have waited for a
// processor since (sharding/doc.go, "Between a look and an act the process may freeze: only the epoch closes that
// gap.").
func (c *Cells) looked() machine.Instant { return c.now.Add(-c.behaviour.Starved) }

// check compares the counter with the clock, as the driver of a node does whenever it sends
// a heartbeat.
func (c *Cells) check() {
	if c.watch.every > 0 {
		c.watch.filter.Check()
		c.after(c.watch.every, c.check)
	}
}

// look looks at the standing as a message would, again and again.
func (c *Cells) look() {
	if c.watch.every > 0 {
		runtime.Look(&c.watch.reader, c)
		c.after(lookEvery, c.look)
	}
}

// rightCounter returns a counter that runs at one rate.
func rightCounter(w *world.World) machine.Counter {
	return func() (uint64, uint32) { return uint64(ticksPerNano * float64(w.Now())), 0 }
}

// wrongCounter returns a counter that goes wrong every few seconds: it stands still, slows
// down, runs ahead, jumps or goes back, and runs on at its rate after some time.
func wrongCounter(w *world.World, r *rand.Rand) machine.Counter {
	ticks, rate, last := 1e15, ticksPerNano, w.Now()
	next := last + time.Duration(r.Int64N(int64(5*time.Second)))
	return func() (uint64, uint32) {
		for now := w.Now(); last < now; {
			to := min(now, next)
			ticks += rate * float64(to-last)
			if last = to; last < next {
				break
			}
			next += time.Duration(r.Int64N(int64(4 * time.Second)))
			if rate != ticksPerNano {
				rate = ticksPerNano
				continue
			}
			switch r.IntN(6) {
			case 0:
				rate = 0
			case 1:
				rate *= math.Pow(10, 3*r.Float64())
			case 2:
				ticks += 1e10 * (2*r.Float64() - 1)
			default:
				rate *= math.Pow(10, -7*r.Float64())
			}
		}
		return uint64(ticks), 0
	}
}
