// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "cmp"

// A register is one value of the whole cluster. Registers come in two sorts: one that is
// written anew, by a leader, of which the last generation holds ([written]), and one that
// only rises ([highest]). Their joins are those of total orders, and so obey the laws of
// joins by themselves; what a value means is up to whoever reads it. The state has all of
// its registers in [registers], and joins and compares them there.

// registers are the registers of a state. Values that are == share all memory.
type registers struct {
	cluster highest[ClusterID]
	lastUp  highest[UpNumber]
	pruned  highest[millis]    // PrunedBefore.
	epochs  highest[millis]    // EpochBorn; 0: that of the cluster.
	yielded highest[ClusterID] // The cluster to which this one has yielded.
	config  written[Voters, *Voters]
	downing written[DowningRegister, *DowningRegister]
}

// join returns the join of r and o.
func (r *registers) join(o *registers) registers {
	return registers{
		cluster: r.cluster.join(o.cluster), lastUp: r.lastUp.join(o.lastUp),
		pruned: r.pruned.join(o.pruned), epochs: r.epochs.join(o.epochs), yielded: r.yielded.join(o.yielded),
		config: r.config.join(o.config), downing: r.downing.join(o.downing),
	}
}

// equalRegisters reports whether r and o hold the same.
func (r *registers) equalRegisters(o *registers) bool {
	return r.cluster == o.cluster && r.lastUp == o.lastUp && r.pruned == o.pruned && r.epochs == o.epochs && r.yielded == o.yielded &&
		r.config.compare(o.config) == 0 && r.downing.compare(o.downing) == 0
}

// highest is a register that only rises: its join is the maximum. The zero value of T
// must be the least.
type highest[T comparison[T]] struct{ value T }

// comparison is what types have of which there is a greatest value.
type comparison[T any] interface {
	comparable
	Compare(T) int
}

// join returns the greater of two.
func (r highest[T]) join(o highest[T]) highest[T] {
	if r.value.Compare(o.value) < 0 {
		return o
	}
	return r
}

// raise takes a value that is greater than the present one, and reports whether it is.
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
// total order: by generation, by who wrote it, and by content, which decides only where
// two processes speak for one leader, or the record does not say who wrote it. The zero
// value was never written, and is less than all others.
type written[T any, P record[T]] struct{ record P }

// record is what is written: immutable, with the generation 0 for the zero value alone.
type record[T any] interface {
	*T
	generation() Generation
	compareContent(o *T) int
}

// write returns the register with a record; one of generation 0 was never written.
func (r written[T, P]) write(value P) written[T, P] {
	if value.generation().Gen == 0 {
		return written[T, P]{}
	}
	return written[T, P]{value}
}

// get returns what was written, the zero value if nothing was.
func (r written[T, P]) get() T {
	if r.record == nil {
		var none T
		return none
	}
	return *r.record
}

// orZero is get without a copy: what it returns must not be modified.
func (r written[T, P]) orZero() P {
	if r.record == nil {
		return new(T)
	}
	return r.record
}

// compare is the total order.
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

// join returns the greater of two, r if they are equal.
func (r written[T, P]) join(o written[T, P]) written[T, P] {
	if r.compare(o) < 0 {
		return o
	}
	return r
}
