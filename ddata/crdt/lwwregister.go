// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import "math"

// LWWRegister is a register of which the last write wins (Shapiro et al. 2011,
// specification 8). A write is told the time, and counts as at least one later than the
// write that it replaces, so that a slow clock does not lose it; of two writes of the same
// time the one of the lowest origin wins. Its zero value was never written.
//
// Contents may be texts, byte slices, booleans, numbers, and types that implement
// [encoding.BinaryUnmarshaler] with [encoding.BinaryAppender] or [encoding.BinaryMarshaler],
// whose encoding has to be the same for equal contents. Contents of other types fail to
// encode, with [ErrType]. What a content points to must not change once it is written;
// byte slices are copied.
//
// Retire leaves a register alone: it holds one origin, for ties, however many have written.
type LWWRegister[V any] struct{ s *registerState[V] }

// registerState is the state of an LWWRegister.
type registerState[V any] struct {
	timedContent[V]
	pending bool
}

var (
	_ Value[LWWRegister[string]]  = LWWRegister[string]{}
	_ Differ[LWWRegister[string]] = LWWRegister[string]{}
)

// Set returns the register with a content, written now: a time in any unit, as long as all
// writers have the same.
func (l LWWRegister[V]) Set(at Origin, now int64, v V) LWWRegister[V] {
	if l.s != nil {
		now = after(now, l.s.time)
	}
	return l.write(timedContent[V]{at, now, ownedCopy(v)})
}

// SetFirst returns the register with a content unless it has one: in a register that is written by SetFirst only, the
// first write wins. Times are stored negated, so that of writes that have not seen each other the earlier one is kept.
// In a register that is also written by Set, what Set has written is kept.
func (l LWWRegister[V]) SetFirst(at Origin, now int64, v V) LWWRegister[V] {
	if l.s != nil {
		return l
	}
	return l.write(timedContent[V]{at, -max(now, -math.MaxInt64), ownedCopy(v)})
}

// write returns the register with a content, unless the content that it has wins: that happens only if its time is the
// greatest there is.
func (l LWWRegister[V]) write(w timedContent[V]) LWWRegister[V] {
	if l.s != nil && !w.wins(l.s.timedContent) {
		return l
	}
	return LWWRegister[V]{&registerState[V]{w, true}}
}

// Value returns the content, and whether there is one.
func (l LWWRegister[V]) Value() (V, bool) {
	if l.s == nil {
		var zero V
		return zero, false
	}
	return ownedCopy(l.s.v), true
}

// Written returns when and by whom the content was written; zeros if there is none.
func (l LWWRegister[V]) Written() (at Origin, time int64) {
	if l.s == nil {
		return 0, 0
	}
	return l.s.at, l.s.time
}

// TypeName is "lwwregister[...]".
func (l LWWRegister[V]) TypeName() string { return "lwwregister[" + contentName[V]() + "]" }

// Replaces implements [Replacer].
func (LWWRegister[V]) Replaces() {}

// Merge returns the register that was written later.
func (l LWWRegister[V]) Merge(other LWWRegister[V]) LWWRegister[V] {
	if l.s == nil || other.s != nil && other.s.wins(l.s.timedContent) {
		return other.Settled()
	}
	return l.Settled()
}

// Delta returns the whole register if it was written since Settled.
func (l LWWRegister[V]) Delta() (LWWRegister[V], bool) {
	if l.s == nil || !l.s.pending {
		return LWWRegister[V]{}, false
	}
	return l.Settled(), true
}

// Settled returns the register without pending delta.
func (l LWWRegister[V]) Settled() LWWRegister[V] {
	if l.s == nil || !l.s.pending {
		return l
	}
	return LWWRegister[V]{&registerState[V]{timedContent: l.s.timedContent}}
}

// Size returns about how many bytes of memory the register takes.
func (l LWWRegister[V]) Size() int {
	if l.s == nil {
		return 0
	}
	return sizeOf(*l.s) + contentSize(l.s.v)
}

// AppendBinary appends the canonical encoding. It fails with [ErrType] if V has none.
func (l LWWRegister[V]) AppendBinary(dst []byte) ([]byte, error) {
	if l.s == nil {
		return append(dst, version, 0), nil
	}
	return l.s.appendTo(append(dst, version, 1))
}

// UnmarshalBinary decodes what AppendBinary has written.
func (l *LWWRegister[V]) UnmarshalBinary(b []byte) error {
	r := newReader(b)
	var s *registerState[V]
	if r.uint(1) == 1 {
		s = &registerState[V]{timedContent: timedContent[V]{}.readFrom(r)}
	}
	if err := r.end(); err != nil {
		return err
	}
	l.s = s
	return nil
}
