// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"time"

	"github.com/quorate/quorate/machine"
)

// The load of a region, on the node that has it: the machine has it measured, and the loadMeter damps
// what comes. It travels with each registration, in a few bytes.

// MeasureLoad is an effect: answer with [LoadMeasurement] as soon as that is possible. An answer that is lost
// does no harm, since the next one covers its time.
type MeasureLoad struct{ Kind string }

// LoadMeasurement is the input by which the runtime says how busy a kind keeps this node.
type LoadMeasurement struct {
	Kind string
	// Busy is how long entities of the kind have been handling messages on this node, all
	// together; it only grows.
	Busy time.Duration
	// Processors is how many of them can run at one time.
	Processors int
}

// The pace of the loadMeter: how often the load is measured, and the time over which it is damped. A
// change of the load shows by two thirds after loadWindow.
const (
	measureEvery = 5 * time.Second
	loadWindow   = 20 * time.Second
)

// The units in which a registration tells a load, and its bounds: the use of the node in
// ten-thousandths, and shards in sixteenths.
const (
	LoadFull  = 10_000
	LoadShard = 16
)

// loadMeter has the damped load of a region, and the damped number of shards that cause it. Both are damped alike, so
// that their ratio is what a shard has cost, also while shards come and go.
type loadMeter struct {
	asked  machine.Instant // When the load was measured last; 0: never.
	at     machine.Instant // When the last answer came.
	busy   time.Duration   // What the last answer said.
	use    float64         // The part of the processors that was busy, not bounded.
	shards float64
}

// measures reports whether the load is to be measured again now, and records that it is.
func (m *loadMeter) measures(now machine.Instant) bool {
	if m.asked != 0 && now.Sub(m.asked) < measureEvery {
		return false
	}
	m.asked = now
	return true
}

// record adds a measurement. The first one only says where to count from.
func (m *loadMeter) record(now machine.Instant, measured LoadMeasurement, hosting int) {
	since, busy := now.Sub(m.at), measured.Busy-m.busy
	first := m.at == 0
	if !first && since <= 0 || measured.Processors <= 0 {
		return
	}
	m.at, m.busy = now, measured.Busy
	if first {
		return
	}
	weight := float64(since) / float64(since+loadWindow)
	sample := float64(max(busy, 0)) / (float64(since) * float64(measured.Processors))
	m.use += weight * (sample - m.use)
	m.shards += weight * (float64(hosting) - m.shards)
}

// registered returns the load and its shards in the units of a [Registration].
func (m *loadMeter) registered() (load, shards uint32) {
	return uint32(math.Round(min(m.use, 1) * LoadFull)), uint32(math.Round(m.shards * LoadShard))
}
