// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The invariants of a queue, under calls in any order.

// queueModel is a queue, and what must be true of it.
type queueModel struct {
	t     *rapid.T
	queue Queue[int, struct{}]
	last  int                         // The last job that was made.
	stand [classCount][]int           // The jobs that stand in each class, in the order in which they came.
	at    map[*Worker[struct{}]]int   // The job of each worker that has one.
	class map[*Worker[struct{}]]Class // The class of that job.
	least [classCount]int             // The places that each class has for good.
	loose bool                        // Places may be free although jobs wait, until the next look.
	calls map[*Worker[struct{}]]int   // The workers that are in a call of user code, and how many looks there were when it began.
	looks int
}

func newQueueModel(t *rapid.T) *queueModel {
	m := &queueModel{
		t: t, at: map[*Worker[struct{}]]int{}, class: map[*Worker[struct{}]]Class{}, calls: map[*Worker[struct{}]]int{},
	}
	m.processors(rapid.IntRange(1, 4).Draw(t, "processors"))
	m.queue.Init(m.least[ClassQuick])
	return m
}

func (m *queueModel) processors(n int) { m.least = [classCount]int{ClassQuick: n, ClassSlow: 1} }

// begins notes that a worker does a job: it must be the one that came first to its class.
func (m *queueModel) begins(w *Worker[struct{}], job int, of Class) {
	require.NotContains(m.t, m.at, w, "a worker does one job at a time")
	m.at[w], m.class[w] = job, of
	require.Equal(m.t, of, w.Class())
}

// takes notes that a worker does a job that stood in a class.
func (m *queueModel) takes(w *Worker[struct{}], job int) {
	of := ClassQuick
	if slices.Contains(m.stand[ClassSlow], job) {
		of = ClassSlow
	}
	require.NotEmpty(m.t, m.stand[of])
	require.Equal(m.t, m.stand[of][0], job, "the first of the class goes first")
	m.stand[of] = m.stand[of][1:]
	m.begins(w, job, of)
}

func (m *queueModel) put() {
	m.last++
	m.give(m.last)
}

// give puts a job into a class.
func (m *queueModel) give(job int) {
	of := Class(rapid.IntRange(0, classCount-1).Draw(m.t, "class"))
	if s, starts := m.queue.Put(job, of); starts {
		require.Equal(m.t, job, s.Job)
		m.begins(s.Worker, s.Job, of)
		return
	}
	m.stand[of] = append(m.stand[of], job)
}

// drawn draws a worker that does a job.
func (m *queueModel) drawn() *Worker[struct{}] {
	if len(m.at) == 0 {
		m.t.Skip("nobody works")
	}
	return m.queue.workers[rapid.SampledFrom(m.busy()).Draw(m.t, "worker")]
}

// worker draws a worker that does a job, and ends that it does.
func (m *queueModel) worker() (w *Worker[struct{}], job int) {
	w = m.drawn()
	m.returns(w)
	job = m.at[w]
	delete(m.at, w)
	return w, job
}

// call has a worker begin a call of user code, or end it.
func (m *queueModel) call() {
	w := m.drawn()
	if _, in := m.calls[w]; in {
		m.returns(w)
		return
	}
	w.Enter()
	m.calls[w] = m.looks
}

// returns ends the call of a worker, if it is in one.
func (m *queueModel) returns(w *Worker[struct{}]) {
	if _, in := m.calls[w]; in {
		w.Return()
		delete(m.calls, w)
	}
}

// busy returns the places of the workers that do jobs.
func (m *queueModel) busy() (places []int) {
	for i, w := range m.queue.workers {
		if _, ok := m.at[w]; ok {
			places = append(places, i)
		}
	}
	return places
}

func (m *queueModel) next() {
	w, _ := m.worker()
	m.goesOn(w)
}

func (m *queueModel) goesOn(w *Worker[struct{}]) {
	if job, turn := m.queue.Next(w); turn == TurnWork {
		m.takes(w, job)
	}
}

func (m *queueModel) exchange() {
	w, job := m.worker()
	of := w.Class()
	m.stand[of] = append(m.stand[of], job)
	m.takes(w, m.queue.Exchange(w, job))
}

// change puts a job that is not done into a class anew.
func (m *queueModel) change() {
	w, job := m.worker()
	m.give(job)
	m.goesOn(w)
}

func (m *queueModel) leave() {
	w, _ := m.worker()
	m.queue.Leave(w)
	m.loose = true
}

func (m *queueModel) trim() {
	m.processors(rapid.IntRange(1, 4).Draw(m.t, "processors"))
	m.queue.Trim(m.least[ClassQuick])
	m.loose = true
}

func (m *queueModel) look() {
	m.looks++
	var kept [classCount]int
	for w, began := range m.calls {
		if began+1 < m.looks {
			kept[m.class[w]]++
		}
	}
	waits, before := m.stand, [...]int{m.queue.Limit(ClassQuick), m.queue.Limit(ClassSlow)}
	for _, s := range m.queue.Look() {
		m.takes(s.Worker, s.Job)
	}
	m.loose = false
	for of := range m.stand {
		if len(waits[of]) > 0 {
			require.GreaterOrEqual(m.t, m.queue.Limit(Class(of))-kept[of], m.least[of], "Q5: places beside the kept")
		}
		if kept[of] == 0 {
			require.LessOrEqual(m.t, m.queue.Limit(Class(of)), max(before[of], m.least[of]), "no places beside those that wait for a processor")
		}
	}
}

// check checks what must be true after each call.
func (m *queueModel) check(*rapid.T) {
	var busy [classCount]int
	for w := range m.at {
		busy[m.class[w]]++
	}
	for i, stand := range m.stand {
		of := Class(i)
		require.Equal(m.t, len(stand), m.queue.Waiting(of), "Q1")
		require.Equal(m.t, busy[of], m.queue.Busy(of), "Q2")
		require.GreaterOrEqual(m.t, m.queue.Limit(of), m.least[of])
		if len(stand) > 0 && !m.loose {
			require.GreaterOrEqual(m.t, busy[of], m.queue.Limit(of), "Q4")
		}
	}
}

// Whatever comes, the invariants of a queue hold. When nothing more comes, every job gets a
// worker after as many turns as there are jobs.
func TestQueueLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newQueueModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"put":      func(*rapid.T) { m.put() },
			"put more": func(*rapid.T) { m.put() },
			"next":     func(*rapid.T) { m.next() },
			"exchange": func(*rapid.T) { m.exchange() },
			"change":   func(*rapid.T) { m.change() },
			"leave":    func(*rapid.T) { m.leave() },
			"call":     func(*rapid.T) { m.call() },
			"calls":    func(*rapid.T) { m.call() },
			"look":     func(*rapid.T) { m.look() },
			"trim":     func(*rapid.T) { m.trim() },
		})
		m.look()
		for turns := len(m.at) + len(m.stand[ClassQuick]) + len(m.stand[ClassSlow]); turns > 0; turns-- {
			m.next()
			m.check(t)
		}
		require.Empty(t, m.at)
		require.True(t, m.queue.Idle(), "every job was taken")
	})
}

// Slow jobs that never end keep no quick one waiting: each quick one has a place at once, or
// after the quick ones before it.
func TestSlowJobsKeepNoQuickOneWaiting(t *testing.T) {
	var q Queue[int, struct{}]
	q.Init(2)
	for i := range 100 {
		q.Put(1000+i, ClassSlow)
	}
	var workers []*Worker[struct{}]
	for i := range 2 {
		s, starts := q.Put(i, ClassQuick)
		require.True(t, starts)
		workers = append(workers, s.Worker)
	}
	for i := range 100 {
		_, starts := q.Put(2+i, ClassQuick)
		require.False(t, starts)
	}
	for i := range 100 {
		j, turn := q.Next(workers[i%2])
		require.Equal(t, TurnWork, turn)
		require.Equal(t, 2+i, j)
	}
}
