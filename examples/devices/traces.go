// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

const (
	// sampled is the share of requests that are traced, besides those whose client asks for it.
	sampled = 0.01
	// maxTraces is how many spans a node remembers: the last ones.
	maxTraces = 1000
)

// span is what is remembered of a span.
type span struct {
	Trace  string `json:"trace"`
	Span   string `json:"span"`
	Parent string `json:"parent"`
	Name   string `json:"name"`
	Entity string `json:"entity,omitempty"`
}

// traces remembers the last spans of a node. A product gives its provider an exporter, such as that for
// OTLP, in its place.
type traces struct {
	provider *sdk.TracerProvider

	mu   sync.Mutex
	last []span // At most maxTraces.
}

var _ sdk.SpanExporter = (*traces)(nil)

// newTraces returns where the spans of a node go.
func newTraces() *traces {
	t := &traces{}
	t.provider = sdk.NewTracerProvider(sdk.WithSyncer(t), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(sampled))))
	return t
}

// ExportSpans implements [sdk.SpanExporter].
func (t *traces) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range spans {
		about := attribute.NewSet(s.Attributes()...)
		entity, _ := about.Value("quorate.entity") // The spans of requests have none.
		t.last = append(t.last, span{
			s.SpanContext().TraceID().String(), s.SpanContext().SpanID().String(), s.Parent().SpanID().String(), s.Name(), entity.AsString(),
		})
	}
	t.last = t.last[max(0, len(t.last)-maxTraces):]
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (t *traces) Shutdown(context.Context) error { return nil }

// ServeHTTP answers with the last spans.
func (t *traces) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = json.NewEncoder(w).Encode(t.last) // Who has gone asks again.
}
