// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "github.com/quorate/quorate/sharding/internal/protocol"

// Liveness says whether an entity could be told a message without being woken for it.
type Liveness uint8

// The values of [Liveness].
const (
	ReachAway    Liveness = iota // The shard is not served here under that epoch.
	ReachPassive                 // The entity does not live, or is just being stopped.
	ReachFull                    // Its mailbox has no room.
	Reached                      // It can be told by [Cell.Join].
)

// Reachable looks for an entity that lives, in a shard that is served under an epoch. An entity that rests after
// failures, or that waits for its first message, does not live.
func (c *Cell) Reachable(id string, under protocol.Epoch) (*Entity, Liveness) {
	if !c.place.serves() || c.place.isOver() || c.place.mapEpoch() != under {
		return nil, ReachAway
	}
	e := c.entities.entity(id)
	switch {
	case e == nil || e.Ended() || e.is(isReleased) || e.state != entityActive && e.state != entityStarting:
		return nil, ReachPassive
	case c.entities.full(e):
		return nil, ReachFull
	}
	return e, Reached
}

// Living appends the ids of the entities that live.
func (c *Cell) Living(ids []string) []string {
	for e := range c.Entities() {
		if e.state == entityActive || e.state == entityStarting {
			ids = append(ids, e.id)
		}
	}
	return ids
}
