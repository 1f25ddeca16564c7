// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// A percentile of round trips is the bound of the interval in which it lies: the last one
// for what took longer than any, and none without round trips.
func TestPercentile(t *testing.T) {
	bounds := beatBounds()
	require.Zero(t, beats(nil).percentile(0.99))
	b := make(beats, len(bounds)+1)
	b[3], b[10] = 98, 2
	require.InDelta(t, bounds[3], b.percentile(0.98), 0)
	require.InDelta(t, bounds[10], b.percentile(0.99), 0)
	b[len(bounds)] = 1000
	require.InDelta(t, bounds[len(bounds)-1], b.percentile(0.99), 0)
}

// What was counted before is taken away, and what several nodes have counted is one sum,
// though some have counted nothing yet.
func TestBeatsAdd(t *testing.T) {
	require.Equal(t, beats{4, 6}, beats(nil).plus(beats{1, 2}).plus(beats{3, 4}))
	require.Equal(t, beats{3, 4}, beats{3, 4}.minus(nil))
	require.Equal(t, beats{2, 2}, beats{3, 4}.minus(beats{1, 2}))
	sum := monitorReport{Marks: 1, Beats: beats{1}}.plus(monitorReport{Marks: 1, Missed: 2, Lapses: 3, Beats: beats{1}})
	require.Equal(t, monitorReport{Marks: 2, Missed: 2, Lapses: 3, Beats: beats{2}}, sum)
}

// A member that is unreachable or removed is a mark, and so is none that is reachable again.
func TestMarks(t *testing.T) {
	w := new(marks)
	for _, e := range []membership.Event{
		membership.ReachabilityChanged{}, membership.ReachabilityChanged{Reachable: true}, membership.MemberRemoved{}, membership.Missed{N: 5},
	} {
		w.note(e)
	}
	require.EqualValues(t, 2, w.marked.Load())
	require.EqualValues(t, 5, w.missed.Load())
}

// The metrics that a monitor reads are those of a node: round trips of its heartbeats and
// losses of its standing.
func TestTheMonitorReadsTheMetricsOfANode(t *testing.T) {
	ctx := patience.Context(t)
	first, err := startReplica(ctx, nil, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, first.Close()) }()
	second, err := startReplica(ctx, []string{first.Self().Address.String()}, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, second.Close()) }()
	patience.Eventually(t, func() bool {
		seen, err := second.monitor.report(ctx)
		return err == nil && seen.Beats.percentile(0.5) > 0
	}, "it has seen heartbeats")
	var all metricdata.ResourceMetrics
	require.NoError(t, second.monitor.reader.Collect(ctx, &all))
	names := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			names[m.Name] = true
		}
	}
	require.Contains(t, names, metricLapses)
	require.NoError(t, second.add(ctx, counter(durablePrefix, 1), ddata.Majority()))
	l, err := second.report(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, l.Keys)
	require.Positive(t, l.Bytes)
}

// What is missing on the node that lacks most, and what any has too many of, is found.
func TestEverywhereFindsWhatIsTooMany(t *testing.T) {
	own := func(context.Context) (uint64, error) { return 12, nil }
	missing, surplus, err := everywhere(t.Context(), 10, own, new(harness.Peers), requestSum)
	require.NoError(t, err)
	require.Zero(t, missing)
	require.EqualValues(t, 2, surplus)
}
