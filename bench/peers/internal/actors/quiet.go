// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"runtime"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// Nodes are the nodes of a cluster in this process.
type Nodes struct {
	// Sent is how many bytes they have sent so far, with the headers of IP, TCP and UDP.
	Sent  func() (uint64, error)
	Close func()
}

// KnownWithin is how long nodes may take to know each other.
const KnownWithin = time.Minute

// Times of a quiet cluster, in measuring times. With 2 s, which is the default, they are one minute and half a minute:
// each node of memberlist exchanges all that it knows with another every 30 s, for the first time within the minute.
const (
	restFor  = 30 // Between the moment when all nodes know each other and the measurement.
	quietFor = 15 // The measurement.
)

// Quiet measures what a node costs in a cluster that nobody uses. Start returns when all nodes know each other; what it
// returns is closed also with an error.
func Quiet(start func(context.Context, harness.Spec) (Nodes, error)) harness.MeasureFunction {
	return func(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
		empty := memory()
		nodes, err := start(ctx, s)
		if nodes.Close != nil {
			defer nodes.Close()
		}
		if err != nil {
			return out, err
		}
		if err := harness.Pause(ctx, restFor*s.Time); err != nil {
			return out, err
		}
		before, err := nodes.Sent()
		if err != nil {
			return out, err
		}
		used, began := harness.CPUTime(), time.Now()
		if err := harness.Pause(ctx, quietFor*s.Time); err != nil {
			return out, err
		}
		each := float64(s.Nodes) * time.Since(began).Seconds()
		used = harness.CPUTime() - used
		after, err := nodes.Sent()
		out.CPU = harness.Microseconds(used) / each
		out.Values = map[string]float64{
			"wire": float64(after-before) / each, "cpu": out.CPU / 1000, "heap": (memory() - empty) / float64(s.Nodes) / 1000,
		}
		return out, err
	}
}

// memory returns the bytes of the heap that are in use.
func memory() float64 {
	runtime.GC()
	runtime.GC() // Frees what finalizers and pools released in the first.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
