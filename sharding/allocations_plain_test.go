// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package sharding_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
)

// What a message allocates on its whole way, on both nodes together, the program's own part included: the value and
// its bytes where a codec decodes it, and the context of an entity that replies. A message that costs more than its
// budget shows here before it shows in a measurement; who raises a budget says why. Under the race detector, pools
// forget at random.
func TestMessagesAllocateWithinTheirBudget(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		regions := make([]*sharding.Region[blob], 2)
		for i, n := range w.nodes {
			var err error
			regions[i], err = sharding.Start(n.system, sharding.Kind[blob]{
				Name: "echo", New: func(*sharding.Context) sharding.Entity[blob] { return new(echo) },
			})
			require.NoError(t, err)
		}
		r, ctx, message := regions[0], t.Context(), payload(64)
		ask := func(id string) string {
			reply, err := sharding.Ask[blob](ctx, r, id, payload(0))
			require.NoError(t, err)
			return string(reply.GetValue())
		}
		ids := map[bool]string{} // By whether the entity lives on the node that sends.
		for i := 0; len(ids) < 2; i++ {
			id := string(rune('a' + i))
			ids[ask(id) == w.nodes[0].Self().String()] = id
		}
		const burst = 100
		for _, budget := range []struct {
			what      string
			near, ask bool
			most      float64
		}{
			{"a tell on one node", true, false, 0.2},
			{"an ask on one node", true, true, 3.5},
			{"a tell to another node", false, false, 2.5},
			{"an ask to another node", false, true, 13.5},
		} {
			id := ids[budget.near]
			got := testing.AllocsPerRun(50, func() {
				for range burst {
					if budget.ask {
						_, err := sharding.Ask[blob](ctx, r, id, message)
						require.NoError(t, err)
					} else {
						require.NoError(t, r.Tell(ctx, id, message))
					}
				}
				synctest.Wait()
			}) / burst
			require.LessOrEqual(t, got, budget.most, budget.what)
		}
	})
}
