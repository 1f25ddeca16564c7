// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fdtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/internal/patience"
)

// The suite of judges. Batches are drawn by seed as a node would send them: answers come once a
// second with some irregularity, nodes fall silent and come back, new ones appear and old ones
// go (history). Each part feeds such batches to judges.

const (
	judgeBatches = 60
	judgeNodes   = 8
)

// TestJudge runs the conformance suite against judges that newJudge makes, which must be
// configured for heartbeats each second. The judges of one test must be independent of each
// other, and equally configured. Whatever the judge says, a node is available for 3 s after an
// answer and unavailable after 5 s, which are the default bounds.
func TestJudge(t *testing.T, newJudge func(testing.TB) fd.Judge) {
	t.Helper()
	for _, part := range []struct {
		name  string
		check func(testing.TB, func(testing.TB) fd.Judge, uint64)
	}{
		{"answers keep the contract", checkVerdicts},
		{"equal batches get equal answers", checkTwins},
		{"the order of nodes does not matter", checkOrder},
		{"a new session forgets the one before", checkSessions},
		{"a batch out of step is refused", checkSteps},
		{"nobody is accused who answers each second", checkRegular},
		{"many nodes are judged at once", checkMany},
		{"an ended context does not hold the caller up", checkEnded},
	} {
		t.Run(part.name, func(t *testing.T) {
			for seed := range uint64(3) {
				part.check(t, newJudge, seed)
			}
		})
	}
}

// history draws the batches of one session, as a node sends them that keeps the default bounds.
type history struct {
	rand   *rand.Rand
	number uint64
	now    time.Duration
	batch  fd.Batch
	nodes  []*monitored
	named  int
}

// monitored is a node of a history.
type monitored struct {
	id      string
	last    time.Duration // Its last answer.
	silent  int           // For how many batches more it does not answer.
	accused bool
}

func newHistory(seed uint64) *history { return &history{rand: rand.New(rand.NewPCG(seed, 12))} }

// next draws the next batch: one second later, or more after a pause of the node itself.
func (h *history) next() fd.Batch {
	elapsed := time.Second + time.Duration(h.rand.Int64N(int64(50*time.Millisecond)))
	if h.rand.IntN(30) == 0 {
		elapsed += time.Duration(h.rand.Int64N(int64(20 * time.Second)))
	}
	if h.number == 0 {
		elapsed = 0
	}
	h.number++
	h.now += elapsed
	if len(h.nodes) < judgeNodes && h.rand.IntN(3) == 0 || h.number == 1 {
		h.named++
		h.nodes = append(h.nodes, &monitored{id: fmt.Sprintf("node-%d#%x", h.named, h.rand.Uint64())})
	}
	if len(h.nodes) > 2 && h.rand.IntN(20) == 0 {
		h.nodes = slices.Delete(h.nodes, 1, 2)
	}
	h.batch = fd.Batch{Number: h.number, Elapsed: elapsed}
	for _, n := range h.nodes {
		h.batch.Subjects = append(h.batch.Subjects, h.subject(n, elapsed))
	}
	return h.batch
}

// subject draws what a node has answered since the last batch.
func (h *history) subject(n *monitored, elapsed time.Duration) fd.Subject {
	s := fd.Subject{ID: n.id}
	if n.silent > 0 {
		n.silent--
	} else {
		for range 1 + h.rand.IntN(2) {
			s.Ages = append(s.Ages, time.Duration(h.rand.Int64N(int64(min(max(elapsed, 1), time.Second)))))
		}
		slices.SortFunc(s.Ages, func(a, b time.Duration) int { return int(b - a) })
		n.last, n.accused = h.now-s.Ages[len(s.Ages)-1], false
		if h.rand.IntN(15) == 0 {
			n.silent = h.rand.IntN(12)
		}
	}
	silence := h.now - n.last
	s.Available = silence < 3*time.Second || silence < 5*time.Second && !n.accused
	return s
}

// take does what the judge has said about the last batch.
func (h *history) take(v fd.Verdicts) {
	for _, c := range v.Changes {
		for _, n := range h.nodes {
			n.accused = n.accused || n.id == c.ID && !c.Available
		}
	}
}

// judge asks a judge about a batch; the test fails if the judge does not answer, or if the
// answer does not keep the contract.
func judge(t testing.TB, j fd.Judge, b fd.Batch) fd.Verdicts {
	t.Helper()
	v, err := j.Judge(patience.Context(t), clone(b))
	if err != nil {
		t.Fatalf("batch %d: %v", b.Number, err)
	}
	if err := v.Check(b); err != nil {
		t.Errorf("batch %d: %v", b.Number, err)
	}
	return v
}

// clone returns a batch that shares nothing with b: a batch belongs to the judge.
func clone(b fd.Batch) fd.Batch {
	b.Subjects = slices.Clone(b.Subjects)
	for i := range b.Subjects {
		b.Subjects[i].Ages = slices.Clone(b.Subjects[i].Ages)
	}
	return b
}

func checkVerdicts(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	h, j := newHistory(seed), newJudge(t)
	for range judgeBatches {
		h.take(judge(t, j, h.next()))
	}
}

func checkTwins(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	agree(t, newHistory(seed), newJudge(t), newJudge(t), "two judges that were told the same")
}

// checkOrder tells two judges the same, one of them of the nodes in their order and the other in a
// new order each time.
func checkOrder(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	h, j, other, r := newHistory(seed), newJudge(t), newJudge(t), rand.New(rand.NewPCG(seed, 14))
	byID := func(v fd.Verdicts) []fd.Verdict {
		return slices.SortedFunc(slices.Values(v.Changes), func(a, b fd.Verdict) int { return strings.Compare(a.ID, b.ID) })
	}
	for range judgeBatches {
		b := h.next()
		v := judge(t, j, b)
		mixed := clone(b)
		r.Shuffle(len(mixed.Subjects), func(i, k int) { mixed.Subjects[i], mixed.Subjects[k] = mixed.Subjects[k], mixed.Subjects[i] })
		if o := judge(t, other, mixed); !reflect.DeepEqual(byID(v), byID(o)) {
			t.Errorf("batch %d: with its nodes in another order a judge says %+v, not %+v", b.Number, o, v)
		}
		h.take(v)
	}
}

func checkSessions(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	old, j := newHistory(seed), newJudge(t)
	for range judgeBatches {
		old.take(judge(t, j, old.next()))
	}
	agree(t, newHistory(seed+100), j, newJudge(t), "in a new session, a judge that has had another session and a new one")
}

// agree tells two judges the same, and wants the same verdicts.
func agree(t testing.TB, h *history, j, other fd.Judge, which string) {
	t.Helper()
	for range judgeBatches {
		b := h.next()
		v := judge(t, j, b)
		if o := judge(t, other, b); !reflect.DeepEqual(v, o) {
			t.Errorf("batch %d: %s say %+v and %+v", b.Number, which, v, o)
		}
		h.take(v)
	}
}

func checkSteps(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	h, j := newHistory(seed), newJudge(t)
	refused := func(b fd.Batch) {
		t.Helper()
		if _, err := j.Judge(t.Context(), clone(b)); !errors.Is(err, fd.ErrOutOfStep) {
			t.Errorf("batch %d: the error is %v, want one that wraps %v", b.Number, err, fd.ErrOutOfStep)
		}
	}
	first := h.next()
	second := h.next()
	refused(second)
	judge(t, j, first)
	third := h.next()
	refused(third)
	judge(t, j, first) // A new session, whatever was before.
	judge(t, j, second)
	refused(second)
}

func checkRegular(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	r, j := rand.New(rand.NewPCG(seed, 13)), newJudge(t)
	for number := range uint64(judgeBatches) {
		b := fd.Batch{Number: number + 1, Subjects: []fd.Subject{{
			ID: "regular", Available: true, Ages: []time.Duration{time.Duration(r.Int64N(int64(20 * time.Millisecond)))},
		}}}
		if number > 0 {
			b.Elapsed = time.Second
		}
		if v := judge(t, j, b); len(v.Changes) > 0 {
			t.Errorf("batch %d: %+v, about a node that answers each second", b.Number, v.Changes)
		}
	}
}

func checkMany(t testing.TB, newJudge func(testing.TB) fd.Judge, _ uint64) {
	t.Helper()
	j := newJudge(t)
	for number := range uint64(3) {
		b := fd.Batch{Number: number + 1}
		if number > 0 {
			b.Elapsed = time.Second
		}
		for i := range 1000 {
			b.Subjects = append(b.Subjects, fd.Subject{
				ID: fmt.Sprintf("node-%d", i), Available: true, Ages: slices.Repeat([]time.Duration{time.Millisecond}, 32),
			})
		}
		judge(t, j, b)
	}
}

func checkEnded(t testing.TB, newJudge func(testing.TB) fd.Judge, seed uint64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newHistory(seed).next()
	ended := make(chan struct{})
	j := newJudge(t)
	go func() { // Ends with the call; the test fails when the call does not end.
		defer close(ended)
		if v, err := j.Judge(ctx, clone(b)); err == nil && v.Check(b) != nil {
			t.Errorf("an answer that breaks the contract: %+v", v)
		}
	}()
	patience.Receive(t, ended, "an answer after the context had ended")
}
