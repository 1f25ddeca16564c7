// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package crdt

import "math"

// PNCounter is a counter that grows and shrinks (Shapiro et al. 2011, specification 7): for
// each origin what it has added and what it has taken away, both of which only grow. Its
// zero value is zero.
type PNCounter struct{ c *counts }

var (
	_ Value[PNCounter]   = PNCounter{}
	_ Differ[PNCounter]  = PNCounter{}
	_ Retirer[PNCounter] = PNCounter{}
)

// Add returns the counter with n more, or less if n is negative. What one origin has added,
// and what it has taken away, each stay at 2^60 when they would pass that.
func (p PNCounter) Add(at Origin, n int64) PNCounter {
	up, down := amounts(n)
	return PNCounter{p.c.add(at, up, down)}
}

// amounts splits a change in what is counted up and what is counted down.
func amounts(n int64) (up, down uint64) {
	switch {
	case n >= 0:
		return uint64(n), 0
	case n == math.MinInt64:
		return 0, 1 << 63
	default:
		return 0, uint64(-n)
	}
}

// Value returns what all origins have added less what they have taken away. Each of the
// two sums is at most the greatest int64.
func (p PNCounter) Value() int64 {
	up, down := p.c.sums()
	return int64(up) - int64(down)
}

// TypeName is "pncounter".
func (p PNCounter) TypeName() string { return "pncounter" }

// Merge returns the join of both.
func (p PNCounter) Merge(other PNCounter) PNCounter { return PNCounter{p.c.merge(other.c)} }

// Delta returns what origins have counted since Settled.
func (p PNCounter) Delta() (PNCounter, bool) {
	d := p.c.delta()
	return PNCounter{d}, d != nil
}

// Settled returns the counter without pending delta.
func (p PNCounter) Settled() PNCounter { return PNCounter{p.c.settled()} }

// Retire adds what the origins that are gone have counted to origin zero.
func (p PNCounter) Retire(gone func(Origin) bool) PNCounter { return PNCounter{p.c.retire(gone)} }

// Size returns the bytes of memory the counter takes.
func (p PNCounter) Size() int { return p.c.size() }

// AppendBinary appends the canonical encoding. It does not fail.
func (p PNCounter) AppendBinary(dst []byte) ([]byte, error) { return p.c.append(dst, true), nil }

// UnmarshalBinary decodes what AppendBinary has written.
func (p *PNCounter) UnmarshalBinary(b []byte) error {
	c, err := readCounts(b, true)
	if err == nil {
		p.c = c
	}
	return err
}
