// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quorate/quorate/sharding"
)

const (
	// askTimeout bounds one request: longer than a failover, so that a request to a device whose node has
	// just died is usually answered by the next node.
	askTimeout = 12 * time.Second
	// maxReading bounds the body of a request, in bytes.
	maxReading = 1 << 10

	// outcomeHeader says what became of a request that was not answered with a state.
	outcomeHeader  = "Outcome"
	outcomeNothing = "not-handled" // Nothing was begun.
	outcomeUnknown = "unknown"
)

// server answers requests on devices.
type server struct {
	devices  *sharding.Region[*reading]
	tracer   trace.Tracer
	readings metric.Int64Counter
}

// routes returns what the program serves over HTTP.
func routes(devices *sharding.Region[*reading], traces *traces, meters metric.MeterProvider) (http.Handler, error) {
	const scope = "github.com/quorate/quorate/examples/devices"
	readings, err := meters.Meter(scope).Int64Counter("devices.readings", metric.WithDescription("Requests with a reading that this node has answered, by their outcome."))
	if err != nil {
		return nil, err
	}
	s := &server{devices, traces.provider.Tracer(scope), readings}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /devices/{id}/readings", s.post)
	mux.HandleFunc("GET /devices/{id}", func(w http.ResponseWriter, r *http.Request) { s.ask(w, r, new(reading)) })
	mux.Handle("GET /traces", traces)
	return mux, nil
}

// post takes a reading.
func (s *server) post(w http.ResponseWriter, r *http.Request) {
	var taken reading
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReading)).Decode(&taken); err != nil || taken.Sequence == 0 {
		refuse(w, http.StatusBadRequest, outcomeNothing, `a reading is {"sequence": 7, "value": 21.5}, with a sequence number from 1`)
		return
	}
	outcome := s.ask(w, r, &taken)
	s.readings.Add(r.Context(), 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// ask asks a device within a span, which continues the trace of the client if it has one, and answers.
func (s *server) ask(w http.ResponseWriter, r *http.Request, message *reading) (outcome string) {
	ctx, cancel := context.WithTimeout(propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), askTimeout)
	defer cancel()
	ctx, span := s.tracer.Start(ctx, r.Pattern, trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	d, err := sharding.Ask[*device](ctx, s.devices, r.PathValue("id"), message)
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(d) // A client that is gone sends its reading again.
		return "answered"
	case errors.Is(err, sharding.ErrInvalid):
		refuse(w, http.StatusBadRequest, outcomeNothing, err.Error())
		return outcomeNothing
	case errors.Is(err, sharding.ErrNotDelivered): // It is safe to ask again.
		refuse(w, http.StatusServiceUnavailable, outcomeNothing, err.Error())
		return outcomeNothing
	default:
		refuse(w, http.StatusInternalServerError, outcomeUnknown, err.Error())
		return outcomeUnknown
	}
}

// refuse answers with a reason in place of a state.
func refuse(w http.ResponseWriter, status int, outcome, reason string) {
	w.Header().Set(outcomeHeader, outcome)
	http.Error(w, reason, status)
}
