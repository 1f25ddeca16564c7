// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine"
)

// Standing says whether a node may act for the cluster: run entities, hold a singleton. A
// node proves its standing by heartbeats that enough voters have answered; the proof
// lasts for the fence. So a node that is cut off, or was frozen, loses its standing by
// its own clock, without any message, and before another node may take its work over.
type Standing struct {
	clock  *machine.SystemClock
	until  atomic.Int64
	margin time.Duration // How long before its end a standing needs a full reading of the clock.
}

// Held reports whether the node has standing now. Ask right before a piece of work
// begins, and again right before its result leaves. It reads the clock and one word of
// memory.
func (s *Standing) Held() bool { return s.HeldAt(s.clock.Instant()) }

// HeldAt is Held for a caller that has just read the clock of the node.
func (s *Standing) HeldAt(now machine.Instant) bool {
	until := s.Until()
	return until != 0 && now <= until
}

// HeldThrough is Held for a caller that reads the clock of the node by a
// [machine.Reader]. A reading that was not in full, and from which the end of the standing
// is not far, proves nothing; then the clock is read in full. The node's own heartbeats, and
// with them the comparison of counter and clock, come more often than that: so nothing
// begins after the end of the standing even if the counter has stopped.
func (s *Standing) HeldThrough(r machine.Reading) bool {
	until := s.Until()
	return until != 0 && r.NotAfter(until, s.margin)
}

// Until returns the moment up to which the standing is proven, zero when the
// node has none, [machine.Never] for a lone voter.
func (s *Standing) Until() machine.Instant { return machine.Instant(s.until.Load()) }

// set stores a new moment up to which the standing is proven.
func (s *Standing) set(until machine.Instant) { s.until.Store(int64(until)) }
