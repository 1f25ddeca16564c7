// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package workpool

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// world is a pool with workers that do jobs, forget their answers, fail, hang, lie, come and go; and with inboxes that
// take a number for seen which does not rise. Everything follows from the seed.
type world struct {
	t       *testing.T
	rand    *rand.Rand
	pool    *Pool[int]
	now     time.Duration
	flying  map[string]Frame[int]
	last    map[string]uint64 // Of each worker's inbox.
	demand  map[string]int    // What each has answered last.
	done    map[int]int       // How often each job was done.
	put     int
	told    map[int]bool // Confirmed to whoever has put it.
	members []string
	calm    bool // Nothing goes wrong any more.
}

var bounds = Config{Jobs: 40, Bytes: 400, Frame: 8, FrameBytes: 60, RetryMin: 10 * time.Millisecond, RetryMax: time.Second}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	return &world{
		t: t, rand: r, pool: New[int](bounds, r), flying: map[string]Frame[int]{}, last: map[string]uint64{},
		demand: map[string]int{}, done: map[int]int{}, told: map[int]bool{},
	}
}

// chance reports whether one of n cases is the present one; never in calm.
func (w *world) chance(n int) bool { return !w.calm && w.rand.IntN(n) == 0 }

// step lets one thing happen.
func (w *world) step() {
	w.now += time.Duration(w.rand.IntN(int(5 * time.Millisecond)))
	if !w.calm || w.put < 200 {
		bytes := 1 + w.rand.IntN(80)
		if id, ok := w.pool.Reserve(bytes); ok {
			if w.chance(10) {
				w.pool.Cancel(bytes)
			} else {
				w.put++
				w.pool.Put(id, w.put, bytes)
			}
		}
	}
	if w.chance(30) {
		w.members = nil
		for i := range 1 + w.rand.IntN(5) {
			w.members = append(w.members, fmt.Sprint("w", i))
		}
		w.pool.SetWorkers(w.members)
	}
	w.send()
	ids := make([]string, 0, len(w.flying))
	for id := range w.flying {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if w.calm || w.rand.IntN(3) == 0 {
			w.land(id)
		}
	}
	w.check()
}

// send takes all frames that are to be sent.
func (w *world) send() {
	for {
		f, ok := w.pool.Next(w.now)
		if !ok {
			return
		}
		_, twice := w.flying[f.To]
		require.False(w.t, twice, "P2: two frames to one worker")
		require.Contains(w.t, w.members, f.To, "a frame to whoever is no worker")
		allowed, known := w.demand[f.To]
		require.LessOrEqual(w.t, len(f.Jobs), bounds.Frame)
		if known && allowed > 0 {
			require.LessOrEqual(w.t, len(f.Jobs), allowed, "P2: more than the worker has asked for")
		}
		w.flying[f.To] = f
	}
}

// land has a worker do its frame, in one of many ways.
func (w *world) land(id string) {
	f := w.flying[id]
	delete(w.flying, id)
	if w.chance(6) { // It never came.
		w.demand[id] = 1
		w.pool.Unanswered(w.now, id)
		return
	}
	if w.chance(15) { // The worker begins anew, with an empty inbox.
		w.last[id] = 0
	}
	a := Answer{Demand: 1 + w.rand.IntN(6)}
	if w.chance(8) {
		a.Demand = 0
	}
	for _, j := range f.Jobs {
		if w.chance(8) { // It fails, or stops here.
			break
		}
		if j.Number > w.last[id] {
			w.last[id] = j.Number
			w.done[j.Value]++
		}
		a.Confirmed = j.Number
	}
	switch {
	case w.chance(6): // The answer is lost.
		w.demand[id] = 1
		w.pool.Unanswered(w.now, id)
		return
	case w.chance(20): // The answer is that of another frame.
		a.Confirmed += 100_000
	}
	confirmed, err := w.pool.Confirms(id, a)
	if err != nil {
		w.demand[id] = 1
	} else {
		w.demand[id] = max(a.Demand, 1)
	}
	for _, j := range confirmed {
		require.Positive(w.t, w.done[j.Value], "job %d was confirmed and not done", j.Value)
		w.told[j.Value] = true
	}
	w.pool.Answered(w.now, id, a)
}

// check looks at the invariants and the bounds.
func (w *world) check() {
	seen, jobs := map[int]bool{}, len(w.pool.queue)
	for _, j := range w.pool.queue {
		require.False(w.t, seen[j.Value], "P1: job %d is queued twice", j.Value)
		seen[j.Value] = true
	}
	for _, worker := range w.pool.workers {
		for _, j := range worker.frame {
			require.False(w.t, seen[j.Value], "P1: job %d is at two places", j.Value)
			seen[j.Value] = true
			jobs++
		}
	}
	require.Equal(w.t, w.pool.Held(), jobs)
	require.LessOrEqual(w.t, w.pool.Held(), bounds.Jobs)
	require.LessOrEqual(w.t, w.pool.Busy(), len(w.pool.workers))
	for job := 1; job <= w.put; job++ {
		require.NotEqual(w.t, seen[job], w.told[job], "job %d is lost, or held after it was confirmed", job)
	}
}

// Whatever workers do, no job is lost and none is confirmed that was not done; and when nothing goes wrong any
// more, all are done within a bounded time.
func TestJobsAreDoneUnderFaults(t *testing.T) {
	for seed := range uint64(25) {
		w := newWorld(t, seed)
		for range 300 {
			w.step()
		}
		w.calm = true
		w.members = []string{"w0", "w9"}
		w.pool.SetWorkers(w.members)
		for end := w.now + 20*time.Second; w.pool.Held() > 0 || w.put < 200; {
			require.Less(t, w.now, end, "seed %d: %d jobs are left", seed, w.pool.Held())
			if at, ok := w.pool.Wake(); ok {
				w.now = max(w.now, at)
			}
			w.step()
		}
		require.Len(t, w.told, w.put, "seed %d", seed)
		require.Zero(t, w.pool.bytes)
		require.Zero(t, w.pool.underWayJobs)
	}
}

// The jobs of a worker that does not answer go to another at once, before those that came later.
func TestTheJobsOfALostWorkerGoToAnother(t *testing.T) {
	p := New[string](bounds, rand.New(rand.NewPCG(1, 2)))
	p.SetWorkers([]string{"a"})
	for _, job := range []string{"one", "two"} {
		id, ok := p.Reserve(1)
		require.True(t, ok)
		p.Put(id, job, 1)
	}
	f, ok := p.Next(0)
	require.True(t, ok)
	require.Equal(t, "one", f.Jobs[0].Value)
	require.Len(t, f.Jobs, 1, "a worker gets one job until it has said how many it takes")
	p.SetWorkers([]string{"a", "b"})
	require.Equal(t, 1, p.Unanswered(0, "a"))
	f, ok = p.Next(0)
	require.True(t, ok)
	require.Equal(t, "b", f.To)
	require.Equal(t, "one", f.Jobs[0].Value)
	require.Equal(t, 2, f.Jobs[0].Attempts)
	_, ok = p.Next(0)
	require.False(t, ok, "a is left alone for a time")
	at, ok := p.Wake()
	require.True(t, ok)
	require.LessOrEqual(t, at, bounds.RetryMin)
	f, ok = p.Next(at)
	require.True(t, ok)
	require.Equal(t, "a", f.To)
	require.Equal(t, "two", f.Jobs[0].Value)
}

// Two workers that are free share what is queued, whatever the first of them takes.
func TestJobsAreSpread(t *testing.T) {
	p := New[int](Config{Jobs: 10, Bytes: 100, Frame: 10, FrameBytes: 100, RetryMin: 1, RetryMax: 1}, rand.New(rand.NewPCG(1, 2)))
	p.SetWorkers([]string{"a", "b"})
	p.workers[0].credit, p.workers[1].credit = 10, 10
	for i := range 10 {
		id, ok := p.Reserve(1)
		require.True(t, ok)
		p.Put(id, i, 1)
	}
	_, ok := p.Reserve(1)
	require.False(t, ok)
	for range 2 {
		f, ok := p.Next(0)
		require.True(t, ok)
		require.Len(t, f.Jobs, 5)
	}
}
