// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
)

// next returns the next event of a subscription.
func next[T crdt.Value[T]](t *testing.T, s interface {
	Next(ctx context.Context) (ddata.Event[T], error)
},
) ddata.Event[T] {
	t.Helper()
	event, err := s.Next(patience.Context(t))
	require.NoError(t, err)
	return event
}

// nothing checks that a subscription has nothing to tell for a while.
func nothing[T crdt.Value[T]](t *testing.T, s interface {
	Next(ctx context.Context) (ddata.Event[T], error)
},
) {
	t.Helper()
	_, err := s.Next(patience.Expiring(t, time.Second))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A subscriber is told of the value that is there, then of changes on any node, many of
// them together, and of the deletion.
func TestASubscriberIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		key := counter("visits")
		require.NoError(t, w.nodes[0].add("visits", 1, ddata.All()))
		s, absent := ddata.Subscribe(w.nodes[0], key), ddata.Subscribe(w.nodes[0], counter("other"))
		defer s.Close()
		defer absent.Close()
		event := next(t, s)
		require.Equal(t, ddata.Changed, event.Kind)
		require.Equal(t, key, event.Key)
		require.EqualValues(t, 1, event.Value.Value())
		nothing(t, s)
		nothing(t, absent)

		for range 100 {
			require.NoError(t, w.nodes[1].add("visits", 1, ddata.Local()))
		}
		told := 0
		for event.Value.Value() < 101 {
			event = next(t, s)
			told++
		}
		require.LessOrEqual(t, told, 3, "changes come together")
		for range 1000 {
			require.NoError(t, w.nodes[0].add("visits", 1, ddata.Majority()))
		}
		pass(time.Second)
		require.EqualValues(t, 1101, next(t, s).Value.Value(), "a subscriber that comes late is told the present value")
		nothing(t, s)

		ctx := patience.Context(t)
		require.NoError(t, ddata.Delete(ctx, w.nodes[1], key, ddata.All()))
		require.Equal(t, ddata.Deleted, next(t, s).Kind)
		eventually(t, "the key is usable again", func() bool { return w.nodes[1].add("visits", 5, ddata.All()) == nil })
		event = next(t, s)
		require.Equal(t, ddata.Changed, event.Kind)
		require.EqualValues(t, 5, event.Value.Value())

		require.Equal(t, 2, w.nodes[0].Data().Stats().Subscribers)
		s.Close()
		s.Close()
		_, err := s.Next(ctx)
		require.ErrorIs(t, err, ddata.ErrClosed)
		require.Equal(t, 1, w.nodes[0].Data().Stats().Subscribers)
	})
}

// A subscriber to a prefix is told of all keys of its type that begin with it, first those
// that are there.
func TestASubscriberToAPrefixIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		const keys = 5000
		for i := range keys {
			require.NoError(t, w.nodes[0].add(fmt.Sprintf("room/%d", i), 1, ddata.Local()))
		}
		require.NoError(t, w.nodes[0].add("hall", 1, ddata.All()))
		w.nodes[1].holds("room/4999", 1)
		ctx := patience.Context(t)
		_, err := ddata.Update(ctx, w.nodes[0], ddata.NewKey[crdt.GSet[string]]("room/names"), ddata.All(),
			func(_ crdt.Origin, v crdt.GSet[string]) (crdt.GSet[string], error) { return v.Add("a"), nil })
		require.NoError(t, err)

		s := ddata.SubscribePrefix[crdt.GCounter](w.nodes[1], "room/")
		defer s.Close()
		seen := map[string]uint64{}
		for len(seen) < keys {
			event := next(t, s)
			require.Equal(t, ddata.Changed, event.Kind)
			require.Zero(t, seen[event.Key.Name()], "each once")
			seen[event.Key.Name()] = event.Value.Value()
		}
		nothing(t, s)
		require.NoError(t, w.nodes[0].add("room/7", 2, ddata.All()))
		require.NoError(t, w.nodes[0].add("hall", 2, ddata.All()))
		event := next(t, s)
		require.Equal(t, "room/7", event.Key.Name())
		require.EqualValues(t, 3, event.Value.Value())
		got, err := ddata.Get(ctx, w.nodes[1], event.Key, ddata.Local())
		require.NoError(t, err)
		require.EqualValues(t, 3, got.Value())
		require.NoError(t, ddata.Delete(ctx, w.nodes[0], counter("room/8"), ddata.All()))
		event = next(t, s)
		require.Equal(t, ddata.Deleted, event.Kind)
		require.Equal(t, "room/8", event.Key.Name())
		nothing(t, s)
	})
}

// A subscriber that was told of a value, and comes back when the key was deleted and its
// tombstone collected, is told that the value is gone; one that was told of no value is told
// nothing.
func TestASubscriberThatComesBackAfterTheTombstone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ int, _ *membership.Config, c *ddata.Config) { c.SweepInterval = time.Second }
		w.start(2)
		n := w.nodes[0]
		require.NoError(t, n.add("room/1", 1, ddata.All()))
		one, all, late := ddata.Subscribe(n, counter("room/1")), ddata.SubscribePrefix[crdt.GCounter](n, "room/"), ddata.Subscribe(n, counter("room/1"))
		defer one.Close()
		defer all.Close()
		defer late.Close()
		require.Equal(t, ddata.Changed, next(t, one).Kind)
		require.Equal(t, ddata.Changed, next(t, all).Kind)
		nothing(t, one)
		nothing(t, all)
		ctx := patience.Context(t)
		require.NoError(t, ddata.Delete(ctx, n, counter("room/1"), ddata.All()))
		eventually(t, "the tombstone is collected", func() bool { return n.Data().Stats().Tombstones == 0 })
		pass(time.Second)
		event := next(t, one)
		require.Equal(t, ddata.Deleted, event.Kind)
		require.Equal(t, "room/1", event.Key.Name())
		event = next(t, all)
		require.Equal(t, ddata.Deleted, event.Kind)
		require.Equal(t, "room/1", event.Key.Name())
		nothing(t, one)
		nothing(t, all)
		nothing(t, late)
		require.NoError(t, n.add("room/1", 1, ddata.All()))
		require.Equal(t, ddata.Changed, next(t, one).Kind)
		require.Equal(t, ddata.Changed, next(t, all).Kind)
		require.Equal(t, ddata.Changed, next(t, late).Kind)
	})
}

// A replica that forgets what it holds, here in favour of the others after an operator has
// accepted a loss, says so to the subscribers: what it had may not come back. Who was told of no
// value is told nothing.
func TestSubscribersHearThatAReplicaHasForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		n, apart := w.nodes[0], w.nodes[1]
		require.NoError(t, n.add("room/1", 1, ddata.All()))
		s := ddata.SubscribePrefix[crdt.GCounter](apart, "room/")
		defer s.Close()
		require.Equal(t, ddata.Changed, next(t, s).Kind)
		for _, o := range w.nodes[1:] {
			w.network.Cut(n.Self().Address, o.Self().Address)
		}
		eventually(t, "the others are unreachable", func() bool { return !n.explain("room/1").Group.Quorum })
		require.NoError(t, apart.add("room/2", 1, ddata.Local()))
		event := next(t, s)
		require.Equal(t, ddata.Changed, event.Kind)
		require.Equal(t, "room/2", event.Key.Name())
		kept, lost, none := ddata.Subscribe(apart, counter("room/1")), ddata.Subscribe(apart, counter("room/2")), ddata.Subscribe(apart, counter("room/3"))
		for _, one := range []*ddata.Subscription[crdt.GCounter]{kept, lost, none} {
			defer one.Close()
		}
		require.Equal(t, ddata.Changed, next(t, kept).Kind)
		require.Equal(t, ddata.Changed, next(t, lost).Kind)
		require.NoError(t, n.AcceptLoss(t.Context(), "all"))
		for _, o := range w.nodes[1:] {
			w.network.Heal(n.Self().Address, o.Self().Address)
		}
		for event = next(t, s); event.Kind == ddata.Changed && event.Key.Name() == "room/2"; {
			event = next(t, s) // Told before it is forgotten.
		}
		require.Equal(t, ddata.Missed, event.Kind, event.Key.Name())
		require.GreaterOrEqual(t, event.N, 2)
		event = next(t, s)
		require.Equal(t, ddata.Changed, event.Kind, "all that is there follows")
		require.Equal(t, "room/1", event.Key.Name(), "and nothing of the lineage that has ended")
		require.Equal(t, ddata.Event[crdt.GCounter]{Kind: ddata.Missed, N: 1}, next(t, lost))
		require.Equal(t, ddata.Event[crdt.GCounter]{Kind: ddata.Missed, N: 1}, next(t, kept))
		require.Equal(t, ddata.Changed, next(t, kept).Kind, "the value of the others follows")
		for _, one := range []*ddata.Subscription[crdt.GCounter]{kept, lost, none} {
			nothing(t, one)
		}
	})
}

// Who looks a key up between the moment in which all is forgotten and that in which subscribers are told so is not told
// that the key was deleted.
func TestAForgottenKeyIsNotDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		n := w.nodes[0]
		require.NoError(t, n.add("room/1", 1, ddata.Local()))
		all, one := ddata.SubscribePrefix[crdt.GCounter](n, "room/"), ddata.Subscribe(n, counter("room/1"))
		defer all.Close()
		defer one.Close()
		require.Equal(t, ddata.Changed, next(t, all).Kind)
		require.Equal(t, ddata.Changed, next(t, one).Kind)
		tell := n.Forget("room/1")
		nothing(t, all)
		nothing(t, one)
		tell()
		require.Equal(t, ddata.Missed, next(t, all).Kind)
		require.Equal(t, ddata.Missed, next(t, one).Kind)
		require.NoError(t, n.add("room/1", 1, ddata.Local()))
		require.Equal(t, ddata.Changed, next(t, all).Kind)
		require.Equal(t, ddata.Changed, next(t, one).Kind)
	})
}

// A subscriber that never reads costs no more than a bound, and is told that it has missed
// something when it reads at last.
func TestASubscriberThatNeverReads(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		s := ddata.SubscribePrefix[crdt.GCounter](w.nodes[0], "room/")
		defer s.Close()
		nothing(t, s)
		const keys = ddata.SubscriberKeys + 1000
		for i := range keys {
			require.NoError(t, w.nodes[0].add(fmt.Sprintf("room/%d", i), 1, ddata.Local()))
		}
		require.NoError(t, w.nodes[0].add("room/0", 1, ddata.Majority()))
		pass(time.Second)
		event := next(t, s)
		require.Equal(t, ddata.Missed, event.Kind)
		require.GreaterOrEqual(t, event.N, 1)
		seen := map[string]bool{}
		for len(seen) < keys {
			event = next(t, s)
			require.Equal(t, ddata.Changed, event.Kind)
			seen[event.Key.Name()] = true
		}
		nothing(t, s)
	})
}
