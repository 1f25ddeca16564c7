// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership"
)

// downed runs a cluster until a member is lost and the others have decided, and returns the spans by their names. What
// the strategy waits for until then comes to it as a channel.
func downed(t *testing.T, decide func(never <-chan struct{}, v downing.View) (downing.Decision, error)) (spans map[string][]sdk.ReadOnlySpan) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	bubble(t, func(t *testing.T, p *place) {
		never := make(chan struct{})
		defer close(never)
		provider := strange(func(_ context.Context, v downing.View) (downing.Decision, error) { return decide(never, v) })
		nodes := p.cluster(3, membership.WithDowning(membership.Downing{Provider: provider}),
			membership.WithTracerProvider(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))))
		require.NoError(t, nodes[2].Close())
		p.await(nodes[0], "the others have decided", func(v membership.View) bool {
			return len(v.State.Members()) == 2
		})
	})
	spans = map[string][]sdk.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		spans[s.Name()] = append(spans[s.Name()], s)
	}
	require.Len(t, recorder.Started(), len(recorder.Ended()), "no span stays open")
	return spans
}

func eventOf(s sdk.ReadOnlySpan, name string) (attrs map[attribute.Key]string) {
	for _, e := range s.Events() {
		if e.Name == name {
			attrs = map[attribute.Key]string{}
			for _, kv := range e.Attributes {
				attrs[kv.Key] = kv.Value.String()
			}
		}
	}
	return attrs
}

// A question to a downing strategy is a span that has its decision, and what the cluster decides by it is in the same
// trace.
func TestADecisionOfAStrategyIsATrace(t *testing.T) {
	spans := downed(t, func(_ <-chan struct{}, v downing.View) (downing.Decision, error) {
		return downing.KeepMajority{}.DecideNow(v)
	})
	asked := spans["ask downing"][0]
	require.Equal(t, "keep-side", eventOf(asked, "decision")["quorate.verdict"])
	require.Contains(t, eventOf(asked, "decision")["quorate.decision.reason"], "keep-majority: this side has 2 of 3 voters")
	require.Equal(t, codes.Unset, asked.Status().Code)
	require.Equal(t, meter.SchemaURL, asked.InstrumentationScope().SchemaURL)
	decided := spans["decide downing"][0]
	require.Equal(t, asked.SpanContext().SpanID(), decided.Parent().SpanID())
	require.Contains(t, decided.Attributes(), attribute.String("quorate.verdict", "keep-side"))
}

// A strategy that has not answered in time is seen as that, with the limit, and so is what happens without it. One
// that ignores its deadline leaves no span open.
func TestADecisionThatWaitedInVainIsATrace(t *testing.T) {
	var asked atomic.Bool
	spans := downed(t, func(never <-chan struct{}, v downing.View) (downing.Decision, error) {
		if !asked.Swap(true) {
			<-never
		}
		return downing.KeepMajority{}.DecideNow(v)
	})
	late := spans["ask downing"][0]
	require.Equal(t, "5", eventOf(late, "deadline")["quorate.timeout"])
	require.Equal(t, codes.Error, late.Status().Code)
	require.Contains(t, late.Status().Description, "no answer within 5s")
	var reasons []string
	for _, s := range spans["decide downing"] {
		if s.Parent().TraceID() == late.SpanContext().TraceID() && s.Status().Code == codes.Error {
			reasons = append(reasons, s.Status().Description)
		}
	}
	require.NotEmpty(t, reasons)
	require.Contains(t, strings.Join(reasons, "; "), "no answer within 5s")
}
