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
// have chosen the words.
func (r *repeats) variant(level slog.Level, variant string, parts ...string) slog.Level {
	if r.level(level, append(slices.Clone(parts), "=", variant)...) != level {
		return slog.LevelDebug
	}
	for i := range variantsMax {
		if r.level(level, append(slices.Clone(parts), "#", strconv.Itoa(i))...) == level {
			return level
		}
	}
	return slog.LevelDebug
}

// level returns the level at which to log the subject that parts make up: the
// given one, or debug when it was logged at that within the last minute.
func (r *repeats) level(level slog.Level, parts ...string) slog.Level {
	subject, now := strings.Join(parts, "\x00"), time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.last[subject]; ok && now.Sub(at) < repeatAfter {
		return slog.LevelDebug
	}
	if r.last == nil || len(r.last) >= repeatsMax {
		r.last = make(map[string]time.Time)
	}
	r.last[subject] = now
	return level
}
