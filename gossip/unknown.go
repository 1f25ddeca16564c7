// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"fmt"
	"strings"
)

// Unknown is what a later release says in a record in fields that this release does not know. A node keeps it and
// passes it on with the record, so that two members of a later release hear each other through members of this one. Who
// writes the record, the member itself or the leader for the registers, writes all of these fields at once, and gives
// them a version that grows with each change: so the join of two copies needs to know nothing of them. The zero value
// is that of a record in which nothing is unknown.
//
// What a record holds is implied by the clock, as all of it, so that hashes of a state need not cover it: two states
// with equal clocks have equal unknown fields, as every node keeps them.
type Unknown struct {
	Version uint64 // Grows with each change, of registers as generations do; 0: there never were such fields.
	Fields  string // As they came, in their order: protobuf, at most [MaxUnknownBytes]. Empty if they were taken back.
}

// IsZero reports whether there never were fields that this release does not know.
func (u Unknown) IsZero() bool { return u == Unknown{} }

// Compare orders by version; the order of the contents matters only if two processes speak as one node.
func (u Unknown) Compare(o Unknown) int {
	return cmp.Or(cmp.Compare(u.Version, o.Version), strings.Compare(u.Fields, o.Fields))
}

// maxUnknown returns the later of what two copies of a record have.
func maxUnknown(a, b Unknown) Unknown {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// validate bounds what every member would keep for as long as the record lasts.
func (u Unknown) validate(node NodeID) error {
	if u.Version > maxCount || u.Version == 0 && u.Fields != "" {
		return invalid(FaultCounter, node, "unknown fields of version %d", u.Version)
	}
	return validateUnknown(node, u.Fields)
}

// validateUnknown bounds the unknown fields of a record that has a version already.
func validateUnknown(node NodeID, fields string) error {
	if len(fields) > MaxUnknownBytes {
		return invalid(FaultLimit, node, "unknown fields of %d bytes, at most %d", len(fields), MaxUnknownBytes)
	}
	return nil
}

func describeUnknown(b *strings.Builder, fields string) {
	if fields != "" {
		fmt.Fprintf(b, " unknown=%x", fields)
	}
}

func (u Unknown) describe(b *strings.Builder) {
	if !u.IsZero() {
		fmt.Fprintf(b, " unknown/%d=%x", u.Version, u.Fields)
	}
}
