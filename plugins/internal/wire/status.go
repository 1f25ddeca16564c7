// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"
	"unicode"

	spancodes "go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/plugins"
)

// EndSpan ends the span of a call with what came of it, in the host and in the plugin.
func EndSpan(span trace.Span, err error) {
	name := StatusName(err)
	span.SetAttributes(semconv.RPCResponseStatusCode(name))
	if err != nil {
		span.SetAttributes(meter.Fault.String(name))
		span.SetStatus(spancodes.Error, Line(err.Error(), MaxTextBytes))
	}
	span.End()
}

// StatusName returns the name of the status of a call as the documents of gRPC write it, such as DEADLINE_EXCEEDED.
func StatusName(err error) string {
	code := status.Code(err)
	if errors.Is(err, plugins.ErrUnavailable) {
		code = codes.Unavailable // There was no process to call.
	}
	switch code {
	case codes.OK:
		return "OK"
	case codes.Canceled:
		return "CANCELLED"
	default:
	}
	var name strings.Builder
	for i, r := range code.String() {
		if unicode.IsUpper(r) && i > 0 {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(r))
	}
	return name.String()
}
