// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"sync/atomic"

	metrics "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorate/quorate/membership"
)

// How membership fares beside what is measured: marks count the events of a node, a monitor reads its
// metrics too, a report says what was counted so far, and beats are the delays of heartbeats in classes.

// marks are the members that nodes take for unreachable or gone, and the events that nobody has seen.
type marks struct{ marked, missed atomic.Uint64 }

// follow counts what a node marks. No benchmark with marks ends a node before its cluster.
func (m *marks) follow(ctx context.Context, n *membership.Node) {
	events := n.Subscribe()
	// Ends with the node or ctx. It is not waited for: the process ends with the run.
	go func() {
		defer events.Close()
		for {
			e, err := events.Next(ctx)
			if err != nil {
				return
			}
			m.note(e)
		}
	}()
}

// note notes an event.
func (m *marks) note(e membership.Event) {
	switch e := e.(type) {
	case membership.ReachabilityChanged:
		if !e.Reachable {
			m.marked.Add(1)
		}
	case membership.MemberRemoved:
		m.marked.Add(1)
	case membership.Missed:
		m.missed.Add(uint64(e.N))
	}
}

// monitor watches whether data delays the membership of a node: events about other members,
// losses of the node's own standing, and round trips of its heartbeats. The last two are
// metrics of the node, as an operator would read them.
type monitor struct {
	marks

	reader *metrics.ManualReader
	meters *metrics.MeterProvider
}

const (
	metricBeats  = "quorate.membership.heartbeat.duration"
	metricLapses = "quorate.membership.standing.lost"
)

// The bounds of the intervals in which round trips are counted: each a fifth wider than the
// one before, from 50 µs to 10 s.
const (
	shortestBeat = 50e-6
	longestBeat  = 10
	beatStep     = 1.2
)

// beatBounds returns the bounds, in seconds.
func beatBounds() (all []float64) {
	for b := shortestBeat; b < longestBeat; b *= beatStep {
		all = append(all, b)
	}
	return all
}

func newMonitor() *monitor {
	w := &monitor{reader: metrics.NewManualReader()}
	w.meters = metrics.NewMeterProvider(metrics.WithReader(w.reader), metrics.WithView(metrics.NewView(
		metrics.Instrument{Name: metricBeats}, metrics.Stream{Aggregation: metrics.AggregationExplicitBucketHistogram{Boundaries: beatBounds()}},
	)))
	return w
}

// monitorReport is what a monitor has counted.
type monitorReport struct {
	Marks  uint64 `json:"marks"`  // Members that were unreachable, or removed.
	Missed uint64 `json:"missed"` // Events that nobody has seen.
	Lapses uint64 `json:"lapses"` // Losses of the standing.
	Beats  beats  `json:"beats"`
}

// report returns what was seen.
func (w *monitor) report(ctx context.Context) (s monitorReport, err error) {
	s.Marks, s.Missed = w.marked.Load(), w.missed.Load()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(ctx, &all); err != nil {
		return s, err
	}
	found := 0
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				if m.Name == metricBeats {
					found++
					for _, p := range data.DataPoints {
						s.Beats = s.Beats.plus(p.BucketCounts)
					}
				}
			case metricdata.Sum[int64]:
				if m.Name == metricLapses {
					found++
					for _, p := range data.DataPoints {
						s.Lapses += uint64(p.Value)
					}
				}
			}
		}
	}
	if found == 0 {
		return s, fmt.Errorf("bench: the node has no metric %s or %s", metricBeats, metricLapses)
	}
	return s, nil
}

// plus adds what another node has seen.
func (s monitorReport) plus(o monitorReport) monitorReport {
	return monitorReport{Marks: s.Marks + o.Marks, Missed: s.Missed + o.Missed, Lapses: s.Lapses + o.Lapses, Beats: s.Beats.plus(o.Beats)}
}

// beats are the numbers of round trips in each interval of [beatBounds], and of those that
// took longer. None at all stands for zeros.
type beats []uint64

// plus adds round trips.
func (b beats) plus(o beats) beats {
	sum := make(beats, max(len(b), len(o)))
	for i := range sum {
		sum[i] = b.at(i) + o.at(i)
	}
	return sum
}

// minus takes away the round trips of before.
func (b beats) minus(o beats) beats {
	rest := make(beats, len(b))
	for i := range rest {
		rest[i] = b[i] - o.at(i)
	}
	return rest
}

func (b beats) at(i int) uint64 {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// percentile returns the upper bound of the interval in which a part of the round trips
// lies, in seconds, and zero if there was none.
func (b beats) percentile(part float64) float64 {
	total := uint64(0)
	for _, n := range b {
		total += n
	}
	bounds, seen := beatBounds(), uint64(0)
	for i, n := range b {
		if seen += n; n > 0 && float64(seen) >= part*float64(total) {
			return bounds[min(i, len(bounds)-1)]
		}
	}
	return 0
}
