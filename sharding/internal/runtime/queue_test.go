// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The worker that has waited for the shortest time gets the next job, so that workers that
// are not needed are not used at all, and end after a while. In a queue that has ended no
// worker waits, and jobs are done all the same.
func TestWorkersEndThatNoJobNeeds(t *testing.T) {
	var q Queue[int, int]
	q.Init(3)
	var workers []*Worker[int]
	for i := range 3 {
		s, starts := q.Put(i, ClassQuick)
		require.True(t, starts)
		require.True(t, s.IsNew)
		workers = append(workers, s.Worker)
	}
	rests := func(w *Worker[int]) {
		_, turn := q.Next(w)
		require.Equal(t, TurnWait, turn)
	}
	for _, w := range workers {
		rests(w)
	}
	ended := 0
	for range 3 {
		s, starts := q.Put(9, ClassQuick)
		require.True(t, starts)
		require.Same(t, workers[2], s.Worker)
		rests(s.Worker)
		ended += len(q.Trim(3))
	}
	require.Equal(t, 2, ended)
	require.Equal(t, 1, q.Workers())
	require.Equal(t, []*Worker[int]{workers[2]}, q.Close())
	s, starts := q.Put(9, ClassQuick)
	require.True(t, starts)
	_, turn := q.Next(s.Worker)
	require.Equal(t, TurnEnd, turn)
	require.Zero(t, q.Workers())
	require.Zero(t, q.Busy(ClassQuick))
}

// No more workers than that wait for a job: the others end.
func TestWorkersThatWaitAreBounded(t *testing.T) {
	const most = maxIdleWorkers + 10
	var q Queue[int, int]
	q.Init(most)
	var workers []*Worker[int]
	for i := range most {
		s, _ := q.Put(i, ClassQuick)
		workers = append(workers, s.Worker)
	}
	turns := make(map[Turn]int)
	for _, w := range workers {
		_, turn := q.Next(w)
		turns[turn]++
	}
	require.Equal(t, map[Turn]int{TurnWait: maxIdleWorkers, TurnEnd: 10}, turns)
	require.Equal(t, maxIdleWorkers, q.Workers())
}

// A job that is put back lets all others go first that stand in the queue.
func TestAJobThatIsPutBackGoesLast(t *testing.T) {
	var q Queue[int, int]
	q.Init(1)
	s, _ := q.Put(0, ClassQuick)
	for i := range 99 {
		_, starts := q.Put(1+i, ClassQuick)
		require.False(t, starts)
	}
	mine := s.Job
	for i := range 300 {
		mine = q.Exchange(s.Worker, mine)
		require.Equal(t, (1+i)%100, mine)
	}
	require.Equal(t, 99, q.Waiting(ClassQuick))
}

// A worker that is kept by one call is replaced at the second look, for as long as jobs wait.
// When all goes on, the additional workers are given up again.
func TestAKeptWorkerIsReplaced(t *testing.T) {
	var q Queue[int, int]
	q.Init(1)
	first, _ := q.Put(0, ClassQuick)
	_, starts := q.Put(1, ClassQuick)
	require.False(t, starts)
	for range 10 {
		require.Empty(t, q.Look(), "the worker has not come to its job: it waits for a processor")
	}
	first.Worker.Enter()
	require.Empty(t, q.Look(), "the call may have begun just now")
	second := q.Look()
	require.Len(t, second, 1)
	require.Equal(t, 1, second[0].Job)
	require.NotSame(t, first.Worker, second[0].Worker)
	require.Equal(t, 2, q.Limit(ClassQuick))
	for range 20 {
		q.Trim(1)
	}
	require.Equal(t, 1, q.Limit(ClassQuick))
	_, starts = q.Put(2, ClassQuick)
	require.False(t, starts, "two are busy, and one may be")
}
