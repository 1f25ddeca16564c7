// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/sequence"
)

// Mark is the progress of the receivers at one moment.
type Mark struct {
	At     time.Duration   `json:"at"` // By the clock of the receiving process, since any moment.
	CPU    time.Duration   `json:"cpu"`
	Totals sequence.Totals `json:"totals"`
}

// Stopwatch makes marks of receivers in this process. The processor time is left out when
// the senders live in this process too, because theirs is measured separately.
type Stopwatch struct {
	began time.Time
	tally *sequence.Tally
	cpu   func() time.Duration
}

// NewStopwatch returns a Stopwatch for the process of the receivers.
func NewStopwatch(t *sequence.Tally, cpu func() time.Duration) *Stopwatch {
	return &Stopwatch{began: time.Now(), tally: t, cpu: cpu}
}

// NoCPU is the processor time for receivers that live with their senders.
func NoCPU() time.Duration { return 0 }

// Mark returns the progress of the receivers.
func (w *Stopwatch) Mark(context.Context) (Mark, error) {
	return Mark{At: time.Since(w.began), CPU: w.cpu(), Totals: w.tally.Totals()}, nil
}

// The requests that a receiving process answers.
const requestMark = "mark"

// Serve answers requests for marks until the parent process is gone.
func (w *Stopwatch) Serve(k *process.Link) error {
	return k.Serve(func(request string) (any, error) {
		if request != requestMark {
			return nil, fmt.Errorf("bench: request %q is not known", request)
		}
		return w.Mark(context.Background())
	})
}

// RemoteMark asks another process for a mark.
func RemoteMark(p *process.Process) func(context.Context) (Mark, error) {
	return func(ctx context.Context) (m Mark, err error) {
		err = p.Call(ctx, requestMark, &m)
		return m, err
	}
}

// Without subtracts the messages that were sent before from the marks.
func Without(primed uint64, at func(context.Context) (Mark, error)) func(context.Context) (Mark, error) {
	return func(ctx context.Context) (Mark, error) {
		m, err := at(ctx)
		m.Totals.Received -= min(primed, m.Totals.Received)
		return m, err
	}
}
