// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

const (
	// lossGather is how long the first failure waits for others before it is logged:
	// what ends with a node ends in hundreds.
	lossGather = time.Second
	// lossEvery is how often failures that go on are logged.
	lossEvery = time.Minute
)

// Failures counts tells that failed after they had been accepted, by the error that
// an asker would have got.
type Failures struct {
	// NotDelivered were given back by a node that stopped, see [ErrNotDelivered].
	NotDelivered uint64
	// UnknownOutcome had left this node for one that is gone, see [ErrUnknownOutcome].
	// What that had acknowledged, and not handled, is not among them: nobody knows
	// of it any more.
	UnknownOutcome uint64
	// EntityFailed met an entity that failed, see [ErrEntityFailed].
	EntityFailed uint64
	// Overloaded met a mailbox that was full although this node had been told to send
	// no more, see [ErrOverloaded]. It happens when what it was told is lost several
	// times.
	Overloaded uint64
	// Other failed for another reason.
	Other uint64
}

// Total is the sum.
func (f Failures) Total() uint64 {
	return f.NotDelivered + f.UnknownOutcome + f.EntityFailed + f.Overloaded + f.Other
}

// losses counts the tells that failed and have nobody to hear of it, and logs them: a
// line for each kind and reason, soon after the first, and then once a while with the
// number since. It may be told with a slot in hand: lines are written elsewhere.
type losses struct {
	log *slog.Logger

	mu    sync.Mutex // Guards all below; held for bookkeeping only.
	total [protocol.Codes]uint64
	runs  map[lossKey]*lossRun // Bounded by the kinds and the reasons.
	ended bool
}

// lossKey is what lines are told apart by.
type lossKey struct {
	kind string
	code protocol.Code
}

// lossRun is what happened since the last line.
type lossRun struct {
	count          uint64
	entity, detail string // Of the last.
	timer          *time.Timer
}

// note counts a tell that failed. The entity is empty where it is not known.
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
		// Its function runs on a goroutine of the runtime for the time of one line.
		run.timer = time.AfterFunc(lossGather, func() { l.tell(key) })
	}
}

// tell logs what happened since the last line, and goes on for as long as something
// did.
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

// counts returns the sums, by code.
func (l *losses) counts() [protocol.Codes]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// failuresOf are the sums as [Stats] shows them.
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

// end logs what was not logged yet. Nothing is logged afterwards.
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
