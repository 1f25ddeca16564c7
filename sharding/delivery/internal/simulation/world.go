// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/sharding/delivery/internal/producer"
	world "github.com/quorate/quorate/simulation"
)

// The world: its size, the network, what happens to whom, and the end. Producers are in producer.go,
// entities in entity.go.

// config is that of all producers.
func config() producer.Config {
	return producer.Config{
		Messages: 60, Bytes: 1 << 20, PerEntity: 25, Frame: 12, FrameBytes: 1 << 10, Calls: 3,
		RetryMin: 50 * time.Millisecond, RetryMax: 5 * time.Second,
	}
}

// Counts sum up a run, so that a test can see that it was not an idle one.
type Counts struct {
	Accepted, Refused, Confirmed, Handled, Again   int
	Frames, Lost, Doubled, Late, Nonsense, Probes  int
	Crashes, Restarts, Stops, Closures, Unanswered int
	Failures, Power                                int // Of disks.
	Lures                                          int // Messages with forged records.
}

// World is producers and entities.
type World struct {
	*world.World

	rand      *rand.Rand
	files     bool // Queues are files.
	calm      bool
	producers []*sender
	entities  []*entity
	handled   map[string]int    // How often a message was handled, in all.
	numbers   map[string]uint64 // The number under which a message was sent.
	accepted  map[string]bool   // What a producer has accepted.
	Counts    Counts
}

// Entities is the usual number of entities.
const Entities = 4

const (
	producers = 3
	faults    = 2 * time.Minute
	recovery  = 90 * time.Second
	timeout   = 2 * time.Second
)

// New returns a world with some entities that has not begun.
func New(seed uint64, entities int, set ...func(*world.Options)) *World {
	return build(world.Options{Seed: seed, Scenario: "sharding-delivery"}, false, entities, set)
}

// NewFiles returns a world whose producers have their queues in files, on disks of their own.
func NewFiles(seed uint64, entities int, set ...func(*world.Options)) *World {
	return build(world.Options{Seed: seed, Scenario: "sharding-outbox"}, true, entities, set)
}

func build(base world.Options, files bool, entities int, set []func(*world.Options)) *World {
	for _, f := range set {
		f(&base)
	}
	w := &World{World: world.New(base), files: files, handled: map[string]int{}, numbers: map[string]uint64{}, accepted: map[string]bool{}}
	w.rand = w.Source(61)
	for i := range entities {
		e := &entity{w: w, id: fmt.Sprintf("e%d", i), saved: i%2 == 0}
		e.begin()
		w.entities = append(w.entities, e)
	}
	for i := range producers {
		p := &sender{w: w, name: fmt.Sprintf("p%d", i), queued: i != 0, sent: map[string]int{}}
		if files && p.queued {
			p.disk = newBox(p)
		}
		w.producers = append(w.producers, p)
		p.begin()
		p.client()
	}
	w.trouble()
	return w
}

func (w *World) chance(p float64) bool              { return !w.calm && w.rand.Float64() < p }
func (w *World) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// carry has something arrive, once, never or twice, soon or late.
func (w *World) carry(f func()) {
	if w.chance(0.12) {
		w.Counts.Lost++
		return
	}
	copies := 1
	if w.chance(0.12) {
		w.Counts.Doubled++
		copies = 2
	}
	for range copies {
		delay := w.upTo(40 * time.Millisecond)
		if w.chance(0.1) {
			w.Counts.Late++
			delay = w.upTo(15 * time.Second)
		}
		w.After(delay, f)
	}
}

// trouble lets faults strike until their time is over.
func (w *World) trouble() {
	w.After(w.upTo(3*time.Second), func() {
		if w.Now() > faults {
			w.recover()
			return
		}
		if w.files && w.rand.IntN(3) == 0 {
			w.producers[1+w.rand.IntN(producers-1)].disk.strike()
			w.trouble()
			return
		}
		e := w.entities[w.rand.IntN(len(w.entities))]
		switch w.rand.IntN(6) {
		case 0, 1:
			w.Counts.Restarts++
			e.begin()
		case 2:
			w.Counts.Crashes++
			w.producers[w.rand.IntN(len(w.producers))].crash()
		case 3:
			w.Counts.Stops++
			e.still = w.Now() + w.upTo(20*time.Second)
		case 4:
			w.Counts.Closures++
			e.inbox.Window = w.rand.IntN(10) - 2 // Below zero: closed. Zero: the default.
		case 5:
			e.nonsense = w.Now() + w.upTo(10*time.Second)
		}
		w.trouble()
	})
}

func (w *World) recover() {
	w.calm = true
	for _, e := range w.entities {
		e.still, e.nonsense, e.inbox.Window = 0, 0, 5
	}
	for _, p := range w.producers {
		if p.disk != nil {
			p.disk.repair()
		}
	}
}

// Finish runs the world to its end, and looks at what is left.
func (w *World) Finish() error {
	if err := w.Run(faults + recovery); err != nil {
		return err
	}
	for _, p := range w.producers {
		if p.outbox == nil {
			w.Fail(fmt.Errorf("D6: %s does not run %v after the faults", p.name, recovery))
			break
		}
		if held := p.outbox.Held(); held > 0 {
			w.Fail(fmt.Errorf("D6: %s holds %d messages %v after the faults", p.name, held, recovery))
		}
		for to, n := range p.sent {
			for i := p.lost[to] + 1; i <= n; i++ {
				if text := fmt.Sprintf("%s/%s/%d", p.name, to, i); w.accepted[text] && w.handled[text] == 0 {
					w.Fail(fmt.Errorf("D6: %s was accepted, and never handled", text))
				}
			}
		}
	}
	return w.Failure()
}

// RunFiles runs a world with queues in files.
func RunFiles(seed uint64, entities int, set ...func(*world.Options)) (*World, error) {
	w := NewFiles(seed, entities, set...)
	return w, w.Finish()
}

// Run runs a world with a seed.
func Run(seed uint64, entities int, set ...func(*world.Options)) (*World, error) {
	w := New(seed, entities, set...)
	return w, w.Finish()
}
