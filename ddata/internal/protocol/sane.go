// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
)

// What a message has to be like, so that it is handled at all. Members may lie, or be of a
// release with a fault: a message that no machine sends is counted and changes nothing.

// sane reports whether an envelope and its content make sense.
func (e *Envelope) sane() bool {
	if r := e.Register; r != nil && (!r.sane() || r.Gen != e.Gen || r.Lineage != e.Lineage) {
		return false
	}
	switch b := e.Body.(type) {
	case Promise:
		return b.Value == nil || b.Value.Gen == b.Slot && b.Value.sane()
	case Accept:
		return b.Value != nil && b.Value.Gen == b.Slot && b.Value.sane()
	case Groups:
		return b.Same || len(b.Sums) == groupsOfBuckets
	case AskBuckets:
		return saneGroups(b.Groups)
	case BucketHashes:
		return saneGroups(b.Groups) && len(b.Hashes) == len(b.Groups)*bucketsAGroup
	default:
		return true
	}
}

// saneGroups reports whether there are groups of buckets with these numbers, each once.
func saneGroups(groups []uint8) bool {
	for i, of := range groups {
		if of >= groupsOfBuckets || i > 0 && groups[i-1] >= of {
			return false
		}
	}
	return true
}

// sane reports whether a machine could have made the register.
func (r *Register) sane() bool {
	return !r.Lineage.IsZero() && r.Gen > 0 && r.Phase >= PhaseStable && r.Phase <= PhaseEnded &&
		len(r.Current) > 0 && (len(r.Next) > 0) == (r.Phase == PhaseJoint) && (len(r.Old) > 0) == (r.Phase == PhaseEnded) &&
		r.Current.sane() && r.Next.sane() && r.Old.sane() &&
		r.Swept <= r.Gen && !slices.Contains(r.Retired, crdt.Origin(0))
}

// sane reports whether a set is sorted and without doubles.
func (s Set) sane() bool {
	for i, r := range s {
		if r.ID == 0 || i > 0 && s[i-1].ID >= r.ID {
			return false
		}
	}
	return true
}
