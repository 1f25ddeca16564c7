// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"fmt"

	"github.com/quorate/quorate/ddata/internal/protocol"
)

// Consistency says how many replicas an operation waits for. The zero value is [Local].
//
//	level        a read waits for              a write waits for
//	Local        nobody                        nobody; a durable key for the disk
//	From, To     n replicas                    n replicas
//	Majority     more than half of them        more than half of them
//	All          all replicas                  all replicas
//
// The replicas are those that count for the key, of which this node may be one. A level
// that asks for more than there are means all of them.
type Consistency struct {
	name   protocol.LevelName
	n      int
	extra  int
	minCap int
	fault  string // The option that no level can have, "" for none.
}

// Local waits for no other node. On a node that does not hold the key it waits for one
// node that does.
func Local() Consistency { return Consistency{} }

// From reads from n replicas, this node's included, and returns what they hold together.
// N is at least 1.
func From(n int) Consistency { return Consistency{name: protocol.Count, n: n} }

// To writes to n replicas, this node's included. N is at least 1.
func To(n int) Consistency { return From(n) }

// Majority reads from, or writes to, more than half of the replicas: what a majority has
// confirmed is in the answer of each later majority read, whatever minority fails.
func Majority(with ...MajorityOption) Consistency {
	c := Consistency{name: protocol.Majority}
	for _, o := range with {
		o(&c)
	}
	return c
}

// MajorityOption is an option of [Majority].
type MajorityOption func(*Consistency)

// MinCap asks for at least n replicas, as far as there are so many. N is at least 1. It is
// for small clusters, in which more than half is only two.
func MinCap(n int) MajorityOption {
	return func(c *Consistency) { c.minCap = n; c.refuse("MinCap", n) }
}

// Plus asks for n replicas more than a majority. N is at least 1.
func Plus(n int) MajorityOption {
	return func(c *Consistency) { c.extra = n; c.refuse("Plus", n) }
}

// refuse remembers the first option with a number that is too low, for validate.
func (c *Consistency) refuse(option string, n int) {
	if n < 1 && c.fault == "" {
		c.fault = fmt.Sprintf("%s(%d)", option, n)
	}
}

// All reads from, or writes to, all replicas.
func All() Consistency { return Consistency{name: protocol.All} }

// String returns the level in words.
func (c Consistency) String() string {
	switch c.name {
	case protocol.Count:
		return fmt.Sprintf("%d replicas", c.n)
	case protocol.Majority:
		text := "majority"
		if c.extra != 0 {
			text += fmt.Sprintf(" plus %d", c.extra)
		}
		if c.minCap != 0 {
			text += fmt.Sprintf(" of at least %d", c.minCap)
		}
		return text
	case protocol.All:
		return "all"
	default:
		return "local"
	}
}

// local reports whether the level waits for nobody.
func (c Consistency) local() bool { return c.name <= protocol.Local }

// level returns the level as the machine knows it.
func (c Consistency) level() protocol.Level {
	return protocol.Level{Name: max(c.name, protocol.Local), N: c.n, Extra: c.extra, MinCap: c.minCap}
}

// validate returns an error for a level with a number below 1.
func (c Consistency) validate() error {
	switch {
	case c.name == protocol.Count && c.n < 1:
		return fmt.Errorf("%w: %d replicas, at least one is needed", ErrConsistency, c.n)
	case c.fault != "":
		return fmt.Errorf("%w: a majority with %s, the number is at least 1", ErrConsistency, c.fault)
	default:
		return nil
	}
}
