// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The shards of a control message. They are counted in the first walk over the message, and read in a second one, into
// lists of the length that was counted: those that are retired have no place in some messages.

// fieldShards is the field of a control message with a shard.
const fieldShards = 5

// The states of shards that are retired, above those of hosts: with their positions, and without.
const (
	stateRetired        = uint8(control.Halted) + 1
	stateRetiredUnknown = uint8(control.Halted) + 2
)

// shard is one shard of a control message on the wire.
type shard struct {
	id          protocol.ShardID
	epoch, base protocol.Epoch // The base is left out if it is the epoch.
	state       uint8
	positions   []protocol.Position
	node        uint32
	snapshots   []protocol.Snapshot
}

func (s *shard) fields(c *wire.Codec) {
	wire.Uint(c, 1, &s.id, math.MaxUint32)
	epoch(c, 2, &s.epoch)
	if c.Reading() || s.base != s.epoch {
		epoch(c, 3, &s.base)
	}
	s.stateAlone(c)
	wire.Messages(c, 5, &s.positions, math.MaxInt, position, checkPosition)
	wire.Uint(c, 6, &s.node, math.MaxUint32)
	wire.Messages(c, 7, &s.snapshots, math.MaxInt, snapshot, checkSnapshot)
}

// stateAlone is the part of the table by which shards are counted.
func (s *shard) stateAlone(c *wire.Codec) { wire.Uint(c, 4, &s.state, uint64(stateRetiredUnknown)) }

func position(m *protocol.Position, c *wire.Codec) {
	wire.Node(c, 1, &m.Origin)
	wire.Uint(c, 2, &m.Seq, math.MaxUint64)
}

func checkPosition(m *protocol.Position) error {
	if m.Origin.IsZero() {
		return wire.Malformed("a position without an origin")
	}
	return nil
}

func snapshot(m *protocol.Snapshot, c *wire.Codec) {
	wire.Text(c, 1, &m.Entity, protocol.MaxEntityBytes)
	wire.Data(c, 2, &m.Data, protocol.MaxSnapshotBytes)
	wire.Uint(c, 3, &m.Loss, math.MaxUint8)
}

// checkSnapshot makes a loss that this version does not know one on the way.
func checkSnapshot(m *protocol.Snapshot) error {
	switch {
	case m.Entity == "" || (len(m.Data) > 0) != (m.Loss == protocol.LossNone):
		return wire.Malformed("a memory of no entity, or a loss with one")
	case int(m.Loss) >= protocol.Losses:
		m.Loss = protocol.LossOnTheWay
	}
	return nil
}

// writeAll returns what writes the shards of a message.
func writeAll[T any](all []T, of func(*T) shard) func(*form, *wire.Codec) {
	return func(m *form, c *wire.Codec) {
		for i := range all {
			m.shard = of(&all[i])
			m.write(c)
		}
	}
}

func (m *form) write(c *wire.Codec) { wire.Message(c, fieldShards, &m.shard, (*shard).fields) }

// writeOrCount is a row with the shards that are not retired; those that are are counted too.
func (m *form) writeOrCount(c *wire.Codec) {
	if c.Reading() {
		wire.Stream(c, fieldShards, &m.shard, (*shard).stateAlone, m.count)
	} else if m.shards != nil {
		m.shards(m, c)
	}
}

func (m *form) count(s *shard) error {
	if m.live+m.dead >= 3*protocol.MaxShards { // Two layouts, and one of them retired.
		return wire.Malformed("more than %d shards", 3*protocol.MaxShards)
	}
	if s.state >= stateRetired {
		m.dead++
	} else {
		m.live++
	}
	return nil
}

// writeRetired is a row with the shards that are retired, behind the layouts.
func (m *form) writeRetired(c *wire.Codec) {
	if c.Reading() {
		return
	}
	for _, r := range m.retired {
		m.shard = shard{id: r.Shard, epoch: r.Epoch, base: r.Base, state: stateRetiredUnknown, positions: r.Positions}
		if r.Known {
			m.shard.state = stateRetired
		}
		m.write(c)
	}
}

// eachShard reads the shards that are not retired, and those that are, in their order.
func (m *form) eachShard(live, dead func(*shard) error) error {
	if m.live+m.dead == 0 {
		return nil
	}
	return wire.ReadIn(&m.room, m.in, m, func(m *form, c *wire.Codec) {
		wire.Stream(c, fieldShards, &m.shard, (*shard).fields, func(s *shard) error {
			if s.epoch.IsZero() {
				return wire.Malformed("shard %d without an epoch", s.id)
			}
			if s.base.IsZero() {
				s.base = s.epoch
			}
			if s.state < stateRetired {
				return live(s)
			}
			if s.state != stateRetired && len(s.positions) > 0 {
				return wire.Malformed("shard %d has positions that are not known", s.id)
			}
			return dead(s)
		})
	})
}

// listed returns a list with a value for each shard that is not retired, nil for none. Those that are retired have no
// place in the message.
func listed[T any](m *form, of func(*shard) (T, error)) ([]T, error) {
	all, err := wire.List[T](&m.room, m.live)
	if err != nil {
		return nil, err
	}
	err = m.eachShard(func(s *shard) error {
		v, err := of(s)
		all = append(all, v)
		return err
	}, func(*shard) error { return nil })
	return all, err
}

// listedBoth is listed for a message that has those that are retired too.
func listedBoth[T any](m *form, of func(*shard) (T, error)) ([]T, []control.Retirement, error) {
	all, err := wire.List[T](&m.room, m.live)
	if err != nil {
		return nil, nil, err
	}
	gone, err := wire.List[control.Retirement](&m.room, m.dead)
	if err != nil {
		return nil, nil, err
	}
	err = m.eachShard(func(s *shard) error {
		v, err := of(s)
		all = append(all, v)
		return err
	}, func(s *shard) error {
		known := s.state == stateRetired
		gone = append(gone, control.Retirement{Shard: s.id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Known: known})
		return nil
	})
	return all, gone, err
}
