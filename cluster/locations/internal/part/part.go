// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package part decides what package locations reads and writes: in which keys the locations of a kind are, what a
// change leaves out, and what is said of a shard. It calls nobody and reads no clock, so that the world of locations
// runs it too.
//
// It has no state, and its functions may be called by several goroutines.
package part

import (
	"maps"
	"slices"
	"strconv"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/ddata/crdt"
)

const (
	// Prefix is how the names of the keys begin.
	Prefix = "sharding/locations/"
	// Shards is how many shards a key holds at most.
	Shards = 1024
)

// Part is the type of a key: addresses by the decimal number of their shard. It is one of the types that every
// node knows, those of earlier versions too.
type Part = crdt.LWWMap[string, string]

// Key returns the name of the key that holds a part of the shards of a kind. The number comes first, since a
// kind may have any name.
func Key(kind string, number int) string { return Prefix + strconv.Itoa(number) + "/" + kind }

// Number returns the number of a shard, below 65,536: once the number of shards of a kind has changed, the bits above
// count the changes. A location is for the shard of its number, whichever layout counts.
func Number(shard allocation.Shard) int { return int(shard & 0xffff) }

// Of returns the numbers of the parts that hold some shards, sorted.
func Of(shards []allocation.Shard) []int {
	var numbers []int
	for _, shard := range shards {
		numbers = append(numbers, Number(shard)/Shards)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// Split returns locations by the numbers of their parts.
func Split(locations map[allocation.Shard]string) map[int]map[allocation.Shard]string {
	parts := map[int]map[allocation.Shard]string{}
	for shard, address := range locations { //quorate:unordered a map of maps
		n := int(shard) / Shards
		if parts[n] == nil {
			parts[n] = map[allocation.Shard]string{}
		}
		parts[n][shard] = address
	}
	return parts
}

// Others returns the shards whose locations are not yet those of a change, sorted.
func Others(present Part, change map[allocation.Shard]string) []allocation.Shard {
	var others []allocation.Shard
	for shard, address := range change { //quorate:unordered sorted below
		if was, _ := present.Get(nameOf(shard)); was != address {
			others = append(others, shard)
		}
	}
	slices.Sort(others)
	return others
}

// Doubtful reports whether a change would leave out shards, given those that a majority has elsewhere. The majority is
// not enough for that: another replica may hold an unconfirmed change, which would win over what is not written.
func Doubtful(others []allocation.Shard, change map[allocation.Shard]string) bool {
	return len(others) < len(change)
}

// All returns the shards of a change, sorted.
func All(change map[allocation.Shard]string) []allocation.Shard {
	return slices.Sorted(maps.Keys(change))
}

// Put returns a part in which shards have the locations of a change, which win over those that were read, whatever the
// clocks of other writers say. What was read need not be in the part: a node that has just become a replica does not
// hold yet what it has read from others. Now is the wall clock, in nanoseconds.
func Put(at crdt.Origin, now int64, p, read Part, shards []allocation.Shard, change map[allocation.Shard]string) Part {
	p = p.Merge(read)
	for _, shard := range shards {
		// A location that is withdrawn is written as an empty one, not removed: a removal would take back
		// only what this node has seen.
		p = p.Put(at, now, nameOf(shard), change[shard])
	}
	return p
}

// Known are locations that were read.
type Known map[allocation.Shard]string

// Add adds the locations in a part.
func (k Known) Add(p Part, number int) {
	for name, address := range p.All() {
		if shard, ok := shardOf(name, number); ok && address != "" {
			k[shard] = address
		}
	}
}

// Location implements [allocation.Locations].
func (k Known) Location(_ string, shard allocation.Shard) string {
	return k[allocation.Shard(Number(shard))] // Below 65,536.
}

var _ allocation.Locations = Known(nil)

// nameOf is what a shard is called in its part.
func nameOf(s allocation.Shard) string { return strconv.FormatUint(uint64(s), 10) }

// shardOf returns the shard of a name in a part. Names that this package does not write, as somebody
// may who changes the key himself, are no shards.
func shardOf(name string, number int) (allocation.Shard, bool) {
	n, err := strconv.ParseUint(name, 10, 32)
	shard := allocation.Shard(n)
	return shard, err == nil && nameOf(shard) == name && int(n)/Shards == number
}
