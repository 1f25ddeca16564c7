// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
)

// First origins: which bits of one name its replica, and which the life of that. Then versions: how many updates of
// each origin a value holds.

// lifeShift is where the life begins in an origin: 44 bits name the replica, which are drawn at random, and 20 are its
// life.
const lifeShift = 44

// maxLife is the last life that an owner can have.
const maxLife = 1<<(64-lifeShift) - 1

// Owner returns the origin without its life, which names the replica. A replica begins a new life for a key, which is
// another origin, when it has to count its updates from the beginning while what it counted before may still be known
// elsewhere: after the key has expired or was swept, or its bucket was dropped.
func Owner(o crdt.Origin) crdt.Origin { return o & (1<<lifeShift - 1) }

func lifeOf(o crdt.Origin) uint64 { return uint64(o >> lifeShift) }

func originOf(owner crdt.Origin, life uint64) crdt.Origin {
	return owner | crdt.Origin(life<<lifeShift)
}

// Version means the first Count updates of a key by an origin.
type Version struct {
	Origin crdt.Origin
	Count  uint64
}

// Versions means updates of a key: the first ones by each of some origins. It is sorted by origin, without zero counts,
// and immutable. Nil is none.
type Versions []Version

// valid reports whether versions of another replica are sorted, with each origin once and no zero counts.
func (v Versions) valid() bool {
	for i := range v {
		if v[i].Count == 0 || i > 0 && v[i-1].Origin >= v[i].Origin {
			return false
		}
	}
	return true
}

// Of returns how many updates of an origin are meant.
func (v Versions) Of(o crdt.Origin) uint64 {
	// A key has few origins, and for few the search from the front is the fastest.
	for i := range v {
		if v[i].Origin >= o {
			if v[i].Origin == o {
				return v[i].Count
			}
			return 0
		}
	}
	return 0
}

// Covers reports whether every update that o means is meant by v too.
func (v Versions) Covers(o Versions) bool {
	i := 0
	for _, x := range o {
		for i < len(v) && v[i].Origin < x.Origin {
			i++
		}
		if i == len(v) || v[i].Origin != x.Origin || v[i].Count < x.Count {
			return false
		}
	}
	return true
}

// Join returns versions that mean the updates of both: the maximum for each origin. It returns v or o itself if that is
// the result.
func (v Versions) Join(o Versions) Versions {
	switch {
	case v.Covers(o):
		return v
	case o.Covers(v):
		return o
	}
	n := make(Versions, 0, len(v)+len(o))
	for len(v) > 0 && len(o) > 0 {
		switch c := cmp.Compare(v[0].Origin, o[0].Origin); {
		case c < 0:
			n, v = append(n, v[0]), v[1:]
		case c > 0:
			n, o = append(n, o[0]), o[1:]
		default:
			n = append(n, Version{v[0].Origin, max(v[0].Count, o[0].Count)})
			v, o = v[1:], o[1:]
		}
	}
	return slices.Clip(append(append(n, v...), o...))
}

// Equal reports whether both mean the same updates.
func (v Versions) Equal(o Versions) bool { return slices.Equal(v, o) }

// with returns the versions with another count for one origin.
func (v Versions) with(o crdt.Origin, count uint64) Versions {
	i, found := slices.BinarySearchFunc(v, o, func(x Version, o crdt.Origin) int { return cmp.Compare(x.Origin, o) })
	if found {
		n := slices.Clone(v)
		n[i].Count = count
		return n
	}
	n := make(Versions, 0, len(v)+1)
	return append(append(append(n, v[:i]...), Version{o, count}), v[i:]...)
}
