// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// A member and its tombstone: what a state holds about each node, in which order
// members became Up, and how two copies of one record are joined.

// UpNumber is the position of a member in the order in which members became Up.
// Numbers grow, but a leader that dies may have given one to a member that alone knows
// it: unique is only an [Age]. Zero means not up yet.
type UpNumber uint64

// upStride is how much one removal adds to the last up-number, see [Edit.Remove]. It
// is more than the number of members of any cluster, so that the numbers between two
// removals fit in, and round, so that people can read them.
const upStride = 100_000

// Compare orders numbers: a negative result says that n comes before o.
func (n UpNumber) Compare(o UpNumber) int { return cmp.Compare(n, o) }

// next returns the least number above all numbers that a leader can have given that
// does not know of the latest removal.
func (n UpNumber) next() UpNumber { return (n/upStride + 1) * upStride }

// Age is the position of one incarnation in the order in which members became Up. No
// two members have equal ages, whatever leaders do, since each has its own uid. The
// zero Age is below all others.
type Age struct {
	UpNumber UpNumber
	UID      UID
}

// Compare orders ages, the oldest first: by up-number, then by uid.
func (a Age) Compare(b Age) int {
	return cmp.Or(cmp.Compare(a.UpNumber, b.UpNumber), cmp.Compare(a.UID, b.UID))
}

// ProtocolRange is the range of protocol versions that a member speaks, both
// ends included.
type ProtocolRange struct {
	Min, Max uint16 // The lowest and the highest version; both 0 if they are not known.
}

// Member is the record of one node in a cluster. It is immutable by contract: any
// goroutine may read it, and none may modify it or its slices.
type Member struct {
	Node     NodeID   // The incarnation of the node; never zero.
	Status   Status   // Where the member is in its life.
	UpNumber UpNumber // Given when the member becomes Up, and kept for life: the lower, the older. 0: not Up yet.

	Zone       string        // A label, for strategies; "" is a zone too.
	Roles      []string      // Sorted, without doubles, fixed for life.
	AppVersion string        // See [CompareVersions]. Its form is checked when a node starts, not here.
	Protocol   ProtocolRange // The versions that the node speaks.
	Services   []uint16      // Sorted numbers of the services that the node runs; only grows.
	Settings   uint64        // Digest of the settings that must be equal on all members.
	Loaded     Loaded        // The downing strategies with which the node can decide.
	Data       DataID        // The memory in which the node keeps its record; 0 if it keeps none.
	Downed     Cause         // Which node declared the member down, and why; zero unless it is Down.
	Unknown    Unknown       // What the member itself says in fields of a later release.
}

// HasRole reports whether m has the role. Every member has the role "".
func (m *Member) HasRole(role string) bool {
	return role == "" || slices.Contains(m.Roles, role)
}

// HasService reports whether m runs the service.
func (m *Member) HasService(service uint16) bool {
	_, ok := slices.BinarySearch(m.Services, service)
	return ok
}

// Age returns the age of m. It grows with the up-number and never falls.
func (m *Member) Age() Age { return Age{UpNumber: m.UpNumber, UID: m.Node.UID} }

// OlderThan reports whether m became Up before o. A member that is not up yet is
// younger than one that is. Members with equal up-numbers are ordered by [Age], and
// members without one, or with equal uids, by their node ids, so that the order is
// total.
func (m *Member) OlderThan(o *Member) bool { return compareAge(m, o) < 0 }

func compareAge(a, b *Member) int {
	// Subtracting 1 makes 0, not up yet, the largest number.
	if c := cmp.Compare(a.UpNumber-1, b.UpNumber-1); c != 0 {
		return c
	}
	if a.UpNumber != 0 && a.Node.UID != b.Node.UID {
		return cmp.Compare(a.Node.UID, b.Node.UID)
	}
	return compareNodes(&a.Node, &b.Node)
}

// Tombstone stands for a member that was removed. It prevents old news of the member
// from bringing it back.
type Tombstone struct {
	Node      NodeID
	Last      uint64 // The last clock entry of the node that the remover knew.
	RemovedAt int64  // Wall time of the removal, unix milliseconds.
	Downed    Cause  // Why the member had been declared down, if it had.
}

// Time returns the wall time of the removal.
func (t Tombstone) Time() time.Time { return time.UnixMilli(t.RemovedAt).UTC() }

// sameRemoval reports whether two tombstones agree on everything that a version of a
// state needs. Causes are left out: otherwise a node of a release without causes would
// not count as having seen a state that it has seen.
func sameRemoval(a, b *Tombstone) bool {
	return a.Node == b.Node && a.Last == b.Last && a.RemovedAt == b.RemovedAt
}

// joinTombstones returns the later of two tombstones of one node. It returns one of
// the two as a whole: with a maximum of each field, forgetting an early tombstone
// before or after the join would make a difference.
func joinTombstones(a, b *Tombstone) *Tombstone {
	if cmp.Or(cmp.Compare(a.RemovedAt, b.RemovedAt), cmp.Compare(a.Last, b.Last), compareCauses(&a.Downed, &b.Downed)) >= 0 {
		return a
	}
	return b
}

// joinMembers returns the join of two records of one node, and a or b itself if one of
// them is the join. Each field has its own join: the higher status, the greater
// up-number, the union of the services, the later list of loaded strategies, the later unknown fields; for
// fields that should be equal in all copies the greater in a total order. A join of
// each field is associative whatever the copies hold.
func joinMembers(a, b *Member) *Member {
	if a == b || equalMembers(a, b) {
		return a
	}
	m := Member{
		Node:       a.Node,
		Status:     max(a.Status, b.Status),
		UpNumber:   max(a.UpNumber, b.UpNumber),
		Zone:       max(a.Zone, b.Zone),
		Roles:      maxSlice(a.Roles, b.Roles, strings.Compare),
		AppVersion: max(a.AppVersion, b.AppVersion),
		Protocol:   maxProtocol(a.Protocol, b.Protocol),
		Services:   unionServices(a.Services, b.Services),
		Settings:   max(a.Settings, b.Settings),
		Loaded:     a.Loaded.join(b.Loaded),
		Data:       max(a.Data, b.Data),
		Downed:     maxCause(a.Downed, b.Downed),
		Unknown:    maxUnknown(a.Unknown, b.Unknown),
	}
	switch {
	case equalMembers(&m, a):
		return a
	case equalMembers(&m, b):
		return b
	}
	return &m
}

func equalMembers(a, b *Member) bool {
	return a.Status == b.Status && a.UpNumber == b.UpNumber && a.Settings == b.Settings &&
		a.Protocol == b.Protocol && a.Data == b.Data && a.Zone == b.Zone && a.AppVersion == b.AppVersion &&
		a.Node == b.Node && slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Services, b.Services) &&
		a.Loaded.equal(b.Loaded) && a.Downed == b.Downed && a.Unknown == b.Unknown
}

func maxProtocol(a, b ProtocolRange) ProtocolRange {
	if a.Max < b.Max || (a.Max == b.Max && a.Min < b.Min) {
		return b
	}
	return a
}

// maxSlice returns the greater of two slices in lexicographic order.
func maxSlice[T any](a, b []T, compare func(T, T) int) []T {
	if slices.CompareFunc(a, b, compare) < 0 {
		return b
	}
	return a
}

// unionServices returns the union of two sorted sets, and one of them itself if it
// contains the other.
func unionServices(a, b []uint16) []uint16 {
	if slices.Equal(a, b) {
		return a
	}
	u := make([]uint16, 0, len(a)+len(b))
	u = append(append(u, a...), b...)
	slices.Sort(u)
	u = slices.Compact(u)
	switch len(u) {
	case len(a):
		return a
	case len(b):
		return b
	}
	return u
}

// sortedSet returns the elements of s sorted and without doubles, and s itself if it
// is so already.
func sortedSet[T cmp.Ordered](s []T) []T {
	if strictlySorted(s, cmp.Compare[T]) {
		return s
	}
	c := slices.Clone(s)
	slices.Sort(c)
	return slices.Compact(c)
}

// strictlySorted reports whether s is sorted and has no doubles.
func strictlySorted[T any](s []T, compare func(a, b T) int) bool {
	for i := 1; i < len(s); i++ {
		if compare(s[i-1], s[i]) >= 0 {
			return false
		}
	}
	return true
}

// sortedNodes is sortedSet for node ids. It always copies.
func sortedNodes(s []NodeID) []NodeID {
	c := slices.Clone(s)
	slices.SortFunc(c, NodeID.Compare)
	return slices.Compact(c)
}
