// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
)

// Which messages reach an entity, and in which order: first in good health, from several
// senders and from entities; then over broken connections and over a leave; last before the
// first home is known.

// numbers tells an entity the numbers from 1 to count in the name of a sender, and calls
// after when each of them was accepted.
func (n *node) numbers(id, sender string, count int, after func(i int)) {
	for i := range count {
		n.tell(id, fmt.Sprintf("%s %d", sender, i+1))
		after(i)
	}
}

// An entity can be reached by its id from each node, by Ask and by Tell.
func TestAskAndTellReachTheEntityFromEachNode(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		homes := map[string]bool{}
		for i := range 30 {
			id := fmt.Sprintf("id-%d", i)
			home := w.nodes[0].must(id, "where")
			homes[home] = true
			for _, n := range w.nodes {
				require.Equal(t, home, n.must(id, "where"), "one home for all")
				n.tell(id, fmt.Sprintf("n %d", n.i))
				require.Equal(t, "test/"+id, n.must(id, "kind"))
			}
			require.ElementsMatch(t, []string{"0", "1", "2"}, w.journal.words(id, "n "))
			require.Len(t, w.journal.of(id, "start"), 1, "started before the first message, once")
		}
		require.Len(t, homes, 3, "all nodes host")
		for _, n := range w.nodes {
			require.Zero(t, n.system.Stats().Failed)
			require.Same(t, n.system, n.system.Sharding())
			require.Same(t, n.Node, n.system.Node())
		}
	})
}

// The messages of each sender to each entity are handled in order, one at a time, while
// several goroutines of every node send at once. An actor panics when two of its calls
// overlap.
func TestOrderPerSenderAndOneMessageAtATime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		const count = 60
		var senders sync.WaitGroup
		for _, n := range w.nodes {
			for s := range 3 {
				senders.Go(func() {
					for i := range count {
						for e := range 4 {
							n.tell(fmt.Sprintf("id-%d", e), fmt.Sprintf("from-%d-%d %d", n.i, s, i+1))
						}
					}
				})
			}
		}
		senders.Wait()
		for e := range 4 {
			id := fmt.Sprintf("id-%d", e)
			for _, n := range w.nodes {
				n.must(id, "x")
				for s := range 3 {
					w.inOrder(id, fmt.Sprintf("from-%d-%d", n.i, s), count)
				}
			}
			require.Len(t, w.journal.of(id, "start"), 1)
		}
		for _, n := range w.nodes {
			require.Zero(t, n.system.Stats().Panics)
		}
	})
}

// An entity may send to other entities, and to itself, while it handles a message.
func TestEntitiesSendToEntities(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		here, there := w.nodes[0].on(w.nodes[0]), w.nodes[0].on(w.nodes[1])
		for _, to := range []string{here, there} {
			w.nodes[0].tell(here, "pass "+to)
			eventually(t, "it is passed on", func() bool { return len(w.journal.of(to, "passed by "+here)) == 1 })
		}
	})
}

// No message is lost, handled twice or overtaken when connections are reset, or links lose
// everything in one direction or in both.
// covers I20.
func TestBrokenConnectionsLoseAndDoubleNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		ids := append(w.nodes[0].hosted(w.nodes[1], 2), w.nodes[0].hosted(w.nodes[2], 2)...)
		a, b := w.nodes[0].Self().Address, w.nodes[1].Self().Address
		const count = 240
		for i := range count {
			for _, n := range w.nodes {
				for _, id := range ids {
					n.tell(id, fmt.Sprintf("from-%d %d", n.i, i+1))
				}
			}
			switch {
			case i%20 == 10:
				w.breakAll()
			case i%60 == 5:
				w.network.CutOneWay(b, a)
			case i%60 == 25:
				w.network.CutOneWay(a, b)
			case i%60 == 45:
				w.network.HealAll()
			}
			pass(7 * time.Millisecond)
		}
		w.network.HealAll()
		for _, id := range ids {
			for _, n := range w.nodes {
				n.must(id, "x")
				w.inOrder(id, fmt.Sprintf("from-%d", n.i), count)
			}
			require.Len(t, w.journal.of(id, "start"), 1)
		}
	})
}

// A leave keeps the order of each sender, and every entity is stopped before it starts
// elsewhere, under a higher epoch.
// covers F28, I20.
func TestLeaveKeepsTheOrderAndStopsEntities(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		id := w.nodes[0].on(w.nodes[2])
		left := make(chan error, 1)
		for i := range 400 {
			for _, n := range w.nodes[:2] {
				n.tell(id, fmt.Sprintf("from-%d %d", n.i, i+1))
			}
			if i == 100 {
				go func() { left <- w.nodes[2].Leave(t.Context()) }()
			}
			pass(5 * time.Millisecond)
		}
		require.NoError(t, within(t, left))
		require.NotEqual(t, w.nodes[2].Self().String(), w.nodes[0].must(id, "where"))
		w.nodes[1].must(id, "x")
		w.inOrder(id, "from-0", 400)
		w.inOrder(id, "from-1", 400)
		starts, stops := w.journal.of(id, "start"), w.journal.of(id, "stop")
		require.Len(t, starts, 2)
		require.Len(t, stops, 1)
		require.Equal(t, 2, stops[0].node)
		require.False(t, starts[1].at.Before(stops[0].at), "the new home starts when the old one has stopped")
		require.Positive(t, starts[1].epoch.Compare(starts[0].epoch), "the epoch grows")
		require.NoError(t, w.nodes[2].awaitEnd(limit))
		require.Zero(t, w.nodes[0].system.Stats().Failed)
	})
}

// The last node of a cluster stops its entities too when it leaves.
func TestTheLastNodeStopsItsEntitiesWhenItLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		w.nodes[0].must("a", "x")
		ctx := patience.Context(t)
		require.NoError(t, w.nodes[0].Leave(ctx))
		require.Len(t, w.journal.of("a", "stop"), 1)
		require.NoError(t, w.nodes[0].awaitEnd(limit))
	})
}

// Messages that are sent before the first home is known wait, and keep their order.
func TestMessagesBeforeTheFirstHomeWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.build()
		n.startKind()
		n.numbers("a", "early", 50, func(int) {})
		synctest.Wait()
		require.Empty(t, w.journal.of("a", ""))
		n.must("a", "x")
		w.inOrder("a", "early", 50)
	})
}
