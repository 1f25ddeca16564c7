// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
)

// crowd is a queue whose workers do what a test says: a job is a function, kept by the pointer
// of its entity.
type crowd struct {
	workQueue

	todo map[*cell.Entity]func()
}

func newCrowd(processors int) *crowd {
	c := &crowd{todo: map[*cell.Entity]func(){}}
	c.init(func(w *worker, j job) {
		go func() { // Ends when the queue dismisses the worker; the bubble waits for that.
			for more := true; more; j, more = c.next(w) {
				c.todo[j.e]()
			}
		}()
	})
	c.processors, c.limit = processors, processors
	return c
}

// add puts a job; functions are added before the workers that read them start, or by a
// test while all workers wait.
func (c *crowd) add(do ...func()) {
	jobs := make([]job, len(do))
	for i, f := range do {
		jobs[i].e = new(cell.Entity)
		c.todo[jobs[i].e] = f
	}
	for _, j := range jobs {
		c.put(j)
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
		require.Len(t, c.workers, 1)
		c.trim(true)
	})
}

// While jobs block their workers others take their place within a few looks, however many
// block; when all have returned, their number goes back to the processors, and the workers
// end.
func TestWorkersThatAreKeptAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		ctx, cancel := context.WithCancel(t.Context())
		hold, done := make(chan struct{}), 0
		var jobs []func()
		for range 1000 {
			jobs = append(jobs, func() { <-hold })
		}
		began := time.Now()
		c.add(append(jobs, func() { done++ })...)
		for done == 0 {
			<-time.After(queueLook)
			synctest.Wait()
		}
		require.Less(t, time.Since(began), 25*queueLook, "as many again every second look")
		require.LessOrEqual(t, c.limit, 2100)
		close(hold)
		synctest.Wait()
		require.Zero(t, c.busy)
		require.LessOrEqual(t, len(c.workers), 1003)
		go c.trimIdle(ctx)
		<-time.After(40 * queuePatience)
		synctest.Wait()
		require.Empty(t, c.workers)
		require.Equal(t, runtime.GOMAXPROCS(0), c.limit)
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
				<-time.After(queueLook / 4)
				c.mu.Lock()
				now--
				c.mu.Unlock()
			})
		}
		c.add(jobs...)
		<-time.After(100 * queueLook)
		synctest.Wait()
		require.Equal(t, 2, most, "beside the one that is kept")
		require.Equal(t, 3, c.limit)
		close(hold)
		c.trim(true)
	})
}

// The worker that has waited for the shortest time gets the next job, so that workers that
// are not needed are not used at all, and end after a while. In a queue that has ended no
// worker waits, and jobs are done all the same.
func TestWorkersEndThatNoJobNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(3)
		ctx, cancel := context.WithCancel(t.Context())
		go c.trimIdle(ctx)
		hold := make(chan struct{})
		wait := func() { <-hold }
		c.add(wait, wait, wait)
		close(hold)
		synctest.Wait()
		require.Len(t, c.idle, 3)
		last := c.idle[2]
		for range 3 {
			c.add(func() {})
			<-time.After(queuePatience)
			synctest.Wait()
		}
		require.Equal(t, []*worker{last}, c.idle)
		cancel()
		synctest.Wait()
		require.Empty(t, c.workers)
		done := false
		c.add(func() { done = true })
		synctest.Wait()
		require.True(t, done)
		require.Empty(t, c.workers)
	})
}

// A job that is put back lets all others go first that stand in the queue.
func TestAJobThatIsPutBackGoesLast(t *testing.T) {
	var q workQueue
	q.init(nil)
	w := &worker{}
	entities := make([]cell.Entity, 100)
	for i := range entities[1:] {
		q.push(job{e: &entities[1+i]})
	}
	mine := job{e: &entities[0]}
	for i := range 300 {
		mine = q.exchange(w, mine)
		require.Same(t, &entities[(1+i)%100], mine.e)
	}
	require.EqualValues(t, 99, q.waiting.Load())
}
