// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"time"
)

// Mark is the progress of the receivers at one moment.
type Mark struct {
	At     time.Duration `json:"at"` // By the clock of the receiving process, since any moment.
	CPU    time.Duration `json:"cpu"`
	Totals Totals        `json:"totals"`
}

// MarkFunction returns a mark of the present moment.
type MarkFunction func(context.Context) (Mark, error)

// Marks makes marks of receivers in this process, whose clock runs from now. The processor time
// is left out ([NoCPU]) when the senders live in this process too, because theirs is measured
// separately.
func Marks(totals func() Totals, cpu func() time.Duration) MarkFunction {
	began := time.Now()
	return func(context.Context) (Mark, error) {
		return Mark{At: time.Since(began), CPU: cpu(), Totals: totals()}, nil
	}
}

// NoCPU is the processor time for receivers that live with their senders.
func NoCPU() time.Duration { return 0 }

// requestMark is the request that a receiving process answers.
const requestMark = "mark"

// HostMarks says hello from an address, and answers requests for marks of the receivers in this
// process until the parent process is gone.
func (k *Link) HostMarks(address string, t *Tally) error {
	mark := Marks(t.Totals, CPUTime)
	return k.Host(address, Answers{requestMark: func() (any, error) { return mark(context.Background()) }})
}

// Marks asks another process for marks.
func (p *Process) Marks(ctx context.Context) (m Mark, err error) {
	err = p.Call(ctx, requestMark, &m)
	return m, err
}

// Without subtracts the messages that were sent before from the marks.
func Without(primed uint64, at MarkFunction) MarkFunction {
	return func(ctx context.Context) (Mark, error) {
		m, err := at(ctx)
		m.Totals.Received -= min(primed, m.Totals.Received)
		return m, err
	}
}
