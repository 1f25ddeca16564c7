// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdttest

import (
	"bytes"
	"encoding"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/quorate/quorate/ddata/crdt"
)

// The laws, and the histories on which they are checked: a world of replicas is changed
// step by step (step), each change is checked where it happens (mutate), and at the end
// what all replicas hold is held against each other (pairs, deltas, retirement, decoding).
// Values are compared by their canonical encodings.

// Source is where a history is drawn from; a [rand.Rand] is one.
type Source interface {
	// IntN returns a number from 0 to n-1.
	IntN(n int) int
}

// TB is what the suite needs of a test.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Subject is a type under test.
type Subject[T crdt.Value[T]] struct {
	// Mutate returns v changed by one of the mutators of the type, as origin at, all drawn
	// from src. It must not change v.
	Mutate func(src Source, at crdt.Origin, v T) T
	// Observe returns what a user reads from v. It is compared by [reflect.DeepEqual]. It
	// says whether Retire keeps the value, and is needed for types with Retire only.
	Observe func(v T) any
}

// histories is how many histories TestLaws draws.
const histories = 100

// TestLaws checks a type on some random histories.
//
//   - Merge is commutative, associative and idempotent, and the zero value is neutral.
//   - What a mutator returns is above its argument: merging both gives the result.
//   - A value merged with the delta of a change is the changed value, also at another
//     replica, and after several changes. Settled has no delta and the same encoding.
//   - All deltas, in any order and doubled, give the merge of all replicas.
//   - Retire keeps what a user reads, gives the same when repeated, and commutes with the
//     merge of values that agree on what the retired origins have done.
//   - Encoding and decoding give the same value, decoders refuse every prefix of an
//     encoding and every extension, with an error that wraps [crdt.ErrMalformed], and
//     survive changed bytes.
//   - No method changes its receiver or its arguments.
func TestLaws[T crdt.Value[T], P interface {
	*T
	encoding.BinaryUnmarshaler
}](t *testing.T, subject Subject[T],
) {
	t.Helper()
	for seed := range uint64(histories) {
		Check[T, P](seedReporter{t, seed}, rand.New(rand.NewPCG(seed, 0xcd7)), subject)
	}
}

// seedReporter names the seed of a failure.
type seedReporter struct {
	*testing.T
	seed uint64
}

func (s seedReporter) Fatalf(format string, args ...any) {
	s.Helper()
	s.T.Fatalf("history %d: "+format, append([]any{s.seed}, args...)...)
}

// Check checks a type on one history.
func Check[T crdt.Value[T], P interface {
	*T
	encoding.BinaryUnmarshaler
}](t TB, src Source, subject Subject[T],
) {
	t.Helper()
	w := &world[T]{t: t, src: src, Subject: subject, kind: crdt.TypeOf[T, P]()}
	w.replicas = make([]T, 2+src.IntN(4))
	for range 5 + src.IntN(25) {
		w.step()
	}
	w.pairs()
	w.deltas()
	for _, v := range w.replicas {
		w.decoding(v)
	}
	w.retirement()
}

// world is a number of replicas of one value.
type world[T crdt.Value[T]] struct {
	Subject[T]
	t        TB
	src      Source
	kind     crdt.Type
	replicas []T
	groups   []T // All deltas, some of which are joins of several.
}

// origin returns the origin of a replica.
func origin(replica int) crdt.Origin { return crdt.Origin(replica*7 + 1) }

// step is one event of the world.
func (w *world[T]) step() {
	i := w.src.IntN(len(w.replicas))
	switch n := w.src.IntN(10); {
	case n < 6:
		w.replicas[i] = w.mutate(i, w.replicas[i])
	case n < 8 && len(w.groups) > 0:
		w.replicas[i] = w.merge(w.replicas[i], w.groups[w.src.IntN(len(w.groups))])
	default:
		w.replicas[i] = w.merge(w.replicas[i], w.replicas[w.src.IntN(len(w.replicas))])
	}
}

// mutate changes a value one to three times and checks what that says of deltas.
func (w *world[T]) mutate(replica int, v T) T {
	w.t.Helper()
	raw := w.encode(v)
	changed := v
	for range 1 + w.src.IntN(3) {
		next := w.Mutate(w.src, origin(replica), changed)
		w.same(next, w.merge(next, changed), "a mutator returns no more than its argument")
		changed = next
	}
	if !bytes.Equal(raw, w.encode(v)) {
		w.t.Fatalf("%s: a mutator has changed its argument", v.TypeName())
	}
	delta, is := w.kind.Delta(changed)
	settled := w.kind.Settled(changed).(T)
	w.same(changed, settled, "Settled is another value")
	if !is {
		w.same(changed, v, "the value has changed, but there is no delta")
		return settled
	}
	d := delta.(T)
	if _, more := w.kind.Delta(settled); more && w.differs() {
		w.t.Fatalf("%s: Settled has a delta", v.TypeName())
	}
	w.same(changed, w.merge(v, d), "the value merged with the delta is not the changed value")
	other := w.replicas[w.src.IntN(len(w.replicas))]
	w.same(w.merge(other, changed), w.merge(w.merge(other, v), d), "the delta says less to a replica that has the value before")
	w.same(w.merge(other, changed), w.merge(d, w.merge(v, other)), "the delta says something else from the left")
	w.groups = append(w.groups, d)
	return settled
}

// differs reports whether the type has deltas.
func (w *world[T]) differs() bool {
	var zero T
	_, is := any(zero).(crdt.Differ[T])
	return is
}

// merge returns the join and checks that neither side has changed.
func (w *world[T]) merge(a, b T) T {
	w.t.Helper()
	x, y := w.encode(a), w.encode(b)
	c := a.Merge(b)
	if !bytes.Equal(x, w.encode(a)) || !bytes.Equal(y, w.encode(b)) {
		w.t.Fatalf("%s: Merge has changed an operand", a.TypeName())
	}
	return c
}

func (w *world[T]) encode(v T) []byte {
	w.t.Helper()
	raw, err := v.AppendBinary([]byte("before"))
	if err != nil || !bytes.HasPrefix(raw, []byte("before")) {
		w.t.Fatalf("%s: %v does not append its encoding: %v", v.TypeName(), v, err)
	}
	return raw[len("before"):]
}

// same fails the test if two values differ.
func (w *world[T]) same(want, got T, law string) {
	w.t.Helper()
	if x, y := w.encode(want), w.encode(got); !bytes.Equal(x, y) {
		w.t.Fatalf("%s: %s\nwant %x %+v\ngot  %x %+v", want.TypeName(), law, x, w.read(want), y, w.read(got))
	}
}

// read returns what a user reads, nil if the subject does not say.
func (w *world[T]) read(v T) any {
	if w.Observe == nil {
		return nil
	}
	return w.Observe(v)
}

// pairs checks the laws of the join on all replicas and some deltas.
func (w *world[T]) pairs() {
	w.t.Helper()
	var zero T
	all := slices.Concat(w.replicas, w.groups[:min(3, len(w.groups))])
	for i, a := range all {
		w.same(a, w.merge(a, a), "Merge is not idempotent")
		w.same(a, w.merge(a, zero), "zero is not neutral")
		w.same(a, w.merge(zero, a), "zero is not neutral on the left")
		b, c := all[w.src.IntN(len(all))], all[(i+1)%len(all)]
		ab := w.merge(a, b)
		w.same(ab, w.merge(b, a), "Merge is not commutative")
		w.same(ab, w.merge(ab, a), "a merge holds less than an operand")
		w.same(w.merge(ab, c), w.merge(a, w.merge(b, c)), "Merge is not associative")
	}
}

// deltas checks that all deltas together are the merge of all replicas.
func (w *world[T]) deltas() {
	w.t.Helper()
	var full, sum T
	for _, v := range w.replicas {
		full = w.merge(full, v)
	}
	list := slices.Concat(w.groups, w.groups)
	for i := range list {
		j := i + w.src.IntN(len(list)-i)
		list[i], list[j] = list[j], list[i]
	}
	for len(list) > 0 {
		// Some of them first become a group.
		n := 1 + w.src.IntN(min(3, len(list)))
		group := list[0]
		for _, d := range list[1:n] {
			group = w.merge(group, d)
		}
		sum, list = w.merge(sum, group), list[n:]
	}
	w.same(full, sum, "all deltas together are not the merge of all replicas")
	if w.Observe != nil && !reflect.DeepEqual(w.Observe(full), w.Observe(sum)) {
		w.t.Fatalf("%s: values of equal encoding are read as %v and %v", full.TypeName(), w.Observe(full), w.Observe(sum))
	}
}

// decoding checks the encoding of a value and some that are not one.
func (w *world[T]) decoding(v T) {
	w.t.Helper()
	raw := w.encode(v)
	got, err := w.kind.Decode(raw)
	if err != nil {
		w.t.Fatalf("%s: %x does not decode: %v", v.TypeName(), raw, err)
	}
	w.same(v, got.(T), "decoding gives another value")
	if w.Observe != nil && !reflect.DeepEqual(w.Observe(v), w.Observe(got.(T))) {
		w.t.Fatalf("%s: %v is decoded as %v", v.TypeName(), w.Observe(v), w.Observe(got.(T)))
	}
	for n := range raw {
		w.refused(raw[:n:n])
	}
	w.refused(append(slices.Clip(raw), byte(w.src.IntN(256))))
	if len(raw) == 0 {
		return
	}
	wrong := slices.Clone(raw)
	wrong[w.src.IntN(len(raw))] ^= byte(1 << w.src.IntN(8))
	if x, err := w.kind.Decode(wrong); err == nil && !bytes.Equal(w.encode(x.(T)), wrong) {
		w.t.Fatalf("%s: %x is decoded, but is not canonical", v.TypeName(), wrong)
	}
}

func (w *world[T]) refused(raw []byte) {
	w.t.Helper()
	if _, err := w.kind.Decode(raw); !errors.Is(err, crdt.ErrMalformed) {
		w.t.Fatalf("%s: decoding %x ends with %v", w.kind.Name(), raw, err)
	}
}

// retirement retires some origins after all replicas have heard of all they have done, and
// goes on with the others.
func (w *world[T]) retirement() {
	w.t.Helper()
	var full T
	for _, v := range w.replicas {
		full = w.merge(full, v)
	}
	for _, gone := range []func(crdt.Origin) bool{
		func(at crdt.Origin) bool { return at == origin(0) },
		func(at crdt.Origin) bool { return at == origin(0) || at == origin(1) },
	} {
		kept := w.retire(full, gone)
		if _, retires := any(full).(crdt.Retirer[T]); retires && w.Observe == nil {
			w.t.Fatalf("%s: the subject of a type with Retire needs Observe", full.TypeName())
		}
		if w.Observe != nil && !reflect.DeepEqual(w.Observe(full), w.Observe(kept)) {
			w.t.Fatalf("%s: retirement makes %v of %v", full.TypeName(), w.read(kept), w.read(full))
		}
		w.same(kept, w.retire(kept, gone), "retirement twice is another value")
		w.decoding(kept)
		var sides [2]T
		for i := range sides {
			sides[i] = full
			for range w.src.IntN(4) {
				sides[i] = w.kind.Settled(w.Mutate(w.src, origin(2+i), sides[i])).(T)
			}
		}
		w.same(w.retire(w.merge(sides[0], sides[1]), gone), w.merge(w.retire(sides[0], gone), w.retire(sides[1], gone)),
			"retirement and Merge do not commute")
		full = kept // The second retirement is on top of the first.
	}
}

func (w *world[T]) retire(v T, gone func(crdt.Origin) bool) T {
	raw := w.encode(v)
	r := w.kind.Retire(v, gone).(T)
	if !bytes.Equal(raw, w.encode(v)) {
		w.t.Fatalf("%s: Retire has changed its receiver", v.TypeName())
	}
	return r
}
