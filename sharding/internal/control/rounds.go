// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/machine"
)

// rebalanceGather is how long a coordinator waits after the regions have changed before
// it evens out the load: nodes often join together.
const rebalanceGather = 100 * time.Millisecond

// rounds is the part of a coordinator that knows when the strategy is to be asked again what
// should move, and how the present run of rounds goes. Invariants, between steps:
//
//	B1  once the load has been watched, the timer stays armed;
//	B2  moved, calledOff and lost count the moves that have ended since the last run of rounds
//	    came to rest, without those that handed shards back.
type rounds struct {
	env
	armed machine.Instant // When the timer fires; 0: it is not armed.
	due   bool            // The strategy should be asked as soon as nothing else comes first.
	seen  uint64          // The digest of the regions and the fitness, a change of which is a reason to ask.
	asked int             // The number of moves under way after the last answer.

	// The moves of the present run of rounds that have ended, by outcome, and when the run
	// began.
	moved, calledOff, lost int
	since                  machine.Instant
}

// watch arms the timer when the digest of regions and members has changed: a region came, or
// can be given shards again.
func (r *rounds) watch(digest uint64) {
	switch {
	case digest != r.seen:
		r.seen = digest
		r.arm(rebalanceGather)
	case r.armed == 0:
		r.arm(r.kind.timings.RebalanceIdle)
	}
}

// arm arms the timer to fire after a time, unless it fires earlier anyway.
func (r *rounds) arm(after time.Duration) {
	at := r.now().Add(after)
	if r.armed == 0 || at < r.armed {
		r.armed = at
		r.control().out.Arm(rebalanceTimer{r.kind.name}, at)
	}
}

// fired notes that it is time for a look, and arms the timer for the next one.
func (r *rounds) fired() {
	r.armed, r.due = 0, true
	r.arm(r.kind.timings.RebalanceIdle)
}

// isDue reports whether the strategy should be asked: that was put off, or half of the moves
// that were under way after the last answer have ended, so that rounds follow each other.
func (r *rounds) isDue(underWay int) bool {
	if r.asked > 0 && 2*underWay <= r.asked {
		r.asked, r.due = 0, true
	}
	return r.due
}

// setDue says whether the strategy should be asked as soon as nothing else comes first.
func (r *rounds) setDue(due bool) { r.due = due }

// ended notes the end of a move.
func (r *rounds) ended(how Outcome) {
	switch how {
	case OutcomeMoved:
		r.moved++
	case OutcomeCalledOff:
		r.calledOff++
	case OutcomeLost:
		r.lost++
	}
}

// isResting reports whether no run of rounds is under way.
func (r *rounds) isResting(underWay int) bool {
	return underWay == 0 && r.moved+r.calledOff+r.lost == 0
}

// answered takes what an answer of the strategy came to: how many moves were under way before
// and are now, and how many were left out. It records the beginning and the end of a run, and
// the moves that were left out. The rounds between are many, and not recorded.
func (r *rounds) answered(strategy, reason string, before, underWay, undone int) {
	fresh := r.isResting(before)
	if fresh {
		r.since = r.now()
	}
	r.asked = underWay
	if undone > 0 {
		r.control().out.DecideOften("rebalance", r.kind.name, "left out",
			fmt.Sprintf("%s: %d moves would undo what was moved within the last %v, or be the third of a shard", strategy, undone, r.kind.timings.RebalanceIdle))
	}
	switch {
	case underWay > before && fresh:
		r.control().out.DecideOften("rebalance", r.kind.name, "begins", because(strategy, reason))
	case underWay == 0 && !r.isResting(underWay):
		r.control().out.DecideOften("rebalance", r.kind.name, "rests",
			fmt.Sprintf("%d shards moved, %d called off, %d lost, in %v; %s",
				r.moved, r.calledOff, r.lost, r.now().Sub(r.since), because(strategy, reason)))
		r.moved, r.calledOff, r.lost = 0, 0, 0
	}
}
