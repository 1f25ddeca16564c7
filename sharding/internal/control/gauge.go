// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"time"

	"github.com/quorate/quorate/machine"
)

// The load of a region, on the node that has it: the machine has it measured, and the gauge damps
// what comes. It travels with each registration, in a few bytes.

// Measure is an effect: answer with [Measured] as soon as that is possible. An answer that is lost
// does no harm, since the next one covers its time.
type Measure struct{ Kind string }

// Measured is the input by which the runtime says how busy a kind keeps this node.
type Measured struct {
	Kind string
	// Busy is how long entities of the kind have been handling messages on this node, all
	// together; it only grows.
	Busy time.Duration
	// Processors is how many of them can run at one time.
	Processors int
}

// The pace of the gauge: how often the load is measured, and the time over which it is damped. A
// change of the load shows by two thirds after gaugeWindow.
const (
	measureEvery = 5 * time.Second
	gaugeWindow  = 20 * time.Second
)

// The units in which a registration tells a load, and its bounds: the use of the node in
// ten-thousandths, and shards in sixteenths.
const (
	LoadFull  = 10_000
	LoadShard = 16
)

// gauge is the damped load of a region, with the number of shards to which it belongs. Both are
// damped alike, so that their ratio is what a shard has cost, also while shards come and go.
type gauge struct {
	asked  machine.Instant // When the load was measured last; 0: never.
	at     machine.Instant // When the last answer came.
	busy   time.Duration   // What the last answer said.
	use    float64         // The part of the processors that was busy, not bounded.
	shards float64
}

// due reports whether the load should be measured again, and notes that it is.
func (g *gauge) due(now machine.Instant) bool {
	if g.asked != 0 && now.Sub(g.asked) < measureEvery {
		return false
	}
	g.asked = now
	return true
}

// take takes an answer. The first one only says where to count from.
func (g *gauge) take(now machine.Instant, m Measured, hosting int) {
	since, busy := now.Sub(g.at), m.Busy-g.busy
	first := g.at == 0
	if !first && since <= 0 || m.Processors <= 0 {
		return
	}
	g.at, g.busy = now, m.Busy
	if first {
		return
	}
	weight := float64(since) / float64(since+gaugeWindow)
	sample := float64(max(busy, 0)) / (float64(since) * float64(m.Processors))
	g.use += weight * (sample - g.use)
	g.shards += weight * (float64(hosting) - g.shards)
}

// told returns the load and its shards in the units of a registration.
func (g *gauge) told() (load, shards uint32) {
	return uint32(math.Round(min(g.use, 1) * LoadFull)), uint32(math.Round(g.shards * LoadShard))
}
