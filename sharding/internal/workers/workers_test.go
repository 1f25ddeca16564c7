// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"context"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/runtime"
)

// crowd is a pool whose workers do what a test says: a job is a function.
type crowd struct{ Pool[func()] }

func newCrowd(processors int) *crowd {
	c := &crowd{}
	c.Init(func(w *Worker[func()], do func()) {
		go func() { // Ends when the pool dismisses the worker; the bubble waits for that.
			for more := true; more; do, more = c.Next(w) {
				w.Enter()
				do()
				w.Return()
			}
		}()
	})
	c.queue.Init(processors)
	return c
}

// add puts jobs of the quick class.
func (c *crowd) add(jobs ...func()) {
	for _, do := range jobs {
		c.Put(do, runtime.ClassQuick)
	}
}

// Jobs that do not block are done by as many workers as there are processors, in the order
// in which they came.
func TestJobsNeedNoMoreWorkersThanProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(1)
		var done []int
		var jobs []func()
		for i := range 100 {
			jobs = append(jobs, func() { done = append(done, i) })
		}
		c.add(jobs...)
		synctest.Wait()
		require.IsIncreasing(t, done)
		require.Len(t, done, 100)
		require.Equal(t, 1, c.queue.Workers())
		c.close()
	})
}

// While jobs block their workers others take their place within a few looks, however many
// block; when all have returned, their number goes back to the processors, and the workers
// end.
func TestWorkersThatAreKeptAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		ctx, cancel := context.WithCancel(t.Context())
		hold, done := make(chan struct{}), atomic.Bool{}
		var jobs []func()
		for range 1000 {
			jobs = append(jobs, func() { <-hold })
		}
		began := time.Now()
		c.add(append(jobs, func() { done.Store(true) })...)
		for !done.Load() {
			<-time.After(runtime.QueueLook)
			synctest.Wait()
		}
		require.Less(t, time.Since(began), 25*runtime.QueueLook, "as many again every second look")
		require.LessOrEqual(t, c.queue.Limit(runtime.ClassQuick), 2100)
		close(hold)
		synctest.Wait()
		require.Zero(t, c.queue.Busy(runtime.ClassQuick))
		require.LessOrEqual(t, c.queue.Workers(), 1003)
		go c.TrimIdle(ctx)
		<-time.After(40 * runtime.QueueTrim)
		synctest.Wait()
		require.Zero(t, c.queue.Workers())
		require.Equal(t, goruntime.GOMAXPROCS(0), c.queue.Limit(runtime.ClassQuick))
		cancel()
		synctest.Wait()
	})
}

// One worker that is kept is replaced although the other one goes on: the jobs that wait have
// all processors.
func TestOneWorkerThatIsKeptIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		hold, most, now := make(chan struct{}), 0, 0
		jobs := []func(){func() { <-hold }}
		for range 100 {
			jobs = append(jobs, func() {
				c.mu.Lock()
				now++
				most = max(most, now)
				c.mu.Unlock()
				<-time.After(runtime.QueueLook / 4)
				c.mu.Lock()
				now--
				c.mu.Unlock()
			})
		}
		c.add(jobs...)
		<-time.After(100 * runtime.QueueLook)
		synctest.Wait()
		require.Equal(t, 2, most, "beside the one that is kept")
		require.Equal(t, 3, c.queue.Limit(runtime.ClassQuick))
		close(hold)
		c.close()
	})
}
