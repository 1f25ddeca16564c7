// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"

	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
	world "github.com/quorate/quorate/simulation"
)

// Hosted returns the numbers of the shards that a node hosts at present, as its own cells say, in
// their order; nothing for a node without cells.
func Hosted(n *world.Node) []uint32 {
	cells, ok := n.Machine(protocol.MessageService).(*Cells)
	if !ok {
		return nil
	}
	var shards []uint32
	cells.region.EachSlot(func(sl *runtime.Slot) {
		if info := sl.Info(); info.Hosting {
			shards = append(shards, uint32(sl.Shard()))
		}
	})
	slices.Sort(shards)
	return shards
}
