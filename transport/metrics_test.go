// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/meter/metertest"
	"github.com/quorate/quorate/transport"
)

// filled returns counters of a lane that all have different values.
func filled(from uint64) transport.LaneCounters {
	return transport.LaneCounters{
		Sent: from + 50, Acked: from + 1, Lost: from + 2, Received: from + 3,
		FramesSent: from + 4, FramesResent: from + 5, FramesReceived: from + 6, Duplicates: from + 7,
		BytesSent: from + 8, BytesReceived: from + 9, Full: from + 10, TooLarge: from + 11,
		UnhandledHere: from + 12, UnhandledThere: from + 13, Connects: from + 14, Accepts: from + 15, Breaks: from + 16,
	}
}

// Every counter of a lane is a metric of its own, by lane.
func TestEveryCounterIsShown(t *testing.T) {
	reader := metertest.New()
	var c transport.Counters
	for lane := machine.LaneControl; lane <= machine.LaneBulk; lane++ {
		c.Lanes[lane] = filled(100 * uint64(lane))
		c.Add(&c.Lanes[lane])
	}
	c.Fallbacks, c.NotAccepted = 5, 6
	c.RefusedInbound[transport.ReasonBlocked], c.RefusedOutbound[transport.ReasonClusterName] = 7, 8
	stop, err := transport.Observe(reader.Provider(), gossip.NodeID{UID: 1}, func() transport.Counters { return c })
	require.NoError(t, err)
	defer stop()
	in, out := attribute.String("network.io.direction", "receive"), attribute.String("network.io.direction", "transmit")
	full, large := attribute.String("error.type", "full"), attribute.String("error.type", "too-large")
	opened, accepted := attribute.String("quorate.side", "opened"), attribute.String("quorate.side", "accepted")
	for _, test := range []struct {
		name string
		with []attribute.KeyValue
		want func(transport.LaneCounters) uint64
	}{
		{"messages", []attribute.KeyValue{out}, func(c transport.LaneCounters) uint64 { return c.Sent }},
		{"messages", []attribute.KeyValue{in}, func(c transport.LaneCounters) uint64 { return c.Received }},
		{"frames", []attribute.KeyValue{out}, func(c transport.LaneCounters) uint64 { return c.FramesSent }},
		{"frames", []attribute.KeyValue{in}, func(c transport.LaneCounters) uint64 { return c.FramesReceived }},
		{"io", []attribute.KeyValue{out}, func(c transport.LaneCounters) uint64 { return c.BytesSent }},
		{"io", []attribute.KeyValue{in}, func(c transport.LaneCounters) uint64 { return c.BytesReceived }},
		{"messages.waiting", nil, func(c transport.LaneCounters) uint64 { return max(c.Sent, c.Acked+c.Lost) - c.Acked - c.Lost }},
		{"messages.lost", nil, func(c transport.LaneCounters) uint64 { return c.Lost }},
		{"messages.refused", []attribute.KeyValue{full}, func(c transport.LaneCounters) uint64 { return c.Full }},
		{"messages.refused", []attribute.KeyValue{large}, func(c transport.LaneCounters) uint64 { return c.TooLarge }},
		{"messages.unhandled", []attribute.KeyValue{in}, func(c transport.LaneCounters) uint64 { return c.UnhandledHere }},
		{"messages.unhandled", []attribute.KeyValue{out}, func(c transport.LaneCounters) uint64 { return c.UnhandledThere }},
		{"frames.resent", nil, func(c transport.LaneCounters) uint64 { return c.FramesResent }},
		{"frames.duplicate", nil, func(c transport.LaneCounters) uint64 { return c.Duplicates }},
		{"connections", []attribute.KeyValue{opened}, func(c transport.LaneCounters) uint64 { return c.Connects }},
		{"connections", []attribute.KeyValue{accepted}, func(c transport.LaneCounters) uint64 { return c.Accepts }},
		{"connections.broken", nil, func(c transport.LaneCounters) uint64 { return c.Breaks }},
	} {
		name := "quorate.transport." + test.name
		for lane := machine.LaneControl; lane <= machine.LaneBulk; lane++ {
			got := reader.Value(t, name, append(test.with, attribute.String("quorate.lane", lane.String()))...)
			require.InDelta(t, test.want(c.Lanes[lane]), got, 0, "%s of %s", name, lane)
		}
	}
	require.InDelta(t, 5, reader.Value(t, "quorate.transport.connections.fallback"), 0)
	require.InDelta(t, 6, reader.Value(t, "quorate.transport.accept.errors"), 0)
	refused := "quorate.transport.connections.refused"
	require.InDelta(t, 7, reader.Value(t, refused, accepted, attribute.String("error.type", "blocked")), 0)
	require.InDelta(t, 8, reader.Value(t, refused, opened, attribute.String("error.type", "wrong-cluster-name")), 0)
	require.InDelta(t, 15, reader.Value(t, refused), 0)
}

// Waiting is never negative, also while counters change as they are read.
func TestWaitingIsNeverNegative(t *testing.T) {
	for _, c := range []transport.LaneCounters{{Sent: 1, Acked: 2}, {Sent: 3, Acked: 2, Lost: 2}, {}} {
		require.Zero(t, c.Waiting(), fmt.Sprint(c))
	}
	require.Equal(t, uint64(4), (&transport.LaneCounters{Sent: 7, Acked: 2, Lost: 1}).Waiting())
}
