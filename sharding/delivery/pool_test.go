// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
)

// A pool of workers on a cluster in virtual time: jobs are done while workers fail and nodes are lost, within bounds,
// and by the next pool with the queue.

// pool starts a pool on the first node, which ends with the test.
func (w *world) pool(workers int, change ...func(*delivery.Config)) *delivery.Pool[text] {
	w.t.Helper()
	cfg := delivery.Default()
	cfg.Log = slog.New(slog.DiscardHandler)
	for _, f := range change {
		f(&cfg)
	}
	p, err := delivery.NewPool(w.t.Context(), w.regions[0], numbered(workers), cfg)
	require.NoError(w.t, err)
	w.t.Cleanup(p.Close)
	return p
}

// numbered returns the ids of workers.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("worker-", i)
	}
	return ids
}

// doneBy returns all jobs that workers have done, sorted, and how many workers have done some.
func (w *world) doneBy(workers int) (jobs []string, busy int) {
	for _, id := range numbered(workers) {
		if some := w.of(id); len(some) > 0 {
			jobs = append(jobs, some...)
			busy++
		}
	}
	slices.Sort(jobs)
	return jobs, busy
}

// sorted returns the texts of jobs, sorted.
func sorted(n int) []string {
	all := numbers(n)
	slices.Sort(all)
	return all
}

func TestWorkersShareTheJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		p := w.pool(6)
		for _, m := range numbers(200) {
			require.NoError(t, p.Submit(w.within(), say(m)))
		}
		require.NoError(t, p.Flush(w.within()))
		jobs, busy := w.doneBy(6)
		require.Equal(t, sorted(200), jobs, "each once, while nothing fails")
		require.Equal(t, 6, busy)
		require.Equal(t, delivery.PoolStats{Confirmed: 200}, p.Stats())
		require.NoError(t, p.Do(w.within(), say("last")))
	})
}

// Of a node that is lost, the workers are started elsewhere, and until then others do their jobs.
func TestJobsOfALostNodeAreDone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		w.set(func(*sharding.Context, text) error { <-time.After(100 * time.Millisecond); return nil })
		p := w.pool(6)
		for _, m := range numbers(300) {
			require.NoError(t, p.Submit(w.within(), say(m)))
		}
		pass(500 * time.Millisecond)
		w.close(2)
		require.NoError(t, p.Flush(w.within()))
		jobs, _ := w.doneBy(6)
		require.Equal(t, sorted(300), slices.Compact(jobs))
	})
}

// A worker that fails at everything, and one that does not answer, hold up nothing but their own first job, which
// another one does.
func TestWorkersThatFail(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		w.set(func(c *sharding.Context, _ text) error {
			switch c.ID() {
			case "worker-0":
				return errors.New("I never do")
			case "worker-1":
				<-c.Context().Done()
			}
			return nil
		})
		p := w.pool(4, func(c *delivery.Config) { c.Timeout = time.Second })
		for _, m := range numbers(50) {
			require.NoError(t, p.Submit(w.within(), say(m)))
		}
		require.NoError(t, p.Flush(w.within()))
		require.Positive(t, p.Stats().Failed)
		require.Empty(t, w.of("worker-0"))
		jobs, _ := w.doneBy(4)
		require.Equal(t, sorted(50), slices.Compact(jobs))
	})
}

// Without workers jobs wait, as many as there is room for; whoever has one more waits with them.
func TestAPoolIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		p := w.pool(0, func(c *delivery.Config) { c.Messages, c.PerEntity = 3, 1 })
		for _, m := range numbers(3) {
			require.NoError(t, p.Submit(w.within(), say(m)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := p.Submit(ctx, say("one more"))
		require.ErrorIs(t, err, delivery.ErrFull)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		err = p.Flush(ctx)
		require.ErrorIs(t, err, delivery.ErrUnconfirmed)
		require.NoError(t, p.SetWorkers(numbered(1)))
		require.NoError(t, p.Do(w.within(), say("one more")))
		require.NoError(t, p.Flush(w.within()))
		require.Len(t, w.of("worker-0"), 4)
	})
}

// A worker gets no more jobs than its inbox takes, and one with a window below zero none.
func TestWorkersPull(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.create = delivery.Entities(delivery.Inbox{Window: -1}, func(*sharding.Context) sharding.Entity[text] { return actor{w} })
		w.start(1)
		p := w.pool(2)
		require.NoError(t, p.Submit(w.within(), say("a")))
		pass(10 * time.Second)
		require.Equal(t, 1, p.Stats().Held)
		jobs, _ := w.doneBy(2)
		require.Empty(t, jobs)
	})
}

// What a pool has not done the next one with the queue does.
func TestTheNextPoolGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		queue := delivery.NewMemoryQueue()
		kept := func(c *delivery.Config) { c.Queue = queue }
		first := w.pool(0, kept)
		for _, m := range numbers(20) {
			require.NoError(t, first.Submit(w.within(), say(m)))
		}
		first.Close()
		require.ErrorIs(t, first.Submit(w.within(), say("late")), delivery.ErrClosed)
		require.ErrorIs(t, first.Flush(w.within()), delivery.ErrClosed)
		next := w.pool(3, kept)
		require.NoError(t, next.Do(w.within(), say("m20")))
		require.NoError(t, next.Flush(w.within()))
		jobs, _ := w.doneBy(3)
		require.Equal(t, sorted(21), jobs)
		left, err := queue.Load(t.Context())
		require.NoError(t, err)
		require.Empty(t, left)
	})
}

func TestPoolsThatCannotBe(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(1)
		_, err := delivery.NewPool(t.Context(), w.regions[0], numbered(1), delivery.Config{})
		require.ErrorIs(t, err, delivery.ErrConfig)
		for _, ids := range [][]string{{""}, {"a", "b", "a"}, {"\xff"}} {
			_, err := delivery.NewPool(t.Context(), w.regions[0], ids, delivery.Default())
			require.ErrorIs(t, err, delivery.ErrInvalid)
		}
		queue := delivery.NewMemoryQueue()
		require.NoError(t, queue.Append(t.Context(), delivery.Entry{EntryID: delivery.EntryID{Number: 1}, To: "ada"}))
		cfg := delivery.Default()
		cfg.Queue = queue
		_, err = delivery.NewPool(t.Context(), w.regions[0], nil, cfg)
		require.ErrorIs(t, err, delivery.ErrQueue)
		p := w.pool(1)
		require.ErrorIs(t, p.Submit(t.Context(), nil), delivery.ErrInvalid)
		require.ErrorIs(t, p.Submit(t.Context(), say(string(make([]byte, 300<<10)))), delivery.ErrInvalid)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.Submit(over, say("x")), context.Canceled)
		w.close(0)
		require.ErrorIs(t, p.Do(w.within(), say("x")), delivery.ErrClosed)
	})
}
