// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// shardsByEpoch has all shards of a table by the epochs of their homes, the oldest first. The strategy is told
// the shards of each region so, again and again while many move, and between two of its questions few
// get another epoch, which is mostly above all others: so it is kept, and only what has changed is sorted.
type shardsByEpoch struct {
	list    []agedShard
	changed []agedShard // Its memory is used again.
}

// agedShard is a shard with the epoch under which it stands in the list.
type agedShard struct {
	id    protocol.ShardID
	epoch protocol.Epoch
}

// compare orders by epochs, and shards of equal ones by themselves.
func (d agedShard) compare(o agedShard) int {
	if c := d.epoch.Compare(o.epoch); c != 0 {
		return c
	}
	return cmp.Compare(d.id, o.id)
}

// of returns the shards of a table. The list is valid until the next call.
func (o *shardsByEpoch) of(shards *shardMap[shard]) []agedShard {
	kept, changed := o.list[:0], o.changed[:0]
	for _, d := range o.list {
		switch s := shards.at(d.id); {
		case s == nil: // Its layout is dropped.
		case s.epoch == d.epoch:
			kept = append(kept, d)
		default:
			changed = append(changed, agedShard{d.id, s.epoch})
		}
	}
	if len(kept)+len(changed) != shards.len() { // A layout has come.
		kept, changed = kept[:0], changed[:0]
		for id, s := range shards.all() {
			changed = append(changed, agedShard{id, s.epoch})
		}
	}
	slices.SortFunc(changed, agedShard.compare)
	inOrder := len(kept) == 0 || len(changed) == 0 || kept[len(kept)-1].compare(changed[0]) < 0
	o.list, o.changed = append(kept, changed...), changed
	if !inOrder {
		slices.SortFunc(o.list, agedShard.compare)
	}
	return o.list
}
