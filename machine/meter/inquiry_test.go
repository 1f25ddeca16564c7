// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/meter"
)

// Each collection gets the answer to its own question, also when several collect at
// once.
func TestAnInquiryIsAnswered(t *testing.T) {
	var q meter.Inquiry[uint64]
	var all sync.WaitGroup
	var mu sync.Mutex
	seen := map[uint64]bool{}
	for range 8 {
		all.Go(func() {
			got, ok := q.Ask(t.Context(), nil, func(id uint64) error {
				go func() { // Ends at once: an answer never waits.
					q.Answer(id-1, 99)
					q.Answer(id, id)
					q.Answer(id, 98)
				}()
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			seen[got] = ok
		})
	}
	all.Wait()
	require.Len(t, seen, 8)
	for id := uint64(1); id <= 8; id++ {
		require.True(t, seen[id])
	}
}

// A machine that does not answer delays a collection for a moment only.
func TestAnInquiryWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q meter.Inquiry[int]
		var last uint64
		silent := func(id uint64) error {
			last = id
			return nil
		}
		begun := time.Now()
		_, ok := q.Ask(t.Context(), nil, silent)
		require.False(t, ok)
		require.Equal(t, 200*time.Millisecond, time.Since(begun))
		q.Answer(last, 1) // Too late for this one.
		q.Answer(last+1, 9)
		for range 2 {
			got, ok := q.Ask(t.Context(), nil, silent)
			require.True(t, ok, "of a machine that is late the last answer counts")
			require.Equal(t, 1, got)
		}

		over, ended := make(chan struct{}), time.Now()
		close(over)
		_, ok = q.Ask(t.Context(), over, silent)
		require.False(t, ok)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, ok = q.Ask(ctx, nil, silent)
		require.False(t, ok)
		_, ok = q.Ask(t.Context(), nil, func(uint64) error { return errors.New("full") })
		require.False(t, ok)
		require.Zero(t, time.Since(ended))
	})
}
