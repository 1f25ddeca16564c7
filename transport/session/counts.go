// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync/atomic"

	"github.com/quorate/quorate/transport"
)

// counts are the numbers that [transport.Counters] shows, counted from any goroutine.
type counts struct {
	lanes                           [transport.LaneKinds]laneCounts
	refusedInbound, refusedOutbound [transport.Reasons]atomic.Uint64
	notAccepted, fallbacks          atomic.Uint64
}

// laneCounts is what is counted on the lanes of one class.
type laneCounts struct {
	sent, acked, lost, received              atomic.Uint64
	framesSent, framesResent, framesReceived atomic.Uint64
	duplicates, bytesSent, bytesReceived     atomic.Uint64
	full, tooLarge                           atomic.Uint64
	unhandledHere, unhandledThere            atomic.Uint64
	answers                                  atomic.Uint64
	connects, accepts, breaks                atomic.Uint64
}

// lane returns the counts of the lanes of one class. A class that does not exist, for
// which a caller may ask and which every peer refuses, is counted as class 0.
func (c *counts) lane(k transport.LaneClass) *laneCounts {
	if int(k) >= len(c.lanes) {
		k = 0
	}
	return &c.lanes[k]
}

func (c *laneCounts) snapshot() transport.LaneCounters {
	return transport.LaneCounters{
		Sent: c.sent.Load(), Acked: c.acked.Load(), Lost: c.lost.Load(), Received: c.received.Load(),
		FramesSent: c.framesSent.Load(), FramesResent: c.framesResent.Load(),
		FramesReceived: c.framesReceived.Load(), Duplicates: c.duplicates.Load(),
		BytesSent: c.bytesSent.Load(), BytesReceived: c.bytesReceived.Load(),
		Full: c.full.Load(), TooLarge: c.tooLarge.Load(),
		Answers:       c.answers.Load(),
		UnhandledHere: c.unhandledHere.Load(), UnhandledThere: c.unhandledThere.Load(),
		Connects: c.connects.Load(), Accepts: c.accepts.Load(), Breaks: c.breaks.Load(),
	}
}

func (c *counts) snapshot() transport.Counters {
	s := transport.Counters{NotAccepted: c.notAccepted.Load(), Fallbacks: c.fallbacks.Load()}
	for i := range s.Lanes {
		s.Lanes[i] = c.lanes[i].snapshot()
		s.Add(&s.Lanes[i])
	}
	for i := range s.RefusedInbound {
		s.RefusedInbound[i] = c.refusedInbound[i].Load()
		s.RefusedOutbound[i] = c.refusedOutbound[i].Load()
	}
	return s
}
