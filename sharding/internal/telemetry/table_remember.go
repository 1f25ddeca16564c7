// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/sharding/internal/remembering"
)

// rememberTable declares what is measured of entities that are remembered.
func rememberTable() []meter.Row[*Collected] {
	return []meter.Row[*Collected]{
		meter.UpDown("quorate.sharding.remembered.starting", "{entity}", "Remembered entities of this node that wait to begin, see sharding.remember.recovery-rate.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Starting)) })),
		meter.UpDown("quorate.sharding.remembered.unwritten", "{id}", "Ids of entities that are to be written to the store of remembered entities.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Writing)) })),
		meter.UpDown("quorate.sharding.remembered.shards.faulty", "{shard}", "Shards of this node whose last call of the store of remembered entities has failed.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Faulty)) })),
		meter.UpDown("quorate.sharding.remembered.former", "{set}", "Sets of a former number of shards that this node gives away, and that are not known to be empty: 0 on all nodes but one, and on that one when all is taken over.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Former)) })),
		meter.Counter("quorate.sharding.remembered.taken", "{id}", "Ids that this node has taken over from sets of a former number of shards.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Taken)) })),
		meter.Counter("quorate.sharding.remembered.started", "{entity}", "Entities that were to begin without a message, since they were remembered.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Started)) })),
		meter.Counter("quorate.sharding.remembered.written", "{id}", "Ids of entities that the store of remembered entities has taken, or has given up.",
			remembers(func(s remembering.Stats, observe meter.Observer) {
				observe(int64(s.Remembered), attrChange.String("remember"))
				observe(int64(s.Forgotten), attrChange.String("forget"))
			})),
		meter.Counter("quorate.sharding.remembered.calls", "{call}", "Calls of the store of remembered entities.",
			remembers(func(s remembering.Stats, observe meter.Observer) { observe(int64(s.Calls)) })),
		meter.Counter("quorate.sharding.remembered.faults", "{fault}",
			"Calls of the store of remembered entities that have failed, of these those that a later owner has locked out (fenced); entities whose first message was refused since the store did not take them in time (refused); ids that were given up since the hosting had ended (unwritten) or too many waited (overflowed), or the store has no room (full); ids in the store that are not of their shard, each time they were read (foreign).",
			remembers(func(s remembering.Stats, observe meter.Observer) {
				for _, f := range []struct {
					name string
					n    uint64
				}{
					{"failed", s.Failed},
					{"fenced", s.Fenced},
					{"refused", s.Unkept},
					{"unwritten", s.Unwritten},
					{"overflowed", s.Overflowed},
					{"full", s.Full},
					{"foreign", s.Foreign},
				} {
					observe(int64(f.n), meter.Fault.String(f.name))
				}
			})),
	}
}

// remembers is a row that shows the same of each kind that remembers its entities.
func remembers(of func(remembering.Stats, meter.Observer)) func(*Collected, meter.Observer) {
	return func(c *Collected, observe meter.Observer) {
		for i := range c.Kinds {
			if k := &c.Kinds[i]; k.Remembered {
				of(k.Remembers, ofKind(k.Kind, observe))
			}
		}
	}
}
