// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/state/store"
)

// Entities that are saved at the same moment share calls.
func TestManyEntitiesShareACall(t *testing.T) {
	const entities = 200
	inBubble(t, func(w *world) {
		n := w.start()
		w.store.set(func(d *disturbed) {
			d.before = func(writes []store.Write) error {
				require.LessOrEqual(w, len(writes), w.cfg.Batch)
				<-time.After(time.Millisecond)
				return nil
			}
		})
		var all sync.WaitGroup
		for i := range entities {
			all.Go(func() {
				for range 4 {
					_, err := n.ask(fmt.Sprint(i), 1)
					require.NoError(w, err)
				}
			})
		}
		all.Wait()
		s := n.keeper.Stats()
		require.Equal(w, uint64(4*entities), s.Saves)
		require.Less(w, s.SaveCalls, uint64(4*entities/10))
		for i := range entities {
			n.sum(fmt.Sprint(i), 0, 4)
		}
	})
}

// A request that waits while as many calls are under way as may be goes with the next call, without
// anything else that would begin it.
func TestARequestGoesWithTheNextCall(t *testing.T) {
	inBubble(t, func(w *world) {
		w.cfg.Calls = 1
		n := w.start()
		ids := []string{"a", "b"}
		for _, id := range ids {
			n.sum(id, 1, 1)
		}
		hold, before := make(chan struct{}), n.keeper.Stats().SaveCalls
		w.store.set(func(d *disturbed) {
			d.before = func([]store.Write) error {
				<-hold
				return nil
			}
		})
		var all sync.WaitGroup
		for _, id := range ids {
			all.Go(func() {
				_, err := n.ask(id, 1)
				require.NoError(w, err)
			})
			<-time.After(time.Second) // One worker waits for the call: another one takes the next entity after a look.
			synctest.Wait()
		}
		close(hold)
		all.Wait()
		require.Equal(w, before+2, n.keeper.Stats().SaveCalls)
	})
}
