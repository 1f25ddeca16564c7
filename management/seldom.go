// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package management

import (
	"sync"
	"time"
)

// seldom counts what clients can cause as often as they like, so that the log says it once in a while, with the number.
type seldom struct {
	mu    sync.Mutex // Guards what follows.
	said  time.Time  // When the log last said so.
	times int        // How often it has happened since.
}

// again counts once more, and returns how often it has happened since the log last said so, if it is to say so
// now, or 0.
func (s *seldom) again(every time.Duration) (times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times++
	now := time.Now()
	if now.Sub(s.said) < every {
		return 0
	}
	times, s.times, s.said = s.times, 0, now
	return times
}
