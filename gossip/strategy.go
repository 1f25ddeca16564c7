// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// DowningStrategy identifies a downing strategy. Two nodes whose values are equal
// decide by the same rules. The zero value is none.
type DowningStrategy struct {
	Name         string // At most [MaxRoleBytes], as is Version.
	Version      string
	Parameters   string // Canonical text of the settings, at most 4096 bytes.
	Pure         bool   // Equal views give equal decisions.
	MajorityOnly bool   // Never lets a side without a majority survive.
}

// StrategyID is a short form of a [DowningStrategy], where its fields would take too
// much space. Zero is none.
type StrategyID uint64

// String returns the id in 16 hexadecimal digits.
func (id StrategyID) String() string {
	text := strconv.FormatUint(uint64(id), 16)
	return "0000000000000000"[len(text):] + text
}

// ID returns the id: FNV-1a over the fields, zero only for the zero value. It
// is part of the wire.
func (s DowningStrategy) ID() StrategyID {
	if s == (DowningStrategy{}) {
		return 0
	}
	h := fnv.New64a()
	text := make([]byte, 0, len(s.Name)+len(s.Version)+len(s.Parameters)+16)
	for _, field := range []string{s.Name, s.Version, s.Parameters} {
		text = strconv.AppendInt(text, int64(len(field)), 10)
		text = append(append(text, ':'), field...)
	}
	text = strconv.AppendBool(strconv.AppendBool(text, s.Pure), s.MajorityOnly)
	_, _ = h.Write(text) // Writing to a hash never fails.
	return StrategyID(max(h.Sum64(), 1))
}

func (s DowningStrategy) compare(o DowningStrategy) int {
	return cmp.Or(
		strings.Compare(s.Name, o.Name),
		strings.Compare(s.Version, o.Version),
		strings.Compare(s.Parameters, o.Parameters),
		compareBools(s.Pure, o.Pure),
		compareBools(s.MajorityOnly, o.MajorityOnly),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// DowningRegister names the downing strategy that the whole cluster uses. The
// leader changes it, under convergence, when every member has it loaded. The
// zero value is none.
type DowningRegister struct {
	Gen uint64 // Grows by one with each change.
	DowningStrategy

	// Previous is the strategy of the generation before. While the change is not known
	// to have converged, other nodes may still decide by Previous alone.
	Previous DowningStrategy

	Unknown string // The fields of a later release, see [Unknown]: they belong to this value.
}

// generation does not say who wrote it: the record does not.
func (r *DowningRegister) generation() Generation { return Generation{Gen: r.Gen} }

func (r *DowningRegister) compareContent(o *DowningRegister) int {
	return cmp.Or(r.compare(o.DowningStrategy), r.Previous.compare(o.Previous), strings.Compare(r.Unknown, o.Unknown))
}

// Loaded are the downing strategies that a node can use, as declared by the node
// itself, which alone changes them. The zero value is that of a node that has declared
// nothing yet.
type Loaded struct {
	Version    uint64       // Grows by one with each change.
	Strategies []StrategyID // Sorted, at most [MaxLoaded].
}

// Has reports whether the strategy is loaded.
func (l Loaded) Has(id StrategyID) bool {
	_, ok := slices.BinarySearch(l.Strategies, id)
	return ok
}

func (l Loaded) equal(o Loaded) bool {
	return l.Version == o.Version && slices.Equal(l.Strategies, o.Strategies)
}

// join returns the later declaration of one node. The order of the contents matters
// only if two processes speak as one node.
func (l Loaded) join(o Loaded) Loaded {
	if cmp.Or(cmp.Compare(l.Version, o.Version), slices.Compare(l.Strategies, o.Strategies)) < 0 {
		return o
	}
	return l
}

func (l Loaded) validate(node NodeID) error {
	switch {
	case l.Version > maxCount || l.Version == 0 && len(l.Strategies) > 0:
		return invalid(FaultCounter, node, "loaded strategies of version %d", l.Version)
	case len(l.Strategies) > MaxLoaded:
		return invalid(FaultLimit, node, "%d loaded strategies, at most %d", len(l.Strategies), MaxLoaded)
	case !strictlySorted(l.Strategies, cmp.Compare[StrategyID]) || l.Has(0):
		return invalid(FaultDuplicate, node, "loaded strategies not sorted, twice, or none")
	}
	return nil
}
