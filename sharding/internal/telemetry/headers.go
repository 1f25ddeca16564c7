// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// What travels with a message, in its envelope, as lines: the header traceparent of W3C Trace Context, version 00; then
// its tracestate; then each other header that the propagator of the program writes, such as that of baggage.
//
//	00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//	vendor=1
//	baggage:tenant=7
//
// Empty lines at the end are left out. A node that reads only the first two takes the rest for a malformed tracestate,
// and leaves it out. Inject writes the lines, Extract reads them; the form of a traceparent comes last.

const (
	traceparentBytes = len("00-00000000000000000000000000000000-0000000000000000-00")
	maxTracestate    = 512     // Bytes. A longer one is left out, as the recommendation allows.
	maxHeaders       = 9 << 10 // Bytes of all: W3C Baggage asks for 8192. A header that is too much is left out.

	traceparentHeader = "traceparent"
	tracestateHeader  = "tracestate"
)

// Inject returns what travels with a message of a context, nil for nothing.
func (t *Tracing) Inject(ctx context.Context) []byte {
	if t.Plain() {
		return Traceparent(trace.SpanContextFromContext(ctx))
	}
	headers := propagation.MapCarrier{}
	t.Propagator().Inject(ctx, headers)
	return lines(headers)
}

// lines returns headers as they are in an envelope.
func lines(headers propagation.MapCarrier) []byte {
	all := []string{line(headers[traceparentHeader], traceparentBytes), line(headers[tracestateHeader], maxTracestate)}
	left := maxHeaders - len(all[0]) - len(all[1])
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		if name == traceparentHeader || name == tracestateHeader {
			continue
		}
		if l := line(name+":"+headers[name], left-1); l != "" {
			all, left = append(all, l), left-1-len(l)
		}
	}
	text := strings.TrimRight(strings.Join(all, "\n"), "\n")
	if text == "" {
		return nil
	}
	return []byte(text)
}

// line returns a line if it is one, and of at most so many bytes.
func line(text string, most int) string {
	if len(text) > most || strings.Contains(text, "\n") {
		return ""
	}
	return text
}

// Extract returns a context with what has travelled with a message. What means nothing there is left out.
func (t *Tracing) Extract(ctx context.Context, b []byte) context.Context {
	if t.Plain() {
		return remote(ctx, b)
	}
	return t.Propagator().Extract(ctx, headersOf(b))
}

// Carried returns a context with what has travelled with a message beside its trace context.
func (t *Tracing) Carried(ctx context.Context, b []byte) context.Context {
	if t.Plain() {
		return ctx
	}
	return t.Propagator().Extract(ctx, headersOf(b))
}

// Sampled returns the context of a message that belongs to a sampled trace; false if it belongs to none.
func (t *Tracing) Sampled(b []byte) (context.Context, bool) {
	if t.Plain() && !IsSampled(b) {
		return nil, false
	}
	ctx := t.Extract(context.Background(), b)
	return ctx, trace.SpanContextFromContext(ctx).IsSampled()
}

// headersOf reads the lines of an envelope.
func headersOf(b []byte) propagation.MapCarrier {
	headers := propagation.MapCarrier{}
	for i, l := range strings.Split(string(b), "\n") {
		name, value, ok := [...]string{traceparentHeader, tracestateHeader}[min(i, 1)], l, l != ""
		if i > 1 {
			name, value, ok = strings.Cut(l, ":")
		}
		if ok {
			headers[name] = value
		}
	}
	return headers
}

// remote returns a context with the span of another node, as an envelope says. What
// means nothing there is left out.
func remote(ctx context.Context, b []byte) context.Context {
	parent := parseTraceparent(b)
	if !parent.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, parent)
}

// OfClient returns what a program that is no member says of its trace, without headers that nodes alone write.
func OfClient(text string) []byte {
	if lines := strings.SplitN(text, "\n", 3); len(lines) == 3 {
		text = lines[0] + "\n" + lines[1]
	}
	return []byte(text)
}

// WithClient returns a context with the span of such a program.
func WithClient(ctx context.Context, text string) context.Context { return remote(ctx, []byte(text)) }

// Traceparent returns a trace context for an envelope, nil when there is none.
func Traceparent(c trace.SpanContext) []byte {
	if !c.IsValid() {
		return nil
	}
	state := c.TraceState().String()
	if len(state) > maxTracestate {
		state = ""
	}
	id, span, flags := c.TraceID(), c.SpanID(), [1]byte{byte(c.TraceFlags())}
	b := make([]byte, 0, traceparentBytes+min(len(state), 1)+len(state))
	b = hex.AppendEncode(append(b, "00-"...), id[:])
	b = hex.AppendEncode(append(b, '-'), span[:])
	b = hex.AppendEncode(append(b, '-'), flags[:])
	if state != "" {
		b = append(append(b, '\n'), state...)
	}
	return b
}

// parseTraceparent returns the trace context of an envelope, not valid when the bytes are
// malformed.
func parseTraceparent(b []byte) trace.SpanContext {
	var c trace.SpanContextConfig
	parent, state, _ := bytes.Cut(b, []byte{'\n'})
	state, _, _ = bytes.Cut(state, []byte{'\n'}) // More is not of the trace context.
	var flags [1]byte
	if len(parent) != traceparentBytes || string(parent[:3]) != "00-" || parent[35] != '-' || parent[52] != '-' ||
		!unhex(c.TraceID[:], parent[3:35]) || !unhex(c.SpanID[:], parent[36:52]) || !unhex(flags[:], parent[53:]) {
		return trace.SpanContext{}
	}
	c.TraceFlags = trace.TraceFlags(flags[0])
	if len(state) > 0 && len(state) <= maxTracestate {
		c.TraceState, _ = trace.ParseTraceState(string(state)) // A malformed tracestate is left out.
	}
	return trace.NewSpanContext(c)
}

// IsSampled reports whether the trace context of an envelope is sampled. The flag is
// in the last digit, and for most traces nothing else has to be read.
func IsSampled(b []byte) bool {
	return len(b) >= traceparentBytes && bytes.IndexByte([]byte("13579bdfBDF"), b[traceparentBytes-1]) >= 0
}

// unhex decodes the hexadecimal digits of src into dst. It reports false when one is
// malformed.
func unhex(dst, src []byte) bool {
	_, err := hex.Decode(dst, src)
	return err == nil
}
