// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"sync"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Tells that failed after they were accepted, and have no asker to hear of it: note counts
// one by its code and has it logged; counts and failuresOf give the sums.

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

// losses counts the tells that failed after they were accepted, and logs them. A holder of a
// slot's lock may call note.
type losses struct {
	lines

	mu    sync.Mutex             // Guards total.
	total [protocol.Codes]uint64 // All failures, by code.
}

// note counts a tell that failed. The entity is empty where the caller does not know it.
func (l *losses) note(kind, entity string, code protocol.Code, detail string) {
	l.mu.Lock()
	l.total[min(int(code), protocol.Codes-1)]++
	l.mu.Unlock()
	l.lines.note(kind, code.String(), entity, detail)
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
