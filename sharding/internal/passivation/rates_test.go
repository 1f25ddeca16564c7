// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// What part of the uses finds its entity in memory, on traces for which the rates of caches in general use are
// known: they were run with otter v2.4.0, theine v0.6.3 and others at a capacity of 1,000. The traces are
// made here, with the parameters at which least-recently-used has the rate that it had there.

// bar is a trace with the rates that are known of it, in percent.
type bar struct {
	name       string
	trace      []uint32
	lru, otter float64
}

// barLimit is the capacity at which the rates of a [bar] are known.
const barLimit = 1000

// bars returns the traces: a law of Zipf over 100,000 keys; the same with two uses of nine of keys that are
// never used again; and a loop over a fifth more keys than have room.
func bars(n int) []bar {
	zipf := bar{name: "zipf", lru: 52.4, otter: 60.9}
	scan := bar{name: "zipf and scan", lru: 38.5, otter: 45.2}
	loop := bar{name: "loop", lru: 0, otter: 74.6}
	z := rand.NewZipf(rand.New(rand.NewPCG(1, 2)), 1.01, 1, 100_000)
	for i := range uint32(n) {
		zipf.trace = append(zipf.trace, uint32(z.Uint64()))
		loop.trace = append(loop.trace, i%(barLimit+barLimit/5))
		if i%9 >= 7 {
			scan.trace = append(scan.trace, 1<<30+i)
		} else {
			scan.trace = append(scan.trace, uint32(z.Uint64()))
		}
	}
	return []bar{zipf, scan, loop}
}

// rate is the part of the uses of a trace that find their key seated, in percent.
func rate(c Config, trace []uint32) float64 {
	return 100 * float64(newRun(c).hits(trace)) / float64(len(trace))
}

// byDefault is the configuration that a node has without another one.
func byDefault(limit int) Config {
	return Config{Limit: limit, Policy: WTinyLFU, Main: Segmented, Protected: 0.8, Window: 0.01}
}

// The default policy is as good as the caches of others, up to one and a half points, and the traces are those
// on which they were measured, as least-recently-used shows.
func TestTheDefaultPolicyIsAsGoodAsCachesInGeneralUse(t *testing.T) {
	for _, b := range bars(400_000) {
		lru, mine := rate(Config{Limit: barLimit, Policy: LeastRecentlyUsed}, b.trace), rate(byDefault(barLimit), b.trace)
		best := 100 * float64(optimum(b.trace, barLimit)) / float64(len(b.trace))
		t.Logf("%-14s least-recently-used %.1f, w-tinylfu %.1f, otter %.1f, optimum %.1f", b.name, lru, mine, b.otter, best)
		require.InDelta(t, b.lru, lru, 1, "%s: another trace than that of the known rates", b.name)
		require.GreaterOrEqual(t, mine, b.otter-1.5, b.name)
		require.LessOrEqual(t, mine, best, b.name)
	}
}
