// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/ddata/crdt"
)

// The types of the values are code of programs, and may panic: here they are called for what comes from elsewhere or
// lies in the table, and a panic is an error that is counted.

// kindSet has the types that a table has seen, by name.
type kindSet struct {
	known  atomic.Pointer[map[string]*kind] // By name. The map is never changed.
	mu     sync.Mutex                       // Serialises those who replace known.
	faults atomic.Int64                     // Panics.
}

// newKinds returns a set that has seen none.
func newKinds() *kindSet {
	s := new(kindSet)
	s.known.Store(&map[string]*kind{})
	return s
}

// of returns the kind of a type. A panic of the type is an error.
func (s *kindSet) of(typ crdt.Type) (k *kind, err error) {
	if typ == nil {
		return nil, fmt.Errorf("%w: no type", ErrValue)
	}
	defer s.caught(&err)
	name := typ.Name()
	if k := (*s.known.Load())[name]; k != nil {
		return k, nil
	}
	k = newKind(typ)
	s.mu.Lock()
	defer s.mu.Unlock()
	known := *s.known.Load()
	if k := known[name]; k != nil {
		return k, nil
	}
	more := maps.Clone(known)
	more[name] = k
	s.known.Store(&more)
	return k, nil
}

// ofChange returns the kind of a change, if a table could have made it.
func (s *kindSet) ofChange(c *Change) (k *kind, err error) {
	defer s.caught(&err)
	if err := checkKey(c.Key); err != nil {
		return nil, err
	}
	if err := unknown(c.Delta); err != nil {
		return nil, err
	}
	if c.Type == nil || c.From >= c.To || Owner(c.Origin) == 0 || !c.Type.Is(c.Delta) {
		return nil, fmt.Errorf("%w: a change without type, origin, numbers in order or delta", ErrValue)
	}
	return s.of(c.Type)
}

// caught makes an error of a panic of a type, in a defer statement.
func (s *kindSet) caught(err *error) {
	if p := recover(); p != nil {
		s.faults.Add(1)
		*err = fmt.Errorf("%w: panic: %v", ErrValue, p)
	}
}

// image returns the image of an entry, if a table could have made it.
func (s *kindSet) image(e *Entry) (m image, err error) {
	defer s.caught(&err)
	if err := checkKey(e.Key); err != nil {
		return m, err
	}
	if e.State == Deleted {
		return image{state: Deleted, stamp: e.Stamp}, nil
	}
	if err := unknown(e.Value); err != nil {
		return m, err
	}
	m = image{state: e.State, floor: e.Floor, stamp: e.Stamp}
	if e.Type == nil || e.State != Live && e.State != Expired || !e.Versions.valid() || !e.Floor.valid() {
		return m, fmt.Errorf("%w: an entry without type, state, or versions in order", ErrValue)
	}
	if m.kind, err = s.of(e.Type); err != nil || e.State == Expired {
		return m, err
	}
	if !e.Type.Is(e.Value) || len(e.Versions) == 0 {
		return m, fmt.Errorf("%w: a %T under the type %s", ErrValue, e.Value, m.kind.name)
	}
	m.versions, m.value, m.stamp = e.Versions, e.Value, 0
	m.size = e.Type.Size(e.Value)
	return m, nil
}

// change returns the change of a record that was taken out, and about how many bytes
// it is.
func (s *kindSet) change(p *pending) (c Change, bytes int, err error) {
	defer s.caught(&err)
	c = p.change()
	const numbers = 40 // What a change has beside its key and its delta.
	return c, len(c.Key) + numbers + c.Type.Size(c.Delta), nil
}

// retire folds owners in the value of an image, if it has one, and in updates of it that wait
// to be spread.
func (s *kindSet) retire(typ crdt.Type, m *image, p *pending, gone func(crdt.Origin) bool) (err error) {
	defer s.caught(&err)
	if m.state != Live {
		return nil
	}
	m.value = typ.Retire(m.value, gone)
	m.size, m.guesses = typ.Size(m.value), 0
	if p != nil {
		p.retire(gone)
	}
	return nil
}

// compact merges the deltas of a record without the bucket's mutex. Nobody else adds any
// meanwhile, because the caller holds edit; if the record is taken out, what was merged is
// not needed.
func (s *kindSet) compact(b *bucket, p *pending) {
	var err error // Whoever takes the record out meets the same panic.
	defer s.caught(&err)
	b.mu.Lock()
	deltas := p.deltas
	b.mu.Unlock()
	fewer := compacted(p.kind.typ, deltas)
	b.mu.Lock()
	defer b.mu.Unlock()
	attached := b.cells[p.key] != nil && b.cells[p.key].pending == p
	if attached && len(p.deltas) == len(deltas) && &p.deltas[0] == &deltas[0] {
		p.deltas = fewer
	}
}

// made works out the next image, and refuses what may not be; the maximum is that of its size, zero for none.
func (s *kindSet) made(
	key string, mine *image, k *kind, maximum int, taking func(mine *image) (image, Outcome),
) (next image, outcome Outcome, err error) {
	outcome = Refused
	if mine.kind != nil && k != nil && mine.kind != k {
		return next, Refused, typeError(key, mine.kind.typ, k.typ)
	}
	defer s.caught(&err)
	next, made := taking(mine)
	if err := tooLarge(mine.size, next.size, maximum); err != nil {
		return next, Refused, err
	}
	return next, made, nil
}
