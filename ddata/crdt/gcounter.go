// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

// GCounter is a counter that only grows (Shapiro et al. 2011, specification 6; as a delta
// Almeida et al. 2018, figure 2). Its zero value is zero.
type GCounter struct{ c *counts }

var (
	_ Value[GCounter]   = GCounter{}
	_ Differ[GCounter]  = GCounter{}
	_ Retirer[GCounter] = GCounter{}
)

// Add returns the counter with n more. What one origin has added stays at 2^60 when it
// would pass that.
func (g GCounter) Add(at Origin, n uint64) GCounter { return GCounter{g.c.add(at, n, 0)} }

// Value returns the sum of what all origins have added, at most the greatest int64.
func (g GCounter) Value() uint64 {
	up, _ := g.c.sums()
	return up
}

// TypeName is "gcounter".
func (g GCounter) TypeName() string { return "gcounter" }

// Merge returns the join of both.
func (g GCounter) Merge(other GCounter) GCounter { return GCounter{g.c.merge(other.c)} }

// Delta returns the origins that have added something since Settled.
func (g GCounter) Delta() (GCounter, bool) {
	d := g.c.delta()
	return GCounter{d}, d != nil
}

// Settled returns the counter without pending delta.
func (g GCounter) Settled() GCounter { return GCounter{g.c.settled()} }

// Retire adds what the origins that are gone have counted to origin zero.
func (g GCounter) Retire(gone func(Origin) bool) GCounter { return GCounter{g.c.retire(gone)} }

// Size returns the bytes of memory the counter takes.
func (g GCounter) Size() int { return g.c.size() }

// AppendBinary appends the canonical encoding. It does not fail.
func (g GCounter) AppendBinary(dst []byte) ([]byte, error) { return g.c.append(dst, false), nil }

// UnmarshalBinary decodes what AppendBinary has written.
func (g *GCounter) UnmarshalBinary(b []byte) error {
	c, err := readCounts(b, false)
	if err == nil {
		g.c = c
	}
	return err
}
