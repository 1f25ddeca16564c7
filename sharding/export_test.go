// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import "github.com/quorate/quorate/sharding/internal/protocol"

// Sent returns how many messages this node has sent to the shard of an entity, which
// is the number of the last one in their stream while the shard lives elsewhere.
func (g *Region[C]) Sent(id string) uint64 {
	var t protocol.Tally
	g.r.slotOf(id).tally(&t)
	return t.Sent
}
