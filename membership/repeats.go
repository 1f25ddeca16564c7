// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// repeatAfter is how long something that goes on is not said again.
	repeatAfter = time.Minute
	// repeatsMax bounds what is remembered. When it is full everything is
	// forgotten, which costs repetitions and nothing else.
	repeatsMax = 1024
)

// repeats knows what was logged lately. A peer that refuses is dialled again
// every second, and a line for each attempt would hide what matters. The zero
// value is ready.
type repeats struct {
	mu   sync.Mutex
	last map[string]time.Time // Of each subject, when it was logged last.
}

// variantsMax is how many variants of a subject are said in a minute.
const variantsMax = 8

// variant is level for a subject that comes in variants: each is said as if it were a
// subject of its own, but no more than a few in a minute, since who is refused may
// have chosen the words. Those that are not said are not remembered either, so that
// they cannot drive out what is.
func (r *repeats) variant(level slog.Level, variant string, parts ...string) slog.Level {
	now, said := time.Now(), subjectOf(append(slices.Clone(parts), "=", variant)...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isRecent(said, now) {
		return slog.LevelDebug
	}
	for i := range variantsMax {
		if r.take(subjectOf(append(slices.Clone(parts), "#", strconv.Itoa(i))...), now) {
			r.take(said, now)
			return level
		}
	}
	return slog.LevelDebug
}

// level returns the level at which to log the subject that parts make up: the
// given one, or debug when it was logged at that within the last minute.
func (r *repeats) level(level slog.Level, parts ...string) slog.Level {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.take(subjectOf(parts...), time.Now()) {
		return level
	}
	return slog.LevelDebug
}

func subjectOf(parts ...string) string { return strings.Join(parts, "\x00") }

// isRecent reports whether a subject was logged within the last minute.
func (r *repeats) isRecent(subject string, now time.Time) bool {
	at, ok := r.last[subject]
	return ok && now.Sub(at) < repeatAfter
}

// take notes that a subject is logged now, unless it was within the last minute.
func (r *repeats) take(subject string, now time.Time) bool {
	if r.isRecent(subject, now) {
		return false
	}
	if r.last == nil || len(r.last) >= repeatsMax {
		r.last = make(map[string]time.Time)
	}
	r.last[subject] = now
	return true
}
