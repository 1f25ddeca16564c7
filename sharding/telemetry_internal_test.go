// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/telemetry"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// The parts of telemetry that no cluster shows: first the counters of faults, and the word
// that an error has in a metric and in a span.

// Metrics count also faults that a cluster in good health never has.
func TestMetricsOfWhatShouldNotHappen(t *testing.T) {
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		reader := metertest.New()
		m := telemetry.New(reader.Provider(), s.self)
		m.Observe(s.collect, s.log)
		defer m.Stop()
		names := []string{"violations", "messages.malformed", "messages.misdirected", "replies.unsent", "messages.failed", "messages.dropped"}
		for _, name := range names {
			require.Zero(t, reader.Value(t, "quorate.sharding."+name), name)
			require.NotEmpty(t, reader.Points(t, "quorate.sharding."+name), name)
		}
		s.published(control.Violation{Kind: "double"})
		s.runtime.Received(s.self, []byte{0xff})
		s.runtime.Received(s.self, wire.AppendAck(nil, protocol.Ack{Kind: "unknown", Seq: 1}))
		nobody := s.self
		nobody.UID = 0 // There is no lane to a node id without an incarnation.
		s.runtime.Received(nobody, wire.AppendFlow(nil, protocol.Flow{Kind: "double", Entity: "a", State: protocol.FlowAsk}))
		s.runtime.Received(s.self, wire.AppendReply(nil, &protocol.Reply{Kind: "double", Code: protocol.CodeExpired}))
		s.runtime.Ports.Notes.Dropped(cell.DropHops)
		for _, name := range names {
			require.InDelta(t, 1, reader.Value(t, "quorate.sharding."+name), 0, name)
		}
		require.InDelta(t, 1, reader.Value(t, "quorate.sharding.messages.dropped", attribute.String("error.type", "hops")), 0)
	})
}

// Each error code has a word of its own, which metrics and spans carry. A code of a later
// version is an unknown outcome.
func TestWordsForErrors(t *testing.T) {
	seen := map[string]bool{}
	for code := protocol.CodeUnreachable; int(code) < protocol.Codes; code++ {
		word := telemetry.Word(code)
		require.False(t, seen[word], word)
		seen[word] = true
		require.Equal(t, word, wordOfError(&MessageError{"k", "e", "", errorOf(code)}), "%v", code)
		require.EqualError(t, errorOf(code), code.String())
		fault, text := verdictOf(&protocol.Reply{Code: code, Detail: "d"}, nil)
		require.Equal(t, [2]string{word, "d"}, [2]string{fault, text})
	}
	require.NoError(t, errorOf(protocol.CodeOK))
	require.EqualError(t, errorOf(200), protocol.Code(200).String(), "of a later version")
	require.ErrorIs(t, errorOf(200), ErrUnknownOutcome)
	for want, err := range map[string]error{
		"settings":      errors.Join(ErrNotDelivered, &SettingsError{}),
		"invalid":       ErrInvalid,
		"unreachable":   errors.Join(ErrNotDelivered, &UnreachableError{}, context.Canceled),
		"not-delivered": errors.Join(ErrNotDelivered, ErrClosed),
	} {
		require.Equal(t, want, wordOfError(err))
	}
	fault, text := verdictOf(&protocol.Reply{}, nil)
	require.Empty(t, fault+text)
}
