// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"fmt"
	"iter"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// maxStuckNamed bounds the entities that an [Info] names.
const maxStuckNamed = 16

// Info is a snapshot of a cell, for explanations and metrics.
type Info struct {
	Home              gossip.NodeID   // The home of the shard; zero if not known.
	Epoch             protocol.Epoch  // The epoch of the home.
	Since             machine.Instant // When this node last learned of a change; 0: never.
	Hosting, Stopping bool
	Retired           bool // No node hosts the shard any more, see [protocol.RetireShard].
	Suspended         bool
	Blocked           bool            // The lane to the home is full or broken.
	Asked             bool            // The cell has asked the coordinator for a home, or for a newer one.
	Window, Transit   int             // The number of messages in the window and in the transit queue.
	Moved             machine.Instant // When the window last moved, or began to fill.
	Entities          int             // Entities with a record.
	// Stuck are entities that do not return from a call, at most 16 of them; StuckCount is
	// how many there are.
	Stuck      []EntityInfo
	StuckCount int
}

// EntityInfo is a snapshot of an entity's record.
type EntityInfo struct {
	ID string
	// State is "waiting", "starting", "idle", "busy", "stopping" or "failed".
	State string
	// Since is when State began; for "failed" it is when State ends.
	Since machine.Instant
	// Waiting are the messages in the mailbox.
	Waiting int
	// Stuck says that the entity has not returned from a call for too long, Released that
	// its shard went on without it.
	Stuck, Released bool
	// Failures is the number of failures since the last success, Reason that of the last
	// failure.
	Failures int
	Reason   string
}

// Info returns a snapshot of the cell.
func (c *Cell) Info() Info {
	i := Info{
		Home: c.place.home(), Epoch: c.place.mapEpoch(), Since: c.place.changed(),
		Hosting: c.place.hosts(), Stopping: c.place.stops(), Retired: c.place.isRetired(),
		Suspended: c.place.isSuspended(), Asked: c.place.asking(), Transit: c.in.kept(),
	}
	c.own.describe(&i)
	c.entities.describe(&i)
	return i
}

func (i *Info) note(e *Entity) {
	if len(i.Stuck) < maxStuckNamed {
		i.Stuck = append(i.Stuck, e.Info())
	}
}

// Entity returns a snapshot of the record of an entity; false if it is passive.
func (c *Cell) Entity(id string) (EntityInfo, bool) {
	e := c.entities.entity(id)
	if e == nil {
		return EntityInfo{}, false
	}
	return e.Info(), true
}

// Info returns a snapshot of the record.
func (e *Entity) Info() EntityInfo {
	i := EntityInfo{
		ID: e.id, State: e.state.String(), Since: e.at, Waiting: e.Waiting(),
		Stuck: e.stuck(), Released: e.is(isReleased), Failures: int(e.failures),
	}
	switch {
	case e.atWork():
		i.State = "busy"
	case e.state == entityFailed:
		i.Reason = e.reason()
	}
	return i
}

// String returns the name of the state.
func (s entityState) String() string {
	switch s {
	case entityWaiting:
		return "waiting"
	case entityStarting:
		return "starting"
	case entityActive:
		return "idle"
	case entityStopping:
		return "stopping"
	case entityFailed:
		return "failed"
	default:
		return "none"
	}
}

// String describes the cell in one line, always in the same order.
func (c *Cell) String() string {
	i := c.Info()
	return fmt.Sprintf("shard %d home %s epoch %s hosting %t stopping %t window %d transit %d entities %d stuck %d",
		c.cfg.Shard, i.Home, i.Epoch, i.Hosting, i.Stopping, i.Window, i.Transit, i.Entities, i.StuckCount)
}

// Entities returns the records of the entities, in the order in which they came to life.
func (c *Cell) Entities() iter.Seq[*Entity] { return c.entities.all() }
