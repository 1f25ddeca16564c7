// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "cmp"

// A register is one value of the whole cluster. Registers come in two sorts: a leader
// writes a [written] register anew, and its latest generation counts; a [highest] register
// only rises. Their joins are those of total orders, and so obey the laws of joins by
// themselves; the meaning of a value is up to its readers. The state has all of its
// registers in [registers], and joins and compares them there.

// registers are the registers of a state. Values that are == share all memory.
type registers struct {
	cluster highest[ClusterID]
	lastUp  highest[UpNumber]
	pruned  highest[millis] // PrunedBefore.
	epochs  highest[millis] // EpochBorn; 0: the birth of the cluster.
	yielded highest[Yield]  // The cluster to which this one has yielded.
	unknown highest[Unknown]
	config  written[Voters, *Voters]
	downing written[DowningRegister, *DowningRegister]
}

// join returns the join of r and o.
func (r *registers) join(o *registers) registers {
	return registers{
		cluster: r.cluster.join(o.cluster), lastUp: r.lastUp.join(o.lastUp),
		pruned: r.pruned.join(o.pruned), epochs: r.epochs.join(o.epochs), yielded: r.yielded.join(o.yielded), unknown: r.unknown.join(o.unknown),
		config: r.config.join(o.config), downing: r.downing.join(o.downing),
	}
}

// equalRegisters reports whether r and o hold the same values.
func (r *registers) equalRegisters(o *registers) bool {
	return r.cluster == o.cluster && r.lastUp == o.lastUp && r.pruned == o.pruned && r.epochs == o.epochs && r.yielded == o.yielded &&
		r.unknown == o.unknown &&
		r.config.compare(o.config) == 0 && r.downing.compare(o.downing) == 0
}

// highest is a register that only rises: its join is the maximum. The zero value of T
// must be the least.
type highest[T comparer[T]] struct{ value T }

// comparer is implemented by types whose values are totally ordered.
type comparer[T any] interface {
	comparable
	Compare(T) int
}

// join returns the register with the greater value.
func (r highest[T]) join(o highest[T]) highest[T] {
	if r.value.Compare(o.value) < 0 {
		return o
	}
	return r
}

// raise sets a value that is greater than the present one, and reports whether it is
// greater.
func (r *highest[T]) raise(to T) bool {
	if to.Compare(r.value) <= 0 {
		return false
	}
	r.value = to
	return true
}

// millis is a wall time in unix milliseconds.
type millis int64

// Compare orders times.
func (m millis) Compare(o millis) int { return cmp.Compare(m, o) }

// written is a register that a leader writes as a whole. Its join is the greater in a
// total order: by generation, by the leader that wrote it, and by content, which
// decides only where two processes speak as one leader, or the record does not say
// which leader wrote it. The zero value was never written, and is less than all
// others.
type written[T any, P record[T]] struct{ record P }

// record is the content of a written register: immutable, and of generation 0 only
// when it is the zero value.
type record[T any] interface {
	*T
	generation() Generation
	compareContent(o *T) int
}

// write returns the register with a record; a record of generation 0 counts as never
// written.
func (r written[T, P]) write(value P) written[T, P] {
	if value.generation().Gen == 0 {
		return written[T, P]{}
	}
	return written[T, P]{value}
}

// get returns the record, the zero value if none was written.
func (r written[T, P]) get() T {
	if r.record == nil {
		var none T
		return none
	}
	return *r.record
}

// orZero is get without a copy: the result must not be modified.
func (r written[T, P]) orZero() P {
	if r.record == nil {
		return new(T)
	}
	return r.record
}

// compare orders registers as the join does.
func (r written[T, P]) compare(o written[T, P]) int {
	switch {
	case r.record == o.record:
		return 0
	case r.record == nil:
		return -1
	case o.record == nil:
		return 1
	}
	return cmp.Or(r.record.generation().Compare(o.record.generation()), r.record.compareContent(o.record))
}

// join returns the greater of two registers, r if they are equal.
func (r written[T, P]) join(o written[T, P]) written[T, P] {
	if r.compare(o) < 0 {
		return o
	}
	return r
}
