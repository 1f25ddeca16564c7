// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import "time"

// Detector judges one monitored node from the moments at which its answers to
// heartbeats arrived.
//
// Its owner calls it from one goroutine at a time; no method may block. Times come
// from one clock that does not run backwards, with any origin: an implementation uses
// only the difference between two of them.
//
// A verdict is a function of the answers so far and of the silence since the last of
// them. Available and Monitoring change nothing, and Available may be called for any
// moment, past or future, in any order: [Bounded] searches the moment of the change
// that way. Without a further answer the verdict changes at most once, from available
// to unavailable. The package fdtest checks these rules for implementations.
type Detector interface {
	// Heartbeat records that an answer arrived at this time. A time before that
	// of the latest answer is ignored.
	Heartbeat(at time.Time)

	// Available reports whether the node is believed to be alive at this time.
	// It is true before the first answer, and at any time before the latest one.
	Available(at time.Time) bool

	// Monitoring reports whether an answer has ever arrived.
	Monitoring() bool
}

// Accrual is a Detector that measures the degree of its suspicion.
type Accrual interface {
	Detector

	// Phi is the degree of suspicion at this time: finite, at least 0, and not
	// decreasing until the next answer. It is 0 before the first answer.
	Phi(at time.Time) float64
}

// Resumer is implemented by a Detector that learns from the intervals between
// answers and must not learn from an outage.
type Resumer interface {
	// Resume is called in place of Heartbeat for an answer that ends an outage. The
	// detector itself may still have held the node available, when [Bounded] has
	// overruled it at MaxSilence. The time since the latest answer is not an interval
	// between two heartbeats.
	Resume(at time.Time)
}

// Factory makes a detector for a node that is newly monitored. Each call returns
// a detector of its own, which has seen no answer yet.
type Factory func() Detector
