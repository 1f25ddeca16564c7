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

// flapDetector finds the members that flap: that this node accuses and takes back again and again.
// Each unreachable record, and the end of each, begins the stable view anew. Nobody would ever decide
// about such a member, while each record costs the member a part of its standing. So the record that is
// the last of maxFlaps within flapWindow is kept until the member has answered without a pause for as
// long as a decision takes: then all members of a side see one view, and either the strategy decides by
// that view, or the member has shown that it is well.
//
// Only this node's own records count: those of others may be about another link.
type flapDetector struct {
	*core

	// histories has each member that this node accuses, or has accused within flapWindow. On a ring such a
	// member may get no heartbeats for a while, which does not show that it is well.
	histories map[gossip.NodeID]*flapHistory
}

// flapHistory are the unreachable records that this node made about one member.
type flapHistory struct {
	accused []machine.Instant // When they were made, those within flapWindow before the last one.
	steady  machine.Instant   // Since when the member has answered without a pause after the last one; zero if it has not.
	heard   machine.Instant   // When it answered last.
}

const (
	flapWindow = time.Minute
	maxFlaps   = 3
)

func newFlapDetector(c *core) *flapDetector {
	return &flapDetector{core: c, histories: map[gossip.NodeID]*flapHistory{}}
}

// accuse notes that this node accuses a member, and returns what that means for the record, empty if
// it is taken back at the next answer.
func (f *flapDetector) accuse(n gossip.NodeID) string {
	old := func(at machine.Instant) bool { return f.now.Mono.Sub(at) >= flapWindow }
	maps.DeleteFunc(f.histories, func(n gossip.NodeID, of *flapHistory) bool {
		return old(of.accused[len(of.accused)-1]) && f.ownRecord(n) != gossip.Unreachable
	})
	of := f.histories[n]
	if of == nil {
		of = &flapHistory{}
		f.histories[n] = of
	}
	of.accused = append(slices.DeleteFunc(of.accused, old), f.now.Mono)
	of.steady = 0
	if !of.isFlapping() {
		return ""
	}
	return fmt.Sprintf("; accused %d times within %v: kept until it has answered for %v without a pause", len(of.accused), flapWindow, f.steadyAfter())
}

// isFlapping tells whether the last record is one that is kept.
func (of *flapHistory) isFlapping() bool { return len(of.accused) >= maxFlaps }

// hears notes an answer of a member. A silence for which no member is accused is no pause.
func (f *flapDetector) hears(n gossip.NodeID, at machine.Instant) {
	of := f.histories[n]
	if of == nil {
		return
	}
	if of.steady == 0 || at.Sub(of.heard) > f.cfg.FailureDetector.AcceptableHeartbeatPause {
		of.steady = at
	}
	of.heard = at
}

// wake forgets what was counted before this node itself did not run for a time. Where processes do not run, all
// members seem to flap, and this node would keep accusing those whose answers it has missed by its own pauses.
func (f *flapDetector) wake() { clear(f.histories) }

// holds tells whether the record about a member that answers is kept.
func (f *flapDetector) holds(n gossip.NodeID) bool {
	of := f.histories[n]
	return of != nil && of.isFlapping() && (of.steady == 0 || f.now.Mono.Sub(of.steady) < f.steadyAfter())
}

// steadyAfter is how long a decision about a record takes at most: the news of the record spreads,
// the view is stable, and the strategy is asked.
func (f *flapDetector) steadyAfter() time.Duration {
	return downing.Spread(len(f.state.Members())) + f.stableAfter() + f.deps.Downing.Limit
}
