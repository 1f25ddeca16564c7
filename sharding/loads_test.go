// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// told is load-aware that keeps the regions that it was told last.
type told struct {
	*allocation.LoadAware

	mu   sync.Mutex
	last []allocation.RegionState
}

func (s *told) Rebalance(ctx context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = r.Regions
	return s.LoadAware.Rebalance(ctx, r)
}

// loads returns the loads that the strategy was told last, and requires a capacity of all.
func (s *told) loads(t *testing.T, capacity uint32) (loads []float64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.last {
		require.Equal(t, capacity, s.last[i].Capacity)
		loads = append(loads, s.last[i].Load)
	}
	return loads
}

// slowly is an actor that takes a while for each message.
type slowly struct{ *actor }

const slowlyTakes = 5 * time.Millisecond

func (a slowly) Receive(c *sharding.Context, m text) error {
	<-time.After(slowlyTakes)
	return a.actor.Receive(c, m)
}

// The time that handlers take comes to the strategy, as the part of the processors of each node
// that they had of late, with the capacity of the node. When nothing is handled any more, it fades.
func TestStrategiesHearOfTheLoad(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		aware, err := allocation.NewLoadAware(allocation.Default().LoadAware)
		require.NoError(t, err)
		strategy := &told{LoadAware: aware}
		w.options = []sharding.Option{sharding.WithAllocation(strategy)}
		w.config = func(_ *membership.Config, c *sharding.Config) {
			c.Allocation.Strategy, c.Capacity = "told", 3
		}
		w.kind = func(n *node, k *sharding.Kind[text]) {
			k.New = func(*sharding.Context) sharding.Entity[text] { return slowly{&actor{n: n}} }
		}
		w.start(2)
		const every = 20 * time.Millisecond
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); pass(every) {
			w.nodes[0].tell("a", "note x")
			w.nodes[0].tell("b", "note x")
		}
		sum := 0.0
		for _, load := range strategy.loads(t, 3) {
			sum += load
		}
		want := 2 * float64(slowlyTakes) / float64(every) / float64(runtime.GOMAXPROCS(0))
		require.InDelta(t, want, sum, want/5)
		pass(3 * time.Minute)
		for _, load := range strategy.loads(t, 3) {
			require.Less(t, load, want/20)
		}
		synctest.Wait()
	})
}
