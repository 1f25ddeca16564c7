// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt_test

import (
	"encoding"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/crdt/crdttest"
)

// Histories of events at some replicas, and what a replica must read by the specification
// of its type, which speaks of events and who has seen which, and of nothing else. The
// models of the types are in model_test.go, the tests of all types in laws_test.go.

// event is one call of a mutator.
type event struct {
	id      int
	at      crdt.Origin
	do      string
	k, e    string
	n       int64
	seen    set   // What its replica had seen.
	settled int64 // What resolve has made of it, in models that need it.
}

// set is a set of events by their ids.
type set uint64

func (s set) has(id int) bool { return s>>id&1 == 1 }

// history is all events of a world.
type history struct{ events []event }

// each calls yield for the events of a set.
func (h *history) each(in set, yield func(*event)) {
	for i := range h.events {
		if in.has(i) {
			yield(&h.events[i])
		}
	}
}

// any reports whether an event of a set is as asked for.
func (h *history) any(in set, is func(*event) bool) bool {
	found := false
	h.each(in, func(e *event) { found = found || is(e) })
	return found
}

// over reports whether an event of a set that has seen e ends it.
func (h *history) over(in set, e *event, ends func(*event) bool) bool {
	return h.any(in, func(r *event) bool { return r.seen.has(e.id) && ends(r) })
}

// closed reports whether a set holds all that its events have seen.
func (h *history) closed(in set) bool {
	return !h.any(in, func(e *event) bool { return e.seen&^in != 0 })
}

// model is a type, its mutators, and its specification.
type model[T crdt.Value[T]] struct {
	draw    func(src crdttest.Source) event
	apply   func(v T, e *event) T
	resolve func(h *history, e *event) // Nil if an event is what was drawn.
	spec    func(h *history, seen set) any
	observe func(v T) any
}

// subject is the model as the suite of laws wants it.
func (m *model[T]) subject() crdttest.Subject[T] {
	return crdttest.Subject[T]{
		Mutate: func(src crdttest.Source, at crdt.Origin, v T) T {
			e := m.draw(src)
			e.at = at
			return m.apply(v, &e)
		},
		Observe: m.observe,
	}
}

// drawn is a source that rapid shrinks.
type drawn struct{ t *rapid.T }

func (d drawn) IntN(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "n") }

// check runs the laws and the comparison with the model.
func check[T crdt.Value[T], P interface {
	*T
	encoding.BinaryUnmarshaler
}](t *testing.T, m *model[T],
) {
	t.Helper()
	var zero T
	t.Run(zero.TypeName(), func(t *testing.T) {
		t.Run("Laws", func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { crdttest.Check[T, P](t, drawn{t}, m.subject()) })
		})
		t.Run("Model", func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { compare(t, drawn{t}, m, crdt.TypeOf[T, P]()) })
		})
	})
}

// replica is one replica of a world.
type replica[T any] struct {
	v    T
	seen set
}

// compare runs a world in which deltas are lost, doubled, late and out of order, and
// compares each replica with the model whenever it has seen all that its events have seen.
func compare[T crdt.Value[T]](t *rapid.T, src crdttest.Source, m *model[T], kind crdt.Type) {
	h := &history{}
	replicas := make([]replica[T], 2+src.IntN(4))
	var deltas []replica[T]
	for range 10 + src.IntN(45) {
		i := src.IntN(len(replicas))
		r := &replicas[i]
		switch n := src.IntN(10); {
		case n < 5 && h.closed(r.seen):
			e := m.draw(src)
			e.id, e.at, e.seen = len(h.events), crdt.Origin(i+1), r.seen
			if m.resolve != nil {
				m.resolve(h, &e)
			}
			h.events = append(h.events, e)
			r.v, r.seen = m.apply(r.v, &e), r.seen|1<<e.id
			d, _ := kind.Delta(r.v) // Bottom if the event has changed nothing.
			r.v = kind.Settled(r.v).(T)
			deltas = append(deltas, replica[T]{d.(T), 1 << e.id})
		case n < 8 && len(deltas) > 0:
			d := deltas[src.IntN(len(deltas))]
			if src.IntN(3) == 0 {
				o := deltas[src.IntN(len(deltas))]
				d = replica[T]{d.v.Merge(o.v), d.seen | o.seen}
			}
			r.v, r.seen = r.v.Merge(d.v), r.seen|d.seen
		default:
			o := replicas[src.IntN(len(replicas))]
			r.v, r.seen = r.v.Merge(o.v), r.seen|o.seen
		}
		m.agrees(t, h, r)
	}
	var all replica[T]
	for _, r := range replicas {
		all.v, all.seen = all.v.Merge(r.v), all.seen|r.seen
	}
	m.agrees(t, h, &all)
}

func (m *model[T]) agrees(t *rapid.T, h *history, r *replica[T]) {
	if !h.closed(r.seen) {
		return
	}
	if want, got := m.spec(h, r.seen), m.observe(r.v); !reflect.DeepEqual(want, got) {
		for _, e := range h.events {
			t.Logf("%2d at %d: %s %s %s %d, has seen %b", e.id, e.at, e.do, e.k, e.e, e.n, e.seen)
		}
		t.Fatalf("a replica that has seen %b reads %v, by the specification it is %v", r.seen, got, want)
	}
}
