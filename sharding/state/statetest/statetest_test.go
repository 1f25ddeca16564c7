// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package statetest_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

// A call that goes wrong is not done, done in part, or done whole, at once or later; Calm ends that.
func TestAFlakyStoreDoesAllOfThat(t *testing.T) {
	counted := &counting{Store: memory.New()}
	f := statetest.NewFlaky(counted, 1)
	claims := make([]store.Claim, 5)
	for i := range claims {
		claims[i].Key.ID = string(rune('a' + i))
	}
	failed, fine := 0, 0
	for range 300 {
		if _, err := f.Load(t.Context(), claims); err != nil {
			require.ErrorIs(t, err, statetest.ErrLost)
			failed++
		} else {
			fine++
		}
	}
	f.Calm()
	for range 100 {
		_, err := f.Load(t.Context(), claims)
		require.NoError(t, err)
	}
	require.Greater(t, failed, 50)
	require.Greater(t, fine, 100)
	counted.mu.Lock()
	defer counted.mu.Unlock()
	require.Greater(t, counted.calls[5], 100+fine, "the answers of some are lost")
	require.True(t, slices.ContainsFunc(counted.calls[1:5], func(n int) bool { return n > 0 }), "some are done in part")
}

// counting counts calls by their requests.
type counting struct {
	*memory.Store

	mu    sync.Mutex
	calls [6]int
}

func (c *counting) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	c.mu.Lock()
	c.calls[len(claims)]++
	c.mu.Unlock()
	return c.Store.Load(ctx, claims)
}
