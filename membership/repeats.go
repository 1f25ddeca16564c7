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

	"github.com/quorate/quorate/membership/internal/protocol"
)

const (
	// repeatAfter is how long a line is not repeated while its cause goes on.
	repeatAfter = time.Minute
	// repeatsMax bounds the remembered subjects. When the map is full all are forgotten,
	// which only costs repetitions.
	repeatsMax = 1024
)

// repeats knows which subjects were logged lately. A peer that refuses is dialled again
// every second, and a line for each attempt would hide what matters. The zero value is
// ready.
type repeats struct {
	mu   sync.Mutex
	last map[string]time.Time // When each subject was logged last.
}

// refusal is the level at which a refusal is logged. A message may overtake the news
// that its sender has joined, and an answer may come after the wait for it: both happen
// in good health. Other refusals are logged, but not repeated for a while.
func (r *repeats) refusal(e protocol.Refused) slog.Level {
	switch e.Refusal {
	case protocol.RefusedNotMember, protocol.RefusedUnsolicited, protocol.RefusedByPeer: // The last is logged by noticed.
		return slog.LevelDebug
	case protocol.RefusedPredecessor: // A node was restarted faster than its predecessor was found dead.
		return r.level(slog.LevelInfo, e.What, e.Peer.String(), e.Reason)
	default:
		return r.level(slog.LevelWarn, e.What, e.Peer.String(), e.Reason)
	}
}

// variantsMax is how many variants of a subject are logged in a minute.
const variantsMax = 8

// variant is level for a subject that comes in variants: each is logged like a subject of
// its own, but only a few in a minute, since the node that is refused may have chosen the
// words. Variants that are not logged are not remembered either, so that they cannot
// displace those that are.
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

// level returns the level at which to log the subject that parts make up: the given
// level, or debug if the subject was logged at that level within the last minute.
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

// take notes that a subject is logged now, and returns false if it was within the last
// minute.
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
