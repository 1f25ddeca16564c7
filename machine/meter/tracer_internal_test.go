// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace/noop"
)

// A tracer is off while it has the global provider and the program has not set one. With a
// provider of its own it is always on.
func TestATracerIsOffUntilThereIsAProvider(t *testing.T) {
	none := NewTracer(Tracing{}, "test")
	require.True(t, none.Off())
	given := NewTracer(Tracing{Provider: noop.NewTracerProvider()}, "test")
	require.False(t, given.Off(), "it was asked for")
	other := Tracer{unset: noop.NewTracerProvider()}
	require.False(t, other.Off(), "the program has set another one since")
}

// Contexts are looked at as soon as there may be spans in them: by a provider, or by a
// propagator that reads those of other processes.
func TestContextsAreLookedAtWhenThereMayBeSpans(t *testing.T) {
	none := NewTracer(Tracing{}, "test")
	require.True(t, none.Absent())
	given := NewTracer(Tracing{Provider: noop.NewTracerProvider()}, "test")
	require.False(t, given.Absent())
	read := Tracer{unset: none.unset, unread: propagation.TraceContext{}}
	require.True(t, read.Off())
	require.False(t, read.Absent(), "the program has set another propagator since")
	known := Tracer{unset: none.unset}
	require.False(t, known.Absent(), "there was a propagator at the start")
}

// What travels is what the program says: its own propagator, then the global one, and the trace context of W3C alone
// while it has said nothing.
func TestThePropagator(t *testing.T) {
	none := NewTracer(Tracing{}, "test")
	require.Equal(t, propagation.TraceContext{}, none.Propagator())
	require.True(t, none.Plain())
	given := NewTracer(Tracing{Propagator: propagation.Baggage{}}, "test")
	require.Equal(t, propagation.Baggage{}, given.Propagator())
	require.False(t, given.Plain())
	require.False(t, given.Absent(), "there may be baggage without a trace")
	composite := NewTracer(Tracing{Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{})}, "test")
	require.False(t, composite.Plain(), "nobody knows what is in it")
}

// A scope states the version of its module, and not that of another one with a similar path.
func TestTheVersionOfAScope(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Path: "example.org/bank", Version: "v9.0.0"}, Deps: []*debug.Module{
		{Path: project + "sharding", Version: "v1.2.0"},
		{Path: project + "sharding/state", Version: "v1.3.0"},
		{Path: project + "gateway", Version: "v1.0.0", Replace: &debug.Module{Path: "../gateway"}},
		{Path: project + "data", Version: "v2.0.0"},
	}}
	for scope, want := range map[string]string{
		"sharding": "v1.2.0", "sharding/internal/cell": "v1.2.0", "sharding/state": "v1.3.0", "sharding/state/etcd": "v1.3.0",
		"gateway": "(devel)", "database": "(devel)", "none": "(devel)",
	} {
		require.Equal(t, want, versionIn(info, project+scope), scope)
	}
	require.Equal(t, "(devel)", versionIn(info, "example.org/bank"), "no module of ours")
	require.NotEmpty(t, scopeVersion(project+"machine"))
}
