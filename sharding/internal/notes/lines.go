// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package notes

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// lineGather is how long the first event waits for others before a line is logged: what
	// befalls a shard befalls its entities by the hundred.
	lineGather = time.Second
	// lineEvery is the time between log lines about events that go on.
	lineEvery = time.Minute
)

// Lines logs events that may come by the hundred.
type Lines struct {
	log   *slog.Logger
	level slog.Level
	text  string // What has happened.

	mu    sync.Mutex        // Guards all fields below; held for bookkeeping only.
	runs  map[lineKey]*line // At most one for each kind and reason.
	ended bool              // No timer is set any more.
}

// lineKey names events that have log lines of their own.
type lineKey struct{ kind, reason string }

// line holds the events of a key since the last log line about them.
type line struct {
	count          uint64
	entity, detail string // The entity and the detail of the last one.
	timer          *time.Timer
}

// NewLines returns what logs events at a level; the text says what has happened.
func NewLines(log *slog.Logger, level slog.Level, text string) *Lines {
	return &Lines{log: log, level: level, text: text, runs: make(map[lineKey]*line)}
}

// Note takes an event. The entity is empty where the caller does not know it.
func (l *Lines) Note(kind, reason, entity, detail string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := lineKey{kind, reason}
	run := l.runs[key]
	if run == nil {
		run = new(line)
		l.runs[key] = run
	}
	run.count++
	run.entity, run.detail = entity, detail
	if run.timer == nil && !l.ended {
		// The timer's function runs on a goroutine of the Go runtime for the time of one line.
		run.timer = time.AfterFunc(lineGather, func() { l.tell(key) })
	}
}

// tell logs the events of a key since its last line, and sets the timer for the next line; a key
// without events has no timer.
func (l *Lines) tell(key lineKey) {
	l.mu.Lock()
	run := l.runs[key]
	now := *run
	run.count = 0
	switch {
	case l.ended:
	case now.count == 0:
		run.timer = nil
	default:
		run.timer.Reset(lineEvery)
	}
	l.mu.Unlock()
	if now.count == 0 {
		return
	}
	l.log.Log(context.Background(), l.level, l.text,
		"kind", key.kind, "reason", key.reason, "count", now.count, "entity", now.entity, "detail", now.detail)
}

// End logs what was not logged yet. Nothing is logged afterwards.
func (l *Lines) End() {
	l.mu.Lock()
	l.ended = true
	var rest []lineKey
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
