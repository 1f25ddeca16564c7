// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"slices"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/machine/meter"
)

// metricsTable declares what is measured, each metric by a row that reads it. What takes time
// is not in it: [newMetrics] declares the histogram.
func metricsTable() []meter.Row[*collected] {
	return slices.Concat(heldTable(), replicationTable(), faultTable())
}

// heldTable declares what is measured of what a node holds.
func heldTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.UpDown("quorate.ddata.keys", "{key}", "Keys with a value that this node holds.",
			groups(func(g *groupStats) int64 { return int64(g.Entries - g.Tombstones) })),
		meter.UpDown("quorate.ddata.tombstones", "{key}", "Deleted and expired keys that this node has not forgotten yet.",
			groups(func(g *groupStats) int64 { return int64(g.Tombstones) })),
		meter.UpDown("quorate.ddata.memory", "By", "Memory that the keys of this node take, about.",
			groups(func(g *groupStats) int64 { return g.Bytes })),
		meter.UpDown("quorate.ddata.keys.unspread", "{key}", "Keys with local updates that were not sent yet.",
			groups(func(g *groupStats) int64 { return int64(g.Pending) })),
		meter.UpDown("quorate.ddata.operations.waiting", "{operation}", "Operations of this node that wait for replicas.",
			func(c *collected, observe meter.Observer) { observe(int64(c.stats.Waiting)) }),
		meter.UpDown("quorate.ddata.subscribers", "{subscriber}", "Subscriptions on this node.",
			func(c *collected, observe meter.Observer) { observe(int64(c.stats.Subscribers)) }),
	}
}

// replicationTable declares what is measured of the work of replicas with each other.
func replicationTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.Total("quorate.ddata.changes.taken", "{change}", "Changes of other nodes that came as deltas.",
			counted(func(c *protocol.Counts) uint64 { return c.Changes })),
		meter.Total("quorate.ddata.batches.sent", "{batch}", "Batches of local changes that were sent.",
			counted(func(c *protocol.Counts) uint64 { return c.Batches })),
		meter.Total("quorate.ddata.gaps", "{change}", "Changes that came without an earlier one, so that the whole value was asked for.",
			counted(func(c *protocol.Counts) uint64 { return c.Gaps })),
		meter.Total("quorate.ddata.comparisons", "{comparison}", "Comparisons of what two replicas hold that have ended.",
			counted(func(c *protocol.Counts) uint64 { return c.Passes })),
		meter.Total("quorate.ddata.entries.pulled", "{entry}", "Whole values that came by comparisons.",
			counted(func(c *protocol.Counts) uint64 { return c.Pulled })),
		meter.Total("quorate.ddata.repairs", "{read}", "Reads that have written back what differed.",
			counted(func(c *protocol.Counts) uint64 { return c.Repairs })),
		meter.Total("quorate.ddata.sweeps", "{sweep}", "Times that the replicas have forgotten tombstones together.",
			counted(func(c *protocol.Counts) uint64 { return c.Sweeps })),
		meter.Total("quorate.ddata.wipes", "{wipe}", "Times that this node has dropped its copy, to take it over from others anew.",
			counted(func(c *protocol.Counts) uint64 { return c.Wiped })),
	}
}

// faultTable declares what is measured of what goes wrong.
func faultTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.Total("quorate.ddata.messages.malformed", "{message}", "Messages of other nodes that meant nothing.",
			func(c *collected) uint64 { return c.stats.Malformed + c.machine.Malformed }),
		meter.Total("quorate.ddata.messages.broken", "{message}", "Large messages of other nodes of which a part did not come. The replicas repeat what matters.",
			func(c *collected) uint64 { return c.stats.Broken }),
		meter.Total("quorate.ddata.messages.strangers", "{message}", "Messages of nodes that are no members.",
			counted(func(c *protocol.Counts) uint64 { return c.Strangers })),
		meter.Total("quorate.ddata.messages.unsent", "{message}", "Messages that no connection took, or that waited for the store in vain. The replicas repeat what matters.",
			func(c *collected) uint64 { return c.stats.Unsent + c.machine.Unsent }),
		meter.Total("quorate.ddata.changes.stale", "{message}", "Messages with data from before tombstones were forgotten, which were refused.",
			counted(func(c *protocol.Counts) uint64 { return c.Stale })),
		meter.Total("quorate.ddata.changes.refused", "{change}", "Values and changes of other nodes that this node did not take: too large, of another type, or beyond its memory.",
			counted(func(c *protocol.Counts) uint64 { return c.Refused })),
		meter.Total("quorate.ddata.changes.foreign", "{change}", "Values and changes of keys that this node does not hold, which were refused.",
			counted(func(c *protocol.Counts) uint64 { return c.Foreign })),
		meter.Total("quorate.ddata.messages.claims", "{message}", "Messages in the name of a replica that is that of another member: a disk was copied. quorate data groups says which.",
			counted(func(c *protocol.Counts) uint64 { return c.Claims })),
		meter.Total("quorate.ddata.store.older", "{store}", "Times that other nodes remembered more of the store of durable keys than was in it: it was put back to an older state.",
			counted(func(c *protocol.Counts) uint64 { return c.Aged })),
		meter.Total("quorate.ddata.unclean.starts", "{replica}", "Replicas of groups that write behind whose node before did not end in order: they do not count until they have taken in what the others hold.",
			counted(func(c *protocol.Counts) uint64 { return c.Unclean })),
		meter.Total("quorate.ddata.unclean.restored", "{replica}", "Those of them that count again. Where this is less than the starts, quorate data groups says since when, and who is missing.",
			counted(func(c *protocol.Counts) uint64 { return c.Restored })),
		meter.Total("quorate.ddata.quorums.lost", "{group}", "Times that a group of keys had no majority any more, as far as this node knows. The log and quorate data groups say what will or must happen.",
			counted(func(c *protocol.Counts) uint64 { return c.QuorumsLost })),
		meter.Total("quorate.ddata.quorums.forgone", "{group}", "Times that a group of keys in memory went on by itself without replicas that were a majority. What only those held is lost.",
			counted(func(c *protocol.Counts) uint64 { return c.WentOn })),
		meter.Total("quorate.ddata.store.failures", "{batch}", "Batches that the store of durable keys did not take. They are written again.",
			counted(func(c *protocol.Counts) uint64 { return c.StoreFailures })),
	}
}

// groups is a row that shows a number of each group of keys.
func groups(of func(*groupStats) int64) func(*collected, meter.Observer) {
	return func(c *collected, observe meter.Observer) {
		for i := range c.groups {
			observe(of(&c.groups[i]), attrKeys.String(c.groups[i].keys))
		}
	}
}

// counted is a row that shows a number of the machine's.
func counted(of func(*protocol.Counts) uint64) func(*collected) uint64 {
	return func(c *collected) uint64 { return of(&c.machine) }
}
