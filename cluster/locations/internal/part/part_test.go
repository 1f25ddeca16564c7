// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package part_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/cluster/locations/internal/part"
	"github.com/quorate/quorate/ddata/crdt"
)

// Locations are cut into parts, written to them and found again there, whichever layout of a kind counts.
func TestLocationsAreFoundInTheirParts(t *testing.T) {
	change := map[allocation.Shard]string{3: "a:1", 1023: "b:1", 1024: "c:1", 65_535: "d:1"}
	known, shards := part.Known{}, part.All(change)
	for number, of := range part.Split(change) {
		known.Add(part.Put(crdt.Origin(1), 1, part.Part{}, part.Part{}, part.All(of), of), number)
	}
	require.Equal(t, part.Known(change), known)
	require.Equal(t, []int{0, 1, 63}, part.Of(shards))
	require.Equal(t, "c:1", known.Location("any", 7<<16|1024), "of a later layout")
}

// What has its location is left out, and then all replicas are to be asked. What is withdrawn is no location.
func TestAChangeLeavesOutWhatIsThere(t *testing.T) {
	there := map[allocation.Shard]string{1: "a:1", 2: "b:1"}
	p := part.Put(crdt.Origin(1), 1, part.Part{}, part.Part{}, part.All(there), there)
	change := map[allocation.Shard]string{1: "a:1", 2: "c:1", 3: "", 4: "d:1"}
	others := part.Others(p, change)
	require.Equal(t, []allocation.Shard{2, 4}, others)
	require.True(t, part.Doubtful(others, change))
	require.False(t, part.Doubtful(part.All(change), change))
	p = part.Put(crdt.Origin(2), 0, p, part.Part{}, []allocation.Shard{1}, map[allocation.Shard]string{1: ""})
	known := part.Known{}
	known.Add(p, 0)
	require.Equal(t, part.Known{2: "b:1"}, known)
}

// A change wins over what was read, also if the part that it is made in does not have that, and if the clock of
// who wrote that is an hour ahead. What was read of other shards is not touched.
func TestAChangeWinsOverWhatWasRead(t *testing.T) {
	const hour = int64(3600e9)
	before := map[allocation.Shard]string{1: "a:1", 2: "b:1"}
	read := part.Put(crdt.Origin(1), hour, part.Part{}, part.Part{}, part.All(before), before)
	change := map[allocation.Shard]string{1: "c:1"}
	for name, held := range map[string]part.Part{"nothing": {}, "what was read": read} {
		written := part.Put(crdt.Origin(2), 1, held, read, part.All(change), change)
		for _, everywhere := range []part.Part{written, written.Merge(read), read.Merge(written)} {
			known := part.Known{}
			known.Add(everywhere, 0)
			require.Equal(t, part.Known{1: "c:1", 2: "b:1"}, known, name)
		}
	}
}
