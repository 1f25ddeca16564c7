// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package notes

import (
	"log/slog"
	"sync"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Losses counts the tells that failed after they were accepted, and have no asker to hear of it, and logs them.
type Losses struct {
	lines *Lines

	mu    sync.Mutex             // Guards total.
	total [protocol.Codes]uint64 // All failures, by code.
}

// NewLosses returns what counts and logs failures.
func NewLosses(log *slog.Logger) *Losses {
	return &Losses{lines: NewLines(log, slog.LevelWarn, "messages failed after they were accepted")}
}

// Note takes a tell that failed. The entity is empty where the caller does not know it.
func (l *Losses) Note(kind, entity string, code protocol.Code, detail string) {
	l.mu.Lock()
	l.total[min(int(code), protocol.Codes-1)]++
	l.mu.Unlock()
	l.lines.Note(kind, code.String(), entity, detail)
}

// Counts returns the number of failures, by code.
func (l *Losses) Counts() [protocol.Codes]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// End logs what was not logged yet. Nothing is logged afterwards.
func (l *Losses) End() { l.lines.End() }
