// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Tells that failed after they were accepted, and have no asker to hear of it: note counts
// one by kind and reason and sets a timer; tell logs the run when the timer fires, and again
// while failures go on; counts and failuresOf give the sums; end logs the rest.

const (
	// lossGather is how long the first failure waits for others before a line is logged:
	// messages that fail with their node fail by the hundred.
	lossGather = time.Second
	// lossEvery is the time between log lines about failures that go on.
	lossEvery = time.Minute
)

// Failures counts tells that failed after they had been accepted, by the error that
// an asker would have got.
type Failures struct {
	// NotDelivered counts tells that a node that stopped gave back, see [ErrNotDelivered].
	NotDelivered uint64
	// UnknownOutcome counts tells that had left this node for a node that is gone, see
	// [ErrUnknownOutcome]. Tells that the other node had acknowledged, and not handled,
	// are not counted: nobody knows of them any more.
	UnknownOutcome uint64
	// EntityFailed counts tells to an entity that failed, see [ErrEntityFailed].
	EntityFailed uint64
	// Overloaded counts tells that met a full mailbox although this node had been told to
	// send no more, see [ErrOverloaded]: that request was lost several times.
	Overloaded uint64
	// Other counts tells that failed for another reason.
	Other uint64
}

// Total is the sum of all fields.
func (f Failures) Total() uint64 {
	return f.NotDelivered + f.UnknownOutcome + f.EntityFailed + f.Overloaded + f.Other
}

// losses counts the tells that failed after they were accepted, and logs them: a line for
// each kind and reason, soon after the first failure, and then once in a while with the
// number since. A holder of a slot's lock may call note: lines are written on another
// goroutine.
type losses struct {
	log *slog.Logger

	mu    sync.Mutex             // Guards all fields below; held for bookkeeping only.
	total [protocol.Codes]uint64 // All failures, by code.
	runs  map[lossKey]*lossRun   // At most one run for each kind and reason.
	ended bool                   // No timer is set any more.
}

// lossKey names a run of failures: each run has log lines of its own.
type lossKey struct {
	kind string
	code protocol.Code
}

// lossRun holds the failures of a key since the last log line about them.
type lossRun struct {
	count          uint64
	entity, detail string // The entity and the detail of the last failure.
	timer          *time.Timer
}

// note counts a tell that failed. The entity is empty where the caller does not know it.
func (l *losses) note(kind, entity string, code protocol.Code, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total[min(int(code), protocol.Codes-1)]++
	key := lossKey{kind, code}
	run := l.runs[key]
	if run == nil {
		run = new(lossRun)
		if l.runs == nil {
			l.runs = make(map[lossKey]*lossRun)
		}
		l.runs[key] = run
	}
	run.count++
	run.entity, run.detail = entity, detail
	if run.timer == nil && !l.ended {
		// The timer's function runs on a goroutine of the Go runtime for the time of one line.
		run.timer = time.AfterFunc(lossGather, func() { l.tell(key) })
	}
}

// tell logs the failures of a run since its last line, and sets the timer for the next
// line; a run without failures has no timer.
func (l *losses) tell(key lossKey) {
	l.mu.Lock()
	run := l.runs[key]
	now := *run
	run.count = 0
	switch {
	case l.ended:
	case now.count == 0:
		run.timer = nil
	default:
		run.timer.Reset(lossEvery)
	}
	l.mu.Unlock()
	if now.count > 0 {
		l.log.Warn("messages failed after they were accepted", "kind", key.kind, "reason", key.code.String(),
			"count", now.count, "entity", now.entity, "detail", now.detail)
	}
}

// counts returns the number of failures, by code.
func (l *losses) counts() [protocol.Codes]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// failuresOf gives the sums of all codes their names.
func failuresOf(counts [protocol.Codes]uint64) Failures {
	var f Failures
	for code, n := range counts {
		switch protocol.Code(code) {
		case protocol.CodeNotDelivered:
			f.NotDelivered += n
		case protocol.CodeUnknownOutcome:
			f.UnknownOutcome += n
		case protocol.CodeEntityFailed:
			f.EntityFailed += n
		case protocol.CodeOverloaded:
			f.Overloaded += n
		default:
			f.Other += n
		}
	}
	return f
}

// end logs the failures that were not logged yet. Nothing is logged afterwards.
func (l *losses) end() {
	l.mu.Lock()
	l.ended = true
	var rest []lossKey
	for key, run := range l.runs {
		if run.timer != nil && run.timer.Stop() {
			rest = append(rest, key)
		}
	}
	l.mu.Unlock()
	for _, key := range rest {
		l.tell(key)
	}
}
