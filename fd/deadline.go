// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fd

import (
	"fmt"
	"time"
)

// Deadline is a detector without a memory: a node is unavailable when the
// silence reaches a fixed limit. It is the choice where heartbeats travel over a
// network of known quality and a verdict must be easy to predict.
type Deadline struct {
	limit time.Duration
	last  time.Time
	heard bool
}

var _ Detector = (*Deadline)(nil)

// NewDeadline returns a detector that has seen no answer. The limit must be
// above zero.
func NewDeadline(limit time.Duration) (*Deadline, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("fd: deadline: limit %v is not above 0s", limit)
	}
	return &Deadline{limit: limit}, nil
}

// Heartbeat records an answer.
func (d *Deadline) Heartbeat(at time.Time) {
	if d.heard && at.Sub(d.last) < 0 {
		return
	}
	d.last, d.heard = at, true
}

// Available reports whether the silence is below the limit.
func (d *Deadline) Available(at time.Time) bool {
	return !d.heard || at.Sub(d.last) < d.limit
}

// Monitoring reports whether an answer has ever arrived.
func (d *Deadline) Monitoring() bool { return d.heard }
