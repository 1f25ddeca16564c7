// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import "github.com/quorate/quorate/sharding/internal/protocol"

// Counts are the counters of cells since they were created. They only grow.
type Counts struct {
	Sent     uint64 // Messages of this node that were accepted.
	Received uint64 // Messages of other nodes that were delivered, each once.
	Handled  uint64 // Messages that entities of this node have processed, their failures included.
	// Refused counts messages that no entity of this node processed, by [protocol.Code], be they
	// refused before or after they were accepted.
	Refused [protocol.Codes]uint64

	Started     uint64         // Instances whose start began.
	Restarted   uint64         // Instances whose start began in place of one that had failed.
	Passivated  [Causes]uint64 // Instances that stopped although they had not failed and their shard stays, by [Cause].
	Failed      uint64         // Instances that failed at a message or a timer.
	StartFailed uint64         // Instances that could not be started.
	Recalled    uint64         // Entities that began without a message, since they were remembered.

	Snapshots uint64                  // Snapshots that instances gave for a move.
	Restored  uint64                  // Instances that have taken one.
	Forgotten [protocol.Losses]uint64 // Memories that did not come along in a planned move, by [protocol.Loss].
}

// Tally is the sum of the counters and of the present numbers of several cells.
type Tally struct {
	Counts

	Hosted   int // Cells that host.
	Entities int // Entities with a record.
	Stuck    int // Entities that do not return.
	Window   int // Messages of this node that are not acknowledged.
	Transit  int // Messages of other nodes that wait for a home.
	Held     int // Entities elsewhere that take nothing from this node at present.
	// Mailboxes is the number of messages that wait for all entities, and Deepest the
	// largest number that waits for one entity, as the last whole round of [Maintenance.Sweep]
	// found them.
	Mailboxes, Deepest int
}

// Tally adds this cell to t.
func (c *Cell) Tally(t *Tally) {
	t.add(&c.counts)
	if c.place.hosts() {
		t.Hosted++
	}
	t.Transit += c.in.kept()
	c.own.tally(t)
	c.entities.tally(t)
}

// Keep adds the counters of cells that are no more to t.
func (t *Tally) Keep(o *Tally) { t.add(&o.Counts) }

func (c *Counts) add(o *Counts) {
	c.Sent += o.Sent
	c.Received += o.Received
	c.Handled += o.Handled
	for i := range c.Refused {
		c.Refused[i] += o.Refused[i]
	}
	c.Started += o.Started
	c.Restarted += o.Restarted
	for i := range o.Passivated {
		c.Passivated[i] += o.Passivated[i]
	}
	c.Failed += o.Failed
	c.StartFailed += o.StartFailed
	c.Recalled += o.Recalled
	c.Snapshots += o.Snapshots
	c.Restored += o.Restored
	for i := range o.Forgotten {
		c.Forgotten[i] += o.Forgotten[i]
	}
}

// depth is how many messages wait in mailboxes: in all together, and in the fullest.
type depth struct{ sum, most int }

func (d *depth) note(n int) {
	d.sum += n
	d.most = max(d.most, n)
}

// refused counts a refusal, by a code that this version knows.
func (c *Counts) refused(code protocol.Code) { c.Refused[min(int(code), protocol.Codes-1)]++ }
