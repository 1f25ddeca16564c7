// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// idlers lets n workers wait in a pool, one after the other. A worker that ends sends its
// number to ended.
func idlers(c *workerPool, n int) (workers []*worker, ended chan int) {
	ended = make(chan int, n)
	for i := range n {
		one := &worker{jobs: make(chan job, 1)}
		workers = append(workers, one)
		go func() { // Ends when the pool dismisses the worker; the bubble waits for that.
			for more := true; more; {
				_, more = c.wait(&one)
			}
			ended <- i
		}()
		synctest.Wait()
	}
	return workers, ended
}

// The worker that has waited for the shortest time gets the next job, so that the workers
// that are not needed are not used at all, and are dismissed after a while. When the context
// ends, all workers are dismissed.
func TestThePoolIsAsLargeAsItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := workerPool{most: 3}
		ctx, cancel := context.WithCancel(t.Context())
		go c.trimIdle(ctx)
		workers, ended := idlers(&c, 3)
		require.Empty(t, ended)
		for range 5 { // One job at a time keeps one worker busy: the last one.
			one := c.take()
			require.Same(t, workers[2], one)
			<-time.After(poolPatience)
			one.jobs <- job{op: protocol.OpRun}
			synctest.Wait()
		}
		require.Len(t, ended, 2)
		require.ElementsMatch(t, []int{0, 1}, []int{<-ended, <-ended})
		cancel()
		require.Equal(t, 2, <-ended)
		synctest.Wait()
		require.Nil(t, c.take())
		_, ended = idlers(&c, 1)
		require.Equal(t, 0, <-ended, "nobody waits in a pool that has ended")
	})
}

func TestThePoolIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := workerPool{most: 2}
		_, ended := idlers(&c, 3)
		require.Equal(t, 2, <-ended)
		c.dismiss(true)
		synctest.Wait()
		require.Len(t, ended, 2)
	})
}
