// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/transport"
	"github.com/quorate/quorate/membership/transport/memory"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/sharding/protocol"
)

// double answers with twice what it hears.
type double struct{}

func (double) Receive(c *Context, m *wrapperspb.Int64Value) error {
	return c.Reply(wrapperspb.Int64(2 * m.GetValue()))
}

// lone runs a test on a node by itself, in virtual time.
func lone(t *testing.T, f func(t *testing.T, s *System, r *Region[*wrapperspb.Int64Value], log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		network, cfg := memory.NewNetwork(), membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "test", "10.0.0.1:7946"
		cfg.Membership.SeedNodes = []string{cfg.Node.Address}
		node, err := membership.Start(t.Context(), cfg, membership.WithUID(1), membership.WithLogger(slog.New(slog.DiscardHandler)),
			membership.WithTransport(func(id transport.Identity, c transport.Config, f func(transport.Notice)) (transport.Transport, error) {
				return memory.New(network, id, c, memory.WithNotices(f))
			}))
		require.NoError(t, err)
		defer func() {
			require.NoError(t, node.Close())
			synctest.Wait()
		}()
		s, err := New(node, Default(), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		r, err := Start(s, Kind[*wrapperspb.Int64Value]{
			Name: "double", Shards: 1, New: func(*Context) Entity[*wrapperspb.Int64Value] { return double{} },
		})
		require.NoError(t, err)
		_, err = Ask[*wrapperspb.Int64Value](t.Context(), r, "first", wrapperspb.Int64(1))
		require.NoError(t, err)
		f(t, s, r, &log)
	})
}

// A message whose turn comes when the clock shows no standing, before anything
// else has noticed, is not begun: it is tried again, and handled when there is
// standing. A reply that is ready then waits.
func TestTheClockIsLookedAtBeforeEachMessage(t *testing.T) {
	lone(t, func(t *testing.T, s *System, r *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		c, held := r.r.cellOf("a"), s.standing
		set := func(standing *membership.Standing) { r.r.step(c, func(*protocol.Actions) { s.standing = standing }) }
		set(new(membership.Standing))
		answer := make(chan int64, 1)
		go func() {
			reply, _ := Ask[*wrapperspb.Int64Value](t.Context(), r, "a", wrapperspb.Int64(4))
			answer <- reply.GetValue()
		}()
		<-time.After(time.Second)
		synctest.Wait()
		require.Empty(t, answer)
		set(held)
		before := time.Now()
		require.EqualValues(t, 8, <-answer)
		require.LessOrEqual(t, time.Since(before), 100*time.Millisecond)
	})
}

// Asks leave nothing behind, however they end.
func TestAsksLeaveNothingBehind(t *testing.T) {
	lone(t, func(t *testing.T, _ *System, r *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		for i := range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			if i%2 == 0 {
				cancel()
			}
			_, err := Ask[*wrapperspb.Int64Value](ctx, r, "a", wrapperspb.Int64(4))
			require.Equal(t, i%2 == 0, err != nil)
			cancel()
		}
		require.Empty(t, r.r.cellOf("a").asks)
	})
}

// What is for a kind or a shard that is not here is counted, and so is what must
// not be.
func TestWhatCannotBeIsCounted(t *testing.T) {
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], log *bytes.Buffer) {
		from := gossip.NodeID{Address: gossip.Address{Host: "10.0.0.2", Port: 7946}, UID: 2}
		s.received(from, wire.AppendAck(nil, protocol.Ack{Kind: "unknown", Seq: 1}))
		s.received(from, wire.AppendReply(nil, &protocol.Reply{Kind: "double", Shard: 1, Correlation: 1}))
		require.EqualValues(t, 2, s.Stats().Misdirected)
		s.received(from, wire.AppendNeed(nil, protocol.Need{Kind: "double", Seq: 1}))
		s.received(from, wire.AppendReply(nil, &protocol.Reply{Kind: "double", Code: protocol.CodeOverloaded}))
		require.EqualValues(t, 1, s.Stats().Failed, "a tell that was refused")
		s.received(from, []byte{0xff})
		require.EqualValues(t, 1, s.Stats().Malformed)
		s.published(protocol.Violation{Kind: "double", Shard: 0, Detail: "two hosts"})
		require.EqualValues(t, 1, s.Stats().Violations)
		require.Contains(t, log.String(), "two hosts")
		require.Contains(t, log.String(), "coordinator started")
		_, err := s.call(t.Context(), machine.Call{Kind: "odd", Request: 1})
		require.ErrorContains(t, err, `call of kind "odd" with a int`)
	})
}

// A codec that decodes into something else than the kind's messages is found out.
func TestAMessageOfAnotherTypeIsAnError(t *testing.T) {
	b := typed[*wrapperspb.Int64Value]{}
	require.ErrorContains(t, b.receive(nil, double{}, wrapperspb.String("x")), "message is a *wrapperspb.StringValue, want *wrapperspb.Int64Value")
	require.IsType(t, new(wrapperspb.Int64Value), b.blank())
}

// The backlog takes what there is place for, node by node, and gives it out once.
func TestTheBacklogIsBounded(t *testing.T) {
	var b backlog
	one := gossip.NodeID{UID: 1}
	half := []byte(strings.Repeat("x", backlogBytesMax/2))
	require.Zero(t, b.add(one, half, half))
	require.Equal(t, 2, b.add(one, []byte("y"), []byte("z")))
	require.Zero(t, b.add(gossip.NodeID{UID: 2}, half))
	require.Len(t, b.take(one), 2)
	require.Empty(t, b.take(one))
	require.Len(t, b.take(gossip.NodeID{UID: 2}), 1)
	require.Empty(t, b.nodes)
}

// A local tell and a local ask allocate the message, and what the entity and the
// caller need; no timer, no map, no encoding.
func TestLocalMessagesAllocateLittle(t *testing.T) {
	lone(t, func(t *testing.T, _ *System, r *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		message, ctx := wrapperspb.Int64(1), t.Context()
		allocs := testing.AllocsPerRun(1000, func() {
			if _, err := Ask[*wrapperspb.Int64Value](ctx, r, "a", message); err != nil {
				t.Error(err)
			}
		})
		require.LessOrEqual(t, allocs, 12.0)
	})
}
