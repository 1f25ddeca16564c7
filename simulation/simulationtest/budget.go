// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest

import (
	"testing"

	"github.com/quorate/quorate/simulation"
)

// Budget bounds the seeds of a test by what their worlds do: what a seed costs depends on the world, what an
// event costs hardly does.
//
//	b := simulationtest.Within(t, 2, 100_000)
//	for seed := range b.Seeds {
//		w := simulation.New(simulation.Options{Seed: seed})
//		b.Count(w)
//		simulationtest.RequireRun(t, seed, w.Run(time.Minute))
//	}
type Budget struct {
	first, least uint64
	asked        bool // The environment says how many seeds there are.
	events       uint64
	world        *simulation.World // The world of the present seed; nil before it is known.
	spent        uint64            // What the worlds before it have handled.
	ran          uint64
}

// Within returns a budget that lasts until the worlds of a test have handled so many events, and for at least
// so many seeds; with the build tag seeds for [Times] as much of both. The environment says otherwise as it does to
// [Seeds].
func Within(t testing.TB, least int, events uint64) *Budget {
	t.Helper()
	b := &Budget{events: Times * events}
	b.first, b.least = Seeds(t, Times*least)
	_, one := number(t, seedVariable)
	_, some := number(t, seedsVariable)
	b.asked = one || some
	return b
}

// Seeds yields the seeds, one after the other.
func (b *Budget) Seeds(yield func(seed uint64) bool) {
	for b.ran < b.least || !b.asked && b.spent < b.events {
		if b.ran++; !yield(b.first + b.ran - 1) {
			return
		}
		if b.world == nil && !b.asked && b.events > 0 {
			panic("simulationtest: a seed without a world that counts")
		}
		if b.world != nil {
			b.spent += b.world.Stats().Events
		}
		b.world = nil
	}
}

// Count has a world count, which is that of the present seed. It may be called before the world runs or after.
func (b *Budget) Count(w *simulation.World) { b.world = w }

// Ran returns how many seeds there have been, the present one included.
func (b *Budget) Ran() int { return int(b.ran) }
