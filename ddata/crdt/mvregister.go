// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// MVRegister is a register that keeps all contents of which none has seen another: a
// write replaces what it has seen (Shapiro et al. 2011, specification 10; as a dot store
// Almeida et al. 2018, figure 10). Contents are of the types that [LWWRegister] takes. Its
// zero value was never written.
type MVRegister[V any] struct{ f *facts[unit, contentPart[V]] }

var (
	_ Value[MVRegister[string]]   = MVRegister[string]{}
	_ Differ[MVRegister[string]]  = MVRegister[string]{}
	_ Retirer[MVRegister[string]] = MVRegister[string]{}
	_ causal[MVRegister[string]]  = MVRegister[string]{}
)

// Set returns the register with one content, which replaces all that it holds.
func (m MVRegister[V]) Set(at Origin, v V) MVRegister[V] {
	f := orEmpty(m.f)
	return MVRegister[V]{f.apply(f.all(), fact[unit, contentPart[V]]{payload: contentPart[V]{ownedCopy(v)}, dot: f.context.next(at)})}
}

// Clear returns the register without the contents it has.
func (m MVRegister[V]) Clear() MVRegister[V] {
	f := orEmpty(m.f)
	return MVRegister[V]{orNil(f.apply(f.all()))}
}

// Values returns the contents, by origin in ascending order: none if the register was
// never written or cleared, more than one if they were written concurrently.
func (m MVRegister[V]) Values() []V {
	var all []V
	for _, x := range orEmpty(m.f).all() {
		all = append(all, ownedCopy(x.payload.v))
	}
	return all
}

// TypeName is "mvregister[...]".
func (m MVRegister[V]) TypeName() string { return "mvregister[" + contentName[V]() + "]" }

// Merge returns the join of both.
func (m MVRegister[V]) Merge(other MVRegister[V]) MVRegister[V] {
	return MVRegister[V]{orNil(orEmpty(m.f).merge(orEmpty(other.f)))}
}

// Delta returns what mutators have added and removed since Settled.
func (m MVRegister[V]) Delta() (MVRegister[V], bool) {
	d := orEmpty(m.f).pending
	return MVRegister[V]{d}, d != nil
}

// Settled returns the register without pending delta.
func (m MVRegister[V]) Settled() MVRegister[V] { return MVRegister[V]{orNil(orEmpty(m.f).settled())} }

// Retire renames the events of the origins that are gone to events of origin zero.
func (m MVRegister[V]) Retire(gone func(Origin) bool) MVRegister[V] {
	return MVRegister[V]{orNil(orEmpty(m.f).retire(gone, nil))}
}

// Size returns about how many bytes of memory the register takes.
func (m MVRegister[V]) Size() int { return orEmpty(m.f).footprint() }

// AppendBinary appends the canonical encoding. It fails with [ErrType] if V has no encoding.
func (m MVRegister[V]) AppendBinary(dst []byte) ([]byte, error) { return orEmpty(m.f).append(dst) }

// UnmarshalBinary decodes what AppendBinary has written.
func (m *MVRegister[V]) UnmarshalBinary(b []byte) error {
	f, err := decodeFacts[unit, contentPart[V]](b)
	if err == nil {
		m.f = orNil(f)
	}
	return err
}

func (m MVRegister[V]) store() store { return orEmpty(m.f) }

func (m MVRegister[V]) with(f store) MVRegister[V] {
	return MVRegister[V]{orNil(f.(*facts[unit, contentPart[V]]))}
}
