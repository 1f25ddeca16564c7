// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"math"

	"github.com/quorate/quorate/ddata/crdt"
)

// What a key is (image), apart from where it is kept, and the two functions that decide
// everything about replication: how two images of one key are joined (joined), and how
// updates are taken into one (applied).
//
// # Why this converges
//
// Without expiry an image is a pair (Versions, value) in which the second follows from the first,
// and the join is the maximum of each version: a semilattice. Deleted is its top. Expiry
// takes something away, which no semilattice can. What it takes is therefore remembered, as
// Floor, which only grows, and one rule is used whenever two images meet: the side
// of which the whole value is below the common floor contributes nothing. The results of three
// joins may depend on their order, for an update that a floor covers may come along with
// one that none covers. But the tables of a group that exchange what they hold become equal:
// floors only grow, by the expiries that there are, and end up the same everywhere. From then on a
// table whose versions are not below the floor never loses any, one whose versions are has
// none, and so all versions grow to the same join. An update that no floor covers keeps
// its image above the floor wherever it arrives, and is never lost.
//
// That an update is never mistaken for another one needs origins of their own (see Owner):
// after a value has expired, the counting of its updates starts again under another life.

// kind is a type with what the table derives from it.
type kind struct {
	typ   crdt.Type
	name  string
	hash  uint64
	whole bool // The type has no deltas.
}

func newKind(typ crdt.Type) *kind {
	name := typ.Name()
	// A type with deltas has none of its zero value.
	_, whole := typ.Delta(typ.Zero())
	return &kind{typ: typ, name: name, hash: HashKey(name), whole: whole}
}

// image is what a table holds of a key. It is immutable; the zero image is a key that is
// not there. The fields are those of Entry.
type image struct {
	state    State
	kind     *kind
	value    any
	versions Versions
	floor    Versions
	stamp    uint64
	// size is the size of the value in bytes, and guesses how often it was guessed since it
	// was measured.
	size    int
	guesses uint16
}

// sizeAfter returns the size of a value to which a delta was added. To measure a large
// value takes long, therefore the size of the delta is added instead, which may be too
// much, and the value is measured once in as many times as it has kilobytes, or if the
// guess is above a maximum.
func (k *kind) sizeAfter(size int, guesses uint16, value, delta any, maximum int) (int, uint16) {
	const each = 1 << 10
	if guesses < math.MaxUint16 && size >= (int(guesses)+1)*each {
		if guess := size + k.typ.Size(delta); maximum == 0 || guess <= maximum {
			return guess, guesses + 1
		}
	}
	return k.typ.Size(value), 0
}

func (m *image) entry(key string) Entry {
	e := Entry{
		Key: key, Value: m.value, Versions: m.versions, Floor: m.floor, State: m.state, Stamp: m.stamp,
	}
	if m.kind != nil {
		e.Type = m.kind.typ
	}
	return e
}

// joined returns the join of what is here and what another replica has, and whether
// that is anything new. Types are equal if both have one.
func joined(mine, theirs *image) (image, bool) {
	switch {
	case mine.state == Deleted:
		// The lower stamp stays: so a tombstone that counts for a sweep counts for all
		// later ones, and no message that comes late takes it out of the set on which
		// the replicas have to agree.
		if theirs.state != Deleted || theirs.stamp >= mine.stamp {
			return *mine, false
		}
		return *theirs, true
	case theirs.state == Deleted, mine.state == 0 && !theirs.versions.below(theirs.floor):
		return *theirs, true
	}
	next := image{kind: theirs.kind, floor: mine.floor.Join(theirs.floor)}
	a, b := mine.above(next.floor), theirs.above(next.floor)
	next.versions = a.Join(b)
	switch {
	case len(next.versions) == 0:
		next.state, next.stamp = Expired, expiredAt(mine, theirs, next.floor)
	case a.Covers(b):
		next.state, next.value, next.size, next.guesses = Live, mine.value, mine.size, mine.guesses
	case b.Covers(a):
		next.state, next.value, next.size = Live, theirs.value, theirs.size
	default:
		next.state, next.value = Live, theirs.kind.typ.Merge(mine.value, theirs.value)
		next.size = theirs.kind.typ.Size(next.value)
	}
	same := next.state == mine.state && next.stamp == mine.stamp &&
		next.floor.Equal(mine.floor) && next.versions.Equal(mine.versions)
	return next, !same
}

// below reports whether a floor covers everything.
func (v Versions) below(floor Versions) bool { return floor.Covers(v) }

// above returns what the image contributes to a join over a floor.
func (m *image) above(floor Versions) Versions {
	if m.versions.below(floor) {
		return nil
	}
	return m.versions
}

// expiredAt returns the stamp of the tombstone that a join has made: the lowest of those whose
// floor is the whole floor, for the reason that joined gives; of parts of it, the highest.
func expiredAt(mine, theirs *image, floor Versions) uint64 {
	a, b := mine.state == Expired, theirs.state == Expired
	switch {
	case a && b:
		if f, g := mine.floor.Equal(floor), theirs.floor.Equal(floor); f != g {
			if f {
				return mine.stamp
			}
			return theirs.stamp
		} else if !f {
			return max(mine.stamp, theirs.stamp)
		}
		return min(mine.stamp, theirs.stamp)
	case a:
		return mine.stamp
	default:
		// Zero if both were live, each below the floor of the other.
		return theirs.stamp
	}
}

// applied returns what becomes of an image when updates arrive. The type is that of the
// image, if it has one. The maximum is that of the value's size, zero for none.
func applied(mine *image, c *Change, k *kind, maximum int) (image, Outcome) {
	holds := mine.versions.Of(c.Origin)
	switch {
	case mine.state == Deleted, c.To <= holds, c.To <= mine.floor.Of(c.Origin):
		return *mine, Known
	case c.From > holds:
		return *mine, Gap
	}
	next := *mine
	next.state, next.kind, next.stamp = Live, k, 0
	next.versions = mine.versions.with(c.Origin, c.To)
	if mine.state == Live {
		next.value = k.typ.Merge(mine.value, c.Delta)
	} else {
		next.value = c.Delta
	}
	next.size, next.guesses = k.sizeAfter(mine.size, mine.guesses, next.value, c.Delta, maximum)
	return next, Applied
}

// expired returns what becomes of a live image when its value expires.
func (m *image) expired(stamp uint64) image {
	return image{state: Expired, kind: m.kind, floor: m.floor.Join(m.versions), stamp: stamp}
}

// folded returns what becomes of an image when owners are retired: their updates count for
// origin zero from then on. All replicas hold the same updates of these
// owners, and of origin zero for keys that have any (see OriginHash), and therefore
// number them alike. Floors forget the owners: what was not here can come from nowhere now.
// The value is not folded yet.
func (m *image) folded(gone func(crdt.Origin) bool) (image, bool) {
	next := *m
	var sum uint64
	next.versions, sum = m.versions.without(gone)
	next.floor, _ = m.floor.without(gone)
	if sum == 0 && len(next.floor) == len(m.floor) {
		return *m, false
	}
	if sum > 0 {
		// Above the floor, or what was alive would be expired.
		next.versions = next.versions.with(0, max(next.versions.Of(0), next.floor.Of(0))+sum)
	}
	return next, true
}

// without returns the versions without some origins, and how many updates they were.
func (v Versions) without(gone func(crdt.Origin) bool) (Versions, uint64) {
	var sum uint64
	var rest Versions
	for _, x := range v {
		if gone(x.Origin) {
			sum += x.Count
		} else {
			rest = append(rest, x)
		}
	}
	if len(rest) == len(v) {
		return v, sum
	}
	return rest, sum
}
