// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Whatever epochs shards get, and whatever layouts come and go, the list is what sorting all of them gives.
func TestSeniorityIsTheOrderOfEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var shards shardMap[shard]
		var o shardsByEpoch
		number, next := uint16(0), uint64(1)
		grow := func() {
			shards.add(protocol.Layout{Number: number, Shards: uint32(rapid.IntRange(1, 20).Draw(t, "shards"))})
			number++
		}
		grow()
		t.Repeat(map[string]func(*rapid.T){
			"home": func(t *rapid.T) {
				var ids []protocol.ShardID
				for id := range shards.all() {
					ids = append(ids, id)
				}
				shards.at(rapid.SampledFrom(ids).Draw(t, "shard")).epoch.N = next
				next++
			},
			"reported": func(t *rapid.T) { // A takeover: epochs in any order.
				for _, s := range shards.all() {
					s.epoch.N = uint64(rapid.IntRange(0, 5).Draw(t, "epoch"))
				}
			},
			"layout": func(*rapid.T) {
				if number < 5 {
					grow()
				}
			},
			"dropped": func(*rapid.T) {
				if len(shards.parts) > 1 {
					shards.keep(func(l protocol.Layout) bool { return l.Number == number-1 })
				}
			},
			"replaced": func(*rapid.T) {
				if number < 5 {
					grow()
					shards.keep(func(l protocol.Layout) bool { return l.Number == number-1 })
				}
			},
			"": func(*rapid.T) {
				var want []agedShard
				for id, s := range shards.all() {
					want = append(want, agedShard{id, s.epoch})
				}
				slices.SortFunc(want, agedShard.compare)
				require.Equal(t, want, o.of(&shards))
			},
		})
	})
}
