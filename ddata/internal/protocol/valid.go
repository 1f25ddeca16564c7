// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

// Which messages are handled at all. Members may lie, or be of a release with a fault: a message that no machine could
// have sent is counted and changes nothing.

// valid reports whether a machine could have sent the envelope.
func (e *Envelope) valid() bool {
	if r := e.Register; r != nil && (!r.valid() || r.Gen != e.Gen || r.Lineage != e.Lineage) {
		return false
	}
	if e.Loaded > e.Written {
		return false
	}
	switch b := e.Body.(type) {
	case Promise:
		return b.Value == nil || b.Value.Gen == b.Slot && b.Value.valid()
	case Accept:
		return b.Value != nil && b.Value.Gen == b.Slot && b.Value.valid()
	case Groups:
		return b.Same || len(b.Sums) == groupsOfBuckets
	case AskBuckets:
		return validGroups(b.Groups)
	case Pull:
		return len(b.Buckets) <= bucketsAPull
	case BucketHashes:
		return validGroups(b.Groups) && len(b.Hashes) == len(b.Groups)*bucketsAGroup
	default:
		return true
	}
}

// validGroups reports whether there are groups of buckets with these numbers, each once.
func validGroups(groups []uint8) bool {
	for i, of := range groups {
		if of >= groupsOfBuckets || i > 0 && groups[i-1] >= of {
			return false
		}
	}
	return true
}

// valid reports whether a machine could have made the register.
func (r *Register) valid() bool {
	return !r.Lineage.IsZero() && r.Gen > 0 && r.Phase >= PhaseStable && r.Phase <= PhaseEnded &&
		len(r.Current) > 0 && (len(r.Next) > 0) == (r.Phase == PhaseJoint) && (len(r.Old) > 0) == (r.Phase == PhaseEnded) &&
		r.Current.valid() && r.Next.valid() && r.Old.valid() &&
		r.Swept <= r.Gen && !slices.Contains(r.Retired, crdt.Origin(0)) && r.validHeld() && r.validResets() &&
		len(r.Unknown) <= MaxUnknownBytes
}

// validHeld reports whether the buckets that are held back are named once each, with homes, and move only while the
// sets change.
func (r *Register) validHeld() bool {
	var named buckets
	for _, h := range r.Held {
		if len(h.Homes) == 0 || !h.Homes.valid() || !h.Old.valid() || h.Moves && (r.Phase == PhaseStable || len(h.Old) > 0) || !named.add(h.Buckets) {
			return false
		}
	}
	return true
}

// validResets reports whether the buckets that have begun anew are named once each, in
// generations up to this one.
func (r *Register) validResets() bool {
	var named buckets
	for _, x := range r.Resets {
		if x.Gen == 0 || x.Gen > r.Gen || !x.Spared.valid() || !named.add(x.Buckets) {
			return false
		}
	}
	return true
}

// buckets says for each bucket whether it was named.
type buckets [table.Buckets]bool

// add notes that buckets are named, and reports whether there are any, in ascending order, and none was named before.
func (b *buckets) add(all []uint16) bool {
	for i, bucket := range all {
		if int(bucket) >= table.Buckets || i > 0 && all[i-1] >= bucket || b[bucket] {
			return false
		}
		b[bucket] = true
	}
	return len(all) > 0
}

// valid reports whether a set is sorted and without duplicates.
func (s Set) valid() bool {
	for i, r := range s {
		if r.ID == 0 || i > 0 && s[i-1].ID >= r.ID {
			return false
		}
	}
	return true
}
