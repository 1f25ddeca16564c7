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

// idlers has n workers wait in a pool, the first of them first; each says by its
// number that it has ended.
func idlers(c *workerPool, n int) (workers []*worker, ended chan int) {
	ended = make(chan int, n)
	for i := range n {
		one := &worker{jobs: make(chan job, 1)}
		workers = append(workers, one)
		go func() { // Ends when the pool lets it go; the bubble waits for it.
			for more := true; more; {
				_, more = c.wait(&one)
			}
			ended <- i
		}()
		synctest.Wait()
	}
	return workers, ended
}

// Who came last works, so that who is not needed is: it is let go after a while, with
// whoever is left when the context ends.
func TestThePoolIsAsLargeAsItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := workerPool{most: 3}
		ctx, cancel := context.WithCancel(t.Context())
		go c.trimIdle(ctx)
		workers, ended := idlers(&c, 3)
		require.Empty(t, ended)
		for range 5 { // The last one is enough.
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
