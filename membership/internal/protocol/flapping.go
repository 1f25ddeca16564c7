// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// flapping keeps this node's unreachable records about members that flap: that are accused and
// taken back again and again. Each record and its end begin the stable view anew, so that nobody
// would ever decide about such a member, while each record costs it a part of its standing. The
// record that makes flapsMost within flapWindow is kept until the member has answered without
// a pause for as long as a decision takes. Then the members of a side see one view, and either the
// strategy decides by it, or the member has shown that it is well.
//
// Only this node's own records count: those of others may be about another link.
type flapping struct {
	*core

	// of has the members that this node has accused lately, or accuses. On a ring they may get no
	// heartbeats for a while, and be no better afterwards.
	of map[gossip.NodeID]*flaps
}

// flaps are the unreachable records that this node made about one member.
type flaps struct {
	accused []machine.Instant // When they were made, those within flapWindow before the last one.
	steady  machine.Instant   // Since when the member has answered without a pause after the last one; zero if it has not.
	heard   machine.Instant   // When it answered last.
}

const (
	flapWindow = time.Minute
	flapsMost  = 3
)

func newFlapping(c *core) *flapping { return &flapping{core: c, of: map[gossip.NodeID]*flaps{}} }

// accuse notes that this node accuses a member, and returns what that means for the record, empty if
// it is taken back at the next answer.
func (f *flapping) accuse(n gossip.NodeID) string {
	old := func(at machine.Instant) bool { return f.now.Mono.Sub(at) >= flapWindow }
	maps.DeleteFunc(f.of, func(n gossip.NodeID, of *flaps) bool {
		return old(of.accused[len(of.accused)-1]) && f.ownRecord(n) != gossip.Unreachable
	})
	of := f.of[n]
	if of == nil {
		of = &flaps{}
		f.of[n] = of
	}
	of.accused = append(slices.DeleteFunc(of.accused, old), f.now.Mono)
	of.steady = 0
	if !of.flaps() {
		return ""
	}
	return fmt.Sprintf("; accused %d times within %v: kept until it has answered for %v without a pause", len(of.accused), flapWindow, f.steadyAfter())
}

// flaps tells whether the last record is one that is kept.
func (of *flaps) flaps() bool { return len(of.accused) >= flapsMost }

// hears notes an answer of a member. A pause that nobody is accused for is none.
func (f *flapping) hears(n gossip.NodeID, at machine.Instant) {
	of := f.of[n]
	if of == nil {
		return
	}
	if of.steady == 0 || at.Sub(of.heard) > f.cfg.FailureDetector.AcceptableHeartbeatPause {
		of.steady = at
	}
	of.heard = at
}

// wake forgets what was counted before this node slept. Where processes do not run, all members seem to flap,
// and whom this node misses by its own pauses it would keep accused.
func (f *flapping) wake() { clear(f.of) }

// holds tells whether the record about a member that answers is kept.
func (f *flapping) holds(n gossip.NodeID) bool {
	of := f.of[n]
	return of != nil && of.flaps() && (of.steady == 0 || f.now.Mono.Sub(of.steady) < f.steadyAfter())
}

// steadyAfter is how long a decision takes at most from a record on: news of it spreads, the
// view is stable, and the strategy is asked.
func (f *flapping) steadyAfter() time.Duration {
	return downing.Spread(len(f.state.Members())) + f.stableAfter() + f.deps.Downing.Limit
}
