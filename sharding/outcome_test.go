// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
)

// What is under way in a connection when its link is cut arrives when that is whole
// again, after the deadline of the ask: no entity handles it. It once was, since what
// was left of the deadline counted from the arrival.
func TestNothingIsHandledAfterItsDeadline(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		asker, host := w.nodes[0], w.nodes[1]
		id := asker.on(host)
		asker.must(id, "x") // It is awake, and the lane is in use.
		w.network.Cut(asker.Self().Address, host.Self().Address)
		_, err := asker.ask(id, "late", 500*time.Millisecond)
		require.ErrorIs(t, err, sharding.ErrUnknownOutcome, "it had been written")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		pass(time.Second)
		w.network.HealAll()
		asker.must(id, "y")
		pass(10 * time.Second)
		require.Empty(t, w.journal.of(id, "late"))
	})
}

// A message that the host's node got in time, and that another node had to pass on,
// keeps its deadline on the whole way.
func TestADeadlineHoldsOverAMove(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		asker, leaver := w.nodes[0], w.nodes[2]
		id := asker.on(leaver)
		asker.must(id, "x")
		left := make(chan error, 1)
		asker.tell(id, "wait") // It holds up the move.
		synctest.Wait()
		go func() { left <- leaver.Leave(t.Context()) }()
		pass(100 * time.Millisecond)
		_, err := asker.ask(id, "late", 500*time.Millisecond)
		require.Error(t, err)
		pass(time.Second)
		w.release()
		require.NoError(t, within(t, left))
		asker.must(id, "y")
		require.Empty(t, w.journal.of(id, "late"))
	})
}
