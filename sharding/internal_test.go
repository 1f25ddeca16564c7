// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/explain"
	"github.com/quorate/quorate/sharding/internal/notes"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport/memory"
)

// The runtime from inside, on a node by itself, where a test can do what no cluster does:
// first standing that is lost between two messages, an entity that is left behind, and the
// context of entities; then what asks leave behind, frames that cannot be right, and replies
// that are ahead of the map; last the allocations of a message.

// double is an entity that replies with twice the number that it is sent.
type double struct{}

func (double) Receive(c *Context, m *wrapperspb.Int64Value) error {
	return c.Reply(wrapperspb.Int64(2 * m.GetValue()))
}

// lone runs a test on a node by itself, in virtual time, with a kind of one shard.
func lone(t *testing.T, f func(t *testing.T, s *System, r *Region[*wrapperspb.Int64Value], log *bytes.Buffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		network, cfg := memory.NewNetwork(), membership.Default()
		cfg.Cluster.Name, cfg.Node.Address = "test", "10.0.0.1:7946"
		cfg.Membership.SeedNodes = []string{cfg.Node.Address}
		node, err := membership.Start(t.Context(), cfg, membership.WithUID(1), membership.WithLogger(slog.New(slog.DiscardHandler)),
			membership.WithTransport(network.Transport))
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

// A message whose turn comes when the clock shows no standing is not begun, even before the
// loss of standing is announced. It is tried again, and handled when there is standing.
func TestTheClockIsLookedAtBeforeEachMessage(t *testing.T) {
	lone(t, func(t *testing.T, s *System, r *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		sl, held := r.r.region.SlotOf("a"), s.standing
		set := func(standing *membership.Standing) { sl.Do(func(*cell.Cell) { s.runtime.Ports.Standing = standing }) }
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

// When a shard goes on without an entity that does not return, the context of the entity
// ends, the outcome of its message is unknown, and the message that waited was not
// delivered. The entity counts as stuck until it returns, and is stopped then.
func TestAnEntityThatIsLeftBehind(t *testing.T) {
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], log *bytes.Buffer) {
		stuck := &stubborn{hold: make(chan struct{}), fine: make(chan context.Context, 1), ended: make(chan context.Context, 2)}
		r, err := Start(s, Kind[*wrapperspb.Int64Value]{Name: "stubborn", Shards: 1, New: func(*Context) Entity[*wrapperspb.Int64Value] { return stuck }})
		require.NoError(t, err)
		ask := func() <-chan error {
			result := make(chan error, 1)
			go func() {
				_, err := Ask[*wrapperspb.Int64Value](t.Context(), r, "a", wrapperspb.Int64(1))
				result <- err
			}()
			<-time.After(5 * time.Second)
			synctest.Wait()
			return result
		}
		running, waiting := ask(), ask()
		require.NoError(t, (<-stuck.fine).Err())
		sl := r.r.region.SlotOf("a")
		epoch := sl.Info().Epoch
		sl.Apply(protocol.StopHosting{Epoch: epoch})
		sl.Apply(protocol.ReleaseHosting{Epoch: epoch})
		synctest.Wait()
		err = <-running
		require.ErrorIs(t, err, ErrUnknownOutcome)
		require.ErrorContains(t, err, "went on without it")
		require.ErrorIs(t, <-waiting, ErrNotDelivered)
		require.EqualValues(t, 1, s.Stats().Stuck)
		require.Contains(t, log.String(), "entity does not return")
		require.ErrorIs(t, (<-stuck.ended).Err(), context.Canceled)
		require.ErrorIs(t, (<-stuck.ended).Err(), context.Canceled, "one that it asks for later has ended too")
		require.Contains(t, strings.Join(explain.Pending(sl.Info(), s.wall), "\n"), "its shard has gone on without it")
		close(stuck.hold)
		synctest.Wait()
		require.Zero(t, s.Stats().Stuck)
		require.True(t, stuck.stopped.Load())
	})
}

// stubborn is an entity whose Receive does not return when its context ends, but only when
// hold is closed.
type stubborn struct {
	hold        chan struct{}
	fine, ended chan context.Context
	stopped     atomic.Bool
}

func (s *stubborn) Receive(c *Context, m *wrapperspb.Int64Value) error {
	ctx := c.Context()
	s.fine <- ctx
	<-ctx.Done()
	s.ended <- ctx
	s.ended <- c.Context()
	<-s.hold
	return c.Reply(m)
}

func (s *stubborn) Stop(*Context) { s.stopped.Store(true) }

// The entities of a cell share one context. It ends with the standing, and entities get
// another when the standing is back; that ends with the hosting.
func TestTheContextOfEntities(t *testing.T) {
	lone(t, func(t *testing.T, s *System, r *Region[*wrapperspb.Int64Value], _ *bytes.Buffer) {
		sl := r.r.region.SlotOf("a")
		first := s.contexts.Of(r.r.region, sl, new(cell.Entity))
		require.Equal(t, first, s.contexts.Of(r.r.region, sl, new(cell.Entity)))
		s.contexts.Apply(protocol.SuspendHosting{})
		require.Error(t, first.Err())
		s.contexts.Apply(protocol.UnsuspendHosting{})
		second := s.contexts.Of(r.r.region, sl, new(cell.Entity))
		require.NoError(t, second.Err())
		s.contexts.Apply(protocol.SuspendHosting{}) // As a look does, in a moment without standing that nobody else notices.
		require.Error(t, second.Err())
		third := s.contexts.Of(r.r.region, sl, new(cell.Entity))
		require.NoError(t, third.Err(), "the node has standing")
		var lost atomic.Bool
		r.r.region.Under(sl.Shard(), func() bool { return !lost.Load() })
		lost.Store(true)
		require.Error(t, third.Err(), "the lease is lost")
		lost.Store(false)
		fourth := s.contexts.Of(r.r.region, sl, new(cell.Entity))
		require.NoError(t, fourth.Err(), "the lease is held")
		sl.Apply(protocol.StopHosting{Epoch: sl.Info().Epoch})
		synctest.Wait()
		require.Error(t, fourth.Err())
		s.contexts.Apply(protocol.AbandonHosting{})
		s.contexts.Apply(protocol.UnsuspendHosting{})
		require.Error(t, s.contexts.Of(r.r.region, sl, new(cell.Entity)).Err(), "a node that has ended gives no other")
	})
}

// Asks leave nothing behind in the table of asks, whether they have a reply or are canceled.
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
		require.Zero(t, r.r.region.SlotOf("a").Asking())
	})
}

// Frames to a kind or a shard that this node does not have are counted, and so are frames
// that are forged or cannot be decoded, violations, and tells that were refused.
func TestWhatCannotBeIsCounted(t *testing.T) {
	lone(t, func(t *testing.T, s *System, _ *Region[*wrapperspb.Int64Value], log *bytes.Buffer) {
		from := gossip.NodeID{Address: gossip.Address{Host: "10.0.0.2", Port: 7946}, UID: 2}
		s.runtime.Received(from, wire.AppendAck(nil, protocol.Ack{Kind: "unknown", Seq: 1}))
		s.runtime.Received(from, wire.AppendReply(nil, &protocol.Reply{Kind: "double", Shard: 1, Correlation: 1}))
		require.EqualValues(t, 2, s.Stats().Misdirected)
		s.runtime.Received(from, wire.AppendNeed(nil, protocol.Nack{Kind: "double", Seq: 1}))
		refusal := wire.AppendReply(nil, &protocol.Reply{Kind: "double", Code: protocol.CodeOverloaded})
		s.runtime.Received(from, refusal)
		require.Zero(t, s.Stats().Failed, "nothing of this kind ever went there")
		require.EqualValues(t, 1, s.Stats().Forged.Total())
		s.runtime.Received(s.self, refusal)
		require.EqualValues(t, 1, s.Stats().Failed, "a tell that was refused")
		s.runtime.Received(from, []byte{0xff})
		require.EqualValues(t, 1, s.Stats().Malformed)
		s.published(control.Violation{Kind: "double", Shard: 0, Detail: "two hosts"})
		require.EqualValues(t, 1, s.Stats().Violations)
		require.Contains(t, log.String(), "two hosts")
		s.published(control.CoordinatorStopped{Kind: "double"})
		require.Contains(t, log.String(), `msg="coordinator of double: stopped"`)
		_, err := s.call(t.Context(), machine.Call{Port: "odd", Request: 1})
		require.ErrorContains(t, err, `call of kind "odd" with a int`)
	})
}

// A reply of a home that this node does not know yet waits for the map. It ends the ask when
// the map comes. A reply of a node that does not become a home is logged.
func TestAReplyThatIsAheadOfTheMap(t *testing.T) {
	lone(t, func(t *testing.T, s *System, r *Region[*wrapperspb.Int64Value], log *bytes.Buffer) {
		at := func(host string) gossip.NodeID {
			return gossip.NodeID{Address: gossip.Address{Host: host, Port: 7946}, UID: 2}
		}
		known, next, other := at("10.0.0.2"), at("10.0.0.3"), at("10.0.0.4")
		sl := r.r.region.SlotOf("a")
		move := func(to gossip.NodeID, n uint64) {
			e := sl.Info().Epoch
			e.N += n
			sl.Apply(protocol.SetRoute{Home: to, Epoch: e, Base: e})
		}
		move(known, 100)
		answer := make(chan int64, 1)
		go func() {
			reply, _ := Ask[*wrapperspb.Int64Value](t.Context(), r, "a", wrapperspb.Int64(4))
			answer <- reply.GetValue()
		}()
		synctest.Wait()
		say := func(from gossip.NodeID, v int64) {
			payload, err := r.r.program.codec.Append(nil, wrapperspb.Int64(v))
			require.NoError(t, err)
			s.runtime.Received(from, wire.AppendReply(nil, &protocol.Reply{Kind: "double", Correlation: r.r.asks.Load(), Payload: payload}))
			synctest.Wait()
		}
		say(other, 1)
		say(next, 7)
		say(next, 8)
		require.Empty(t, answer)
		e := sl.Info().Epoch
		e.N++
		sl.Apply(protocol.SetRoute{Home: next, Epoch: e, Base: sl.Info().Epoch})
		require.EqualValues(t, 8, <-answer)
		<-time.After(2 * notes.ForgeryGather)
		synctest.Wait()
		require.EqualValues(t, 3, s.Stats().Forged.Reply)
		require.Equal(t, 1, strings.Count(log.String(), "in a name that is not its own"), log)
		require.Contains(t, log.String(), "peer=10.0.0.4:7946#2")
		require.Contains(t, log.String(), "fault=reply kind=double shard=0 count=1")
	})
}

// A message whose type is not that of the kind, as a faulty codec may return it, is an
// error.
func TestAMessageOfAnotherTypeIsAnError(t *testing.T) {
	b := typed[*wrapperspb.Int64Value]{}
	require.ErrorContains(t, b.receive(nil, double{}, wrapperspb.String("x")), "message is a *wrapperspb.StringValue, want *wrapperspb.Int64Value")
	require.IsType(t, new(wrapperspb.Int64Value), b.blank())
}
