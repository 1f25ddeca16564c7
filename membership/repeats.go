// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"log/slog"
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
