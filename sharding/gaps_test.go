// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// How long clients notice nothing of an entity whose node has not failed, in virtual time: so that what
// is measured is the protocol, and not the machine. Group rolling, rebalance and kill of the benchmarks
// measure the same in real processes.

// maxGap is the longest time without an answer.
const maxGap = 300 * time.Millisecond

// sitter asks entities all the time, from one node.
type sitter struct {
	from *node
	ids  []string
	end  chan struct{}
	all  sync.WaitGroup

	mu      sync.Mutex
	longest time.Duration
	at      string // Which entity had the longest gap.
	faults  []error
	answers int
}

// sit begins to ask entities every 20 ms.
func (n *node) sit(ids []string) *sitter {
	s := &sitter{from: n, ids: ids, end: make(chan struct{})}
	for _, id := range ids {
		s.all.Go(func() { s.watch(id) }) // Owned by s: done waits for it.
	}
	return s
}

func (s *sitter) watch(id string) {
	last := time.Now()
	for {
		_, err := s.from.ask(id, "where", limit)
		s.mu.Lock()
		if err != nil {
			s.faults = append(s.faults, fmt.Errorf("%s: %w", id, err))
		} else {
			s.answers++
			if gap := time.Since(last); gap > s.longest {
				s.longest, s.at = gap, id
			}
			last = time.Now()
		}
		s.mu.Unlock()
		select {
		case <-s.end:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// done ends the asking, and requires that each ask was answered without a long gap.
func (s *sitter) done() {
	t := s.from.w.t
	t.Helper()
	close(s.end)
	s.all.Wait()
	require.Empty(t, s.faults)
	require.LessOrEqual(t, s.longest, maxGap, s.at)
	t.Logf("%d answers, the longest gap was %v", s.answers, s.longest)
}

// entitiesOf returns n ids.
func entitiesOf(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("entity-%d", i))
	}
	return ids
}

// Five nodes are restarted one after the other, the coordinator first, while a node that hosts nothing
// asks: no ask fails, and no entity is silent for long.
func TestARollingRestartKeepsNobodyWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, c *sharding.Config) { c.NumberOfShards = 50 }
		w.kind = func(n *node, k *sharding.Kind[text]) { k.ProxyOnly = n.i == 0 }
		w.start(6)
		asker := w.nodes[0]
		s := asker.sit(entitiesOf(40))
		for _, old := range slices.Clone(w.nodes[1:]) {
			ctx := patience.Context(t)
			require.NoError(t, old.Leave(ctx))
			require.NoError(t, old.Close())
			fresh := w.build()
			fresh.startKind()
			require.NoError(t, fresh.AwaitUp(ctx))
			require.NoError(t, fresh.region.AwaitReady(ctx))
		}
		pass(3 * time.Second) // The last one gets its part of the shards.
		s.done()
		for _, n := range w.nodes[6:] {
			require.Equal(t, 10, n.system.Kinds()[0].Hosted)
		}
	})
}

// A node that joins gets its part of many shards without a failed ask or a long gap.
func TestAJoinMovesManyShards(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, c *sharding.Config) { c.NumberOfShards = 1500 }
		w.start(2)
		s := w.nodes[0].sit(entitiesOf(40))
		fresh := w.build()
		fresh.startKind()
		began := time.Now()
		eventually(t, "it has a third", func() bool { return fresh.system.Kinds()[0].Hosted >= 500 })
		t.Logf("500 shards have moved after %v", time.Since(began))
		s.done()
	})
}

// While the node of the coordinator is gone and the others wait until they know it, entities that live
// elsewhere are not silent for long.
func TestTheEndOfTheCoordinatorIsNotNoticedElsewhere(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.start(3)
		asker := w.nodes[1]
		stay := append(asker.hosted(w.nodes[1], 3), asker.hosted(w.nodes[2], 3)...)
		lost := asker.on(w.nodes[0])
		s := asker.sit(stay)
		pass(time.Second)
		w.crash(w.nodes[0])
		asker.insist(lost, "where")
		pass(2 * time.Second)
		s.done()
	})
}
