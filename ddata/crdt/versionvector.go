// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import (
	"fmt"
	"iter"
)

// VersionVector counts events of origins, so that two of them say which of two states has
// seen the other (Shapiro et al. 2011, section 3.1; the entries join by their maximum). Its
// zero value has seen nothing.
//
// No number of an origin may stand for two events. A process that drops a vector and begins it again under the same
// origin goes on with the numbers of before, by Raise, or uses a new origin.
type VersionVector struct{ c *counts }

var (
	_ Value[VersionVector]   = VersionVector{}
	_ Differ[VersionVector]  = VersionVector{}
	_ Retirer[VersionVector] = VersionVector{}
)

// Order is the result of a comparison of two version vectors.
type Order int

// The results, for the first of the two vectors.
const (
	Equal      Order = iota // Both have seen the same.
	Before                  // The other has seen more.
	After                   // The other has seen less.
	Concurrent              // Each has seen something that the other has not.
)

// String returns "equal", "before", "after" or "concurrent".
func (o Order) String() string {
	if o < Equal || o > Concurrent {
		return fmt.Sprintf("order(%d)", int(o))
	}
	return [...]string{"equal", "before", "after", "concurrent"}[o]
}

// Increment returns the vector with one more event of an origin.
func (v VersionVector) Increment(at Origin) VersionVector { return VersionVector{v.c.add(at, 1, 0)} }

// Raise returns the vector with the entry of an origin at n, or above if it is there
// already; n is at most 2^60.
func (v VersionVector) Raise(at Origin, n uint64) VersionVector {
	n = min(n, maxCount)
	have := v.c.of(at).up
	if n <= have {
		return v
	}
	return VersionVector{v.c.add(at, n-have, 0)}
}

// Of returns the entry of an origin, zero if it has none.
func (v VersionVector) Of(at Origin) uint64 { return v.c.of(at).up }

// All returns the entries by origin in ascending order.
func (v VersionVector) All() iter.Seq2[Origin, uint64] {
	return func(yield func(Origin, uint64) bool) {
		for _, e := range v.c.all() {
			if !yield(e.at, e.settled().up) {
				return
			}
		}
	}
}

// Compare compares the vector with another one.
func (v VersionVector) Compare(other VersionVector) Order {
	over, under := v.c.covers(other.c), other.c.covers(v.c)
	switch {
	case over && under:
		return Equal
	case over:
		return After
	case under:
		return Before
	}
	return Concurrent
}

// TypeName is "versionvector".
func (v VersionVector) TypeName() string { return "versionvector" }

// Merge returns the maximum of each entry.
func (v VersionVector) Merge(other VersionVector) VersionVector {
	return VersionVector{v.c.merge(other.c)}
}

// Delta returns the entries that have been raised since Settled.
func (v VersionVector) Delta() (VersionVector, bool) {
	d := v.c.delta()
	return VersionVector{d}, d != nil
}

// Settled returns the vector without pending delta.
func (v VersionVector) Settled() VersionVector { return VersionVector{v.c.settled()} }

// Retire adds the entries of the origins that are gone to that of origin zero. It keeps
// the order of any two vectors that have the same entries of those origins.
func (v VersionVector) Retire(gone func(Origin) bool) VersionVector {
	return VersionVector{v.c.retire(gone)}
}

// Size returns the bytes of memory the vector takes.
func (v VersionVector) Size() int { return v.c.size() }

// AppendBinary appends the canonical encoding. It does not fail.
func (v VersionVector) AppendBinary(dst []byte) ([]byte, error) { return v.c.append(dst, false), nil }

// UnmarshalBinary decodes what AppendBinary has written.
func (v *VersionVector) UnmarshalBinary(b []byte) error {
	c, err := readCounts(b, false)
	if err == nil {
		v.c = c
	}
	return err
}
