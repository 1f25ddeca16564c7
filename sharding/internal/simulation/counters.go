// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/machine"
	world "github.com/quorate/quorate/simulation"
)

// ticksPerNano is the rate of the counters of all processors.
const ticksPerNano = 2.45

// lookEvery is the time between two looks at the standing, besides those for messages.
const lookEvery = 5 * time.Millisecond

type (
	checkTimer struct{} // The node reads its clock for its heartbeats.
	lookTimer  struct{} // The node looks whether it has standing.
)

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

// held reports whether the clock has not passed an instant, as the runtime finds that out,
// and whether the reading was in full.
func (w *watch) held(until machine.Instant) (held, full bool) {
	now := w.reader.Read()
	if !now.Full() && !now.NotAfter(until, w.margin) {
		now = w.reader.ReadInFull()
	}
	return now.NotAfter(until, w.margin), now.Full()
}

// held reports whether the node may host, as far as it knows: it may spare a reading of its
// clock, but what it finds out must be true.
func (c *Cells) held() bool {
	held, full := c.watch.held(c.until)
	if held = held && !c.ended; full {
		c.ledger.counts.Readings++
	} else {
		c.ledger.counts.Spared++
	}
	if held != c.standing(c.now) {
		c.ledger.violate("%v at %v takes itself to have standing, which ended at %v: %v", c.self, c.now, c.until, held)
	}
	return held
}

// check compares the counter with the clock, as the driver of a node does whenever it sends
// a heartbeat.
func (c *Cells) check() {
	if c.watch.every > 0 {
		c.watch.filter.Check()
		c.out.Arm(checkTimer{}, c.now.Add(c.watch.every))
	}
}

// look looks at the standing as a message would, again and again.
func (c *Cells) look() {
	if c.watch.every > 0 {
		c.held()
		c.out.Arm(lookTimer{}, c.now.Add(lookEvery))
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
