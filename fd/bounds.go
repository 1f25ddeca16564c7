// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"errors"
	"fmt"
	"time"
)

// The bounds come first. A detector between them ([Bounded]) is told of answers and judges; a
// judge may take its place ([Bounded.Judged]) and accuse ([Bounded.Accuse]); the moment at which the
// verdict turns is searched last.

// Bounds limits the silence at which a verdict turns to unavailable, whatever
// the detector thinks.
type Bounds struct {
	// MinSilence is the shortest silence after which a node may be unavailable. It
	// absorbs pauses, such as those of a garbage collector or of a scheduler. It must
	// be above zero. If it is close to the heartbeat interval, one lost heartbeat is
	// enough for an accusation.
	MinSilence time.Duration

	// MaxSilence is the silence after which a node is unavailable in any case. It is
	// at least MinSilence; if both are equal, the detector has no influence. The time
	// that a failover takes grows with it.
	MaxSilence time.Duration
}

// Validate reports every fault of b.
func (b Bounds) Validate() error {
	var faults []error
	if b.MinSilence <= 0 {
		faults = append(faults, fmt.Errorf("min-silence: %v is not above 0s", b.MinSilence))
	}
	if b.MaxSilence < b.MinSilence {
		faults = append(faults, fmt.Errorf("max-silence: %v is below min-silence %v", b.MaxSilence, b.MinSilence))
	}
	return errors.Join(faults...)
}

// Bounded is a Detector that takes its verdict from another detector, within [Bounds].
//
// It computes the moment of the change once for each answer, when it is first needed,
// and derives the verdict from that moment. So Available and Limit cannot contradict
// each other, and a verdict cannot flap, even if the inner detector breaks its
// contract.
type Bounded struct {
	inner  Detector
	bounds Bounds

	last     time.Time     // The latest answer, valid if heard.
	heard    bool          // Whether there was an answer.
	limit    time.Duration // The silence at which the verdict changes, valid if resolved.
	resolved bool          // Whether limit belongs to last.
	judged   bool          // Whether a judge decides, in place of the inner detector.
}

var _ Detector = (*Bounded)(nil)

// NewBounded puts bounds around a detector that has seen no answer yet, and takes the
// detector over. The bounds must be valid; with invalid bounds MaxSilence alone
// decides.
func NewBounded(inner Detector, bounds Bounds) *Bounded {
	return &Bounded{inner: inner, bounds: bounds}
}

// Unwrap returns the inner detector, for reading only.
func (b *Bounded) Unwrap() Detector { return b.inner }

// Heartbeat records an answer. If the answer ends an outage, it calls Resume of a
// [Resumer] instead of Heartbeat.
func (b *Bounded) Heartbeat(at time.Time) {
	if b.heard && at.Sub(b.last) < 0 {
		return
	}
	if r, ok := b.inner.(Resumer); ok && !b.Available(at) {
		r.Resume(at)
	} else {
		b.inner.Heartbeat(at)
	}
	b.last, b.heard, b.resolved = at, true, false
}

// Judged says whether a [Judge] decides from this time on, in place of the inner detector,
// which goes on learning. Nobody can be accused by that: a node is then available until
// [Bounded.Accuse], or up to MaxSilence. A verdict of unavailable stays, whoever decides,
// until the next answer.
func (b *Bounded) Judged(on bool, at time.Time) {
	if b.heard {
		b.resolved = at.Sub(b.last) >= b.silenceLimit()
	}
	b.judged = on
}

// Accuse makes the node unavailable from this time on, within the bounds, because a judge says
// so that had heard of everything up to the time asOf. It reports whether the judge was heard:
// it is not where it does not decide, where it did not know of the latest answer, or where the
// node is to be unavailable earlier.
func (b *Bounded) Accuse(asOf, at time.Time) bool {
	if !b.judged || !b.heard || b.last.Sub(asOf) > 0 {
		return false
	}
	limit := min(max(at.Sub(b.last), b.bounds.MinSilence), b.bounds.MaxSilence)
	if limit >= b.silenceLimit() {
		return false
	}
	b.limit = limit
	return true
}

// Available reports whether the node is believed to be alive at this time.
func (b *Bounded) Available(at time.Time) bool {
	if !b.heard {
		return true
	}
	// In the common case of a recent answer the bounds alone decide, so that the
	// limit is computed only when it matters.
	silence := at.Sub(b.last)
	switch {
	case silence >= b.bounds.MaxSilence:
		return false
	case silence < b.bounds.MinSilence:
		return true
	default:
		return silence < b.silenceLimit()
	}
}

// Monitoring reports whether an answer has ever arrived.
func (b *Bounded) Monitoring() bool { return b.heard }

// Limit returns the moment from which the node is unavailable unless an answer arrives
// before it. Available is true one nanosecond earlier, and false from that moment on.
// The moment may have passed. The result is false when no answer has ever arrived.
func (b *Bounded) Limit() (time.Time, bool) {
	if !b.heard {
		return time.Time{}, false
	}
	return b.last.Add(b.silenceLimit()), true
}

// silenceLimit is the shortest silence, within the bounds, at which the inner
// detector no longer holds the node available. It is found by bisection, since
// the verdict is monotonic in the silence; 31 steps for bounds 2 s apart.
func (b *Bounded) silenceLimit() time.Duration {
	if b.resolved {
		return b.limit
	}
	low, high := b.bounds.MinSilence, b.bounds.MaxSilence
	if b.judged {
		b.limit, b.resolved = high, true
		return high
	}
	if low >= high || !b.inner.Available(b.last.Add(low)) {
		high = min(low, high)
	}
	for high-low > 1 { // Available at low, not at high.
		middle := low + (high-low)/2
		if b.inner.Available(b.last.Add(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	b.limit, b.resolved = high, true
	return high
}
