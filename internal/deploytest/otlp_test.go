// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package deploytest

import (
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
)

// The SDK of OpenTelemetry records what three whole nodes in virtual time trace and measure. Its exporters for OTLP
// then send that to the receiver of the collector, which gives it to sinks.

// witness is what the SDK has recorded of one node.
type witness struct {
	spans   []trace.ReadOnlySpan
	metrics metricdata.ResourceMetrics
}

// relay is an entity that asks the one that a message names, and answers then.
type relay struct {
	through **sharding.Region[*wrapperspb.StringValue]
}

// Receive asks the entity that is named, unless none is.
func (r relay) Receive(ctx *sharding.Context, next *wrapperspb.StringValue) error {
	if next.GetValue() == "" {
		return ctx.Reply(next)
	}
	answer, err := sharding.Ask[*wrapperspb.StringValue](ctx.Context(), *r.through, next.GetValue(), wrapperspb.String(""))
	if err != nil {
		return err
	}
	return ctx.Reply(answer)
}

// relayed runs three nodes, of which the first asks an entity of the second, and that one an entity of the third. It
// returns what was recorded of each.
func relayed(t *testing.T) (all [3]witness) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := clustertest.Start(t, 0)
		var regions [3]*sharding.Region[*wrapperspb.StringValue]
		var spans [3]*tracetest.InMemoryExporter
		var readers [3]*metric.ManualReader
		for i := range regions {
			of := resource.NewSchemaless(attribute.String("service.name", "bank"), attribute.Int("node", i))
			spans[i], readers[i] = tracetest.NewInMemoryExporter(), metric.NewManualReader()
			node := c.Add(clustertest.WithConfig("membership: {seed-nodes: [10.0.0.1:7946]}"), clustertest.WithOptions(
				cluster.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans[i]), trace.WithResource(of))),
				cluster.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(readers[i]), metric.WithResource(of)))))
			var err error
			regions[i], err = sharding.Start(node, sharding.Kind[*wrapperspb.StringValue]{
				Name: "relay", New: func(*sharding.Context) sharding.Entity[*wrapperspb.StringValue] { return relay{&regions[i]} },
			})
			require.NoError(t, err)
		}
		c.AwaitConverged()
		c.Advance(interval)
		_, err := sharding.Ask[*wrapperspb.StringValue](t.Context(), regions[0], homed(t, regions[0], c.Node(1)), wrapperspb.String(homed(t, regions[0], c.Node(2))))
		require.NoError(t, err)
		synctest.Wait()
		for i := range all {
			all[i].spans = spans[i].GetSpans().Snapshots()
			require.NoError(t, readers[i].Collect(t.Context(), &all[i].metrics))
		}
	})
	return all
}

// homed returns the id of an entity that lives on a node.
func homed(t *testing.T, region *sharding.Region[*wrapperspb.StringValue], node *clustertest.Node) string {
	t.Helper()
	for i := range 1000 {
		where, err := region.Explain(t.Context(), fmt.Sprint(i))
		require.NoError(t, err)
		if where.Home == node.Self().String() {
			return fmt.Sprint(i)
		}
	}
	require.FailNow(t, "no entity lives on "+node.Address())
	return ""
}

// received sends what was recorded to the receiver of a collector over gRPC, and returns what that gave to its sinks.
func received(t *testing.T, all [3]witness) (*consumertest.TracesSink, *consumertest.MetricsSink) {
	t.Helper()
	ctx, socket := t.Context(), filepath.Join(t.TempDir(), "otlp")
	factory, traces, metrics := otlpreceiver.NewFactory(), new(consumertest.TracesSink), new(consumertest.MetricsSink)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"grpc": map[string]any{"endpoint": socket, "transport": "unix"}},
	}).Unmarshal(cfg))
	settings := receivertest.NewNopSettings(factory.Type())
	forTraces, err := factory.CreateTraces(ctx, settings, cfg, traces)
	require.NoError(t, err)
	forMetrics, err := factory.CreateMetrics(ctx, settings, cfg, metrics)
	require.NoError(t, err)
	require.NoError(t, forTraces.Start(ctx, componenttest.NewNopHost()))
	require.NoError(t, forMetrics.Start(ctx, componenttest.NewNopHost()))
	for _, one := range all {
		spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint("unix:"+socket), otlptracegrpc.WithInsecure())
		require.NoError(t, err)
		require.NoError(t, spans.ExportSpans(ctx, one.spans))
		require.NoError(t, spans.Shutdown(ctx))
		points, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint("unix:"+socket), otlpmetricgrpc.WithInsecure())
		require.NoError(t, err)
		require.NoError(t, points.Export(ctx, &one.metrics))
		require.NoError(t, points.Shutdown(ctx))
	}
	require.NoError(t, forTraces.Shutdown(ctx))
	require.NoError(t, forMetrics.Shutdown(ctx))
	return traces, metrics
}

// A request that goes through three nodes is one trace in a collector: each span is the parent of the next, by node
// and role. The metrics of all three have arrived with it, and each node is a resource.
func TestOTLPOfACluster(t *testing.T) {
	traces, metrics := received(t, relayed(t))
	type span struct {
		ptrace.Span

		node int64
	}
	children, roots := map[string][]span{}, []span{}
	for _, batch := range traces.AllTraces() {
		for _, of := range batch.ResourceSpans().All() {
			node, known := of.Resource().Attributes().Get("node")
			require.True(t, known)
			for _, scope := range of.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					if s.ParentSpanID().IsEmpty() && s.Name() == "relay/ask" {
						roots = append(roots, span{s, node.Int()})
					}
					children[s.ParentSpanID().String()] = append(children[s.ParentSpanID().String()], span{s, node.Int()})
				}
			}
		}
	}
	require.Len(t, roots, 1)
	at := roots[0]
	path := []string{fmt.Sprintf("%d %s", at.node, at.Kind())}
	for next := children[at.SpanID().String()]; len(next) > 0; next = children[at.SpanID().String()] {
		require.Len(t, next, 1)
		require.Equal(t, at.TraceID(), next[0].TraceID())
		at = next[0]
		path = append(path, fmt.Sprintf("%d %s", at.node, at.Kind()))
	}
	require.Equal(t, []string{"0 Client", "1 Server", "1 Client", "2 Server"}, path)

	members := map[int64]int64{}
	for _, batch := range metrics.AllMetrics() {
		for _, of := range batch.ResourceMetrics().All() {
			node, known := of.Resource().Attributes().Get("node")
			require.True(t, known)
			for _, scope := range of.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if m.Name() == "quorate.membership.members" {
						for _, point := range m.Gauge().DataPoints().All() {
							members[node.Int()] += point.IntValue()
						}
					}
				}
			}
		}
	}
	require.Equal(t, map[int64]int64{0: 3, 1: 3, 2: 3}, members)
}
