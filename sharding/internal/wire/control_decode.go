// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Reading a control message: Decode collects the fields, whatever their order, in one value, and counts the shards;
// then message makes the message of the type that one of the fields names, with lists of the length that was counted,
// into which the shards are read one by one. All lists of a message share the room that its bytes give.

// fields holds the fields of any control message.
type fields struct {
	typ          uint8
	kind         string
	term         protocol.Term
	registration control.Registration
	in           []byte // The message.
	room         wire.Room
	shards, gone int // How many shards the message has that are not retired, and that are.
	nodes        []gossip.NodeID
	from, to     uint64
	wanted       []protocol.ShardID
	setting      string
	coordinator  string
	region       string
	settings     control.Settings
	id           uint64
	explanation  control.Explained
	layouts      []protocol.Layout
	past         []uint32
	settled      protocol.Epoch
	follows      bool
	scaling      scaling
	taking       taking
}

// Decode returns the control message that b holds. It keeps no part of b.
func (Codec) Decode(b []byte) (any, error) {
	c := fields{in: b, room: wire.RoomOf(b)}
	if err := wire.Each(b, c.set); err != nil {
		return nil, err
	}
	if c.kind == "" {
		return nil, wire.Malformed("a control message without a kind")
	}
	m, err := c.message()
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (c *fields) set(f *wire.Field) error {
	switch f.Number {
	case 1:
		return wire.Set(&c.typ, f, math.MaxUint8)
	case 2:
		return wire.SetName(&c.kind, f, protocol.MaxKindBytes)
	case 3:
		return setTerm(&c.term, f)
	case 4:
		return setRegistration(&c.registration, f)
	case 5:
		return c.countShard(f)
	case 6:
		return c.addNode(f)
	case 7:
		return wire.Set(&c.from, f, math.MaxUint64)
	case 8:
		return wire.Set(&c.to, f, math.MaxUint64)
	case 9:
		return c.setWanted(f)
	case 10:
		return wire.SetText(&c.setting, f, maxDetail)
	case 11:
		return wire.SetText(&c.coordinator, f, maxDetail)
	case 12:
		return wire.SetText(&c.region, f, maxDetail)
	case 13:
		return setSettings(&c.settings, f)
	case 14:
		return wire.Set(&c.id, f, math.MaxUint64)
	case 15:
		return c.setExplanation(f)
	case 16:
		return c.addLayout(f)
	case 17:
		return setEpoch(&c.settled, f)
	case 18:
		return wire.SetBool(&c.follows, f)
	case fieldGone, fieldEntities, fieldOver:
		return c.taking.set(c, f)
	default:
		return c.scaling.set(f)
	}
}

func setSettings(dst *control.Settings, f *wire.Field) error {
	*dst = control.Settings{}
	return f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.Set(&dst.Shards, f, protocol.MaxShards)
		case 2:
			return wire.SetName(&dst.Hash, f, protocol.MaxKindBytes)
		case 3:
			return wire.SetName(&dst.Codec, f, protocol.MaxKindBytes)
		case 4:
			return wire.SetName(&dst.Role, f, protocol.MaxKindBytes)
		case 5:
			return wire.SetName(&dst.Hosting, f, protocol.MaxKindBytes)
		case 6:
			return wire.SetName(&dst.OnStuck, f, protocol.MaxKindBytes)
		case 7:
			return wire.SetName(&dst.Handoff, f, protocol.MaxKindBytes)
		}
		return nil
	})
}

func setRegistration(dst *control.Registration, f *wire.Field) error {
	*dst = control.Registration{}
	return f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return setSettings(&dst.Settings, f)
		case 2:
			return wire.SetBool(&dst.Proxy, f)
		case 3:
			return wire.SetBool(&dst.Suspended, f)
		case 4:
			return wire.Set(&dst.Capacity, f, math.MaxUint32)
		case 5:
			return wire.Set(&dst.Number, f, math.MaxUint64)
		case 6:
			return wire.SetBool(&dst.Drained, f)
		case 7:
			var ms uint32
			err := wire.Set(&ms, f, uint64(control.MaxAge/time.Millisecond))
			dst.Age = time.Duration(ms) * time.Millisecond
			return err
		case 8:
			return wire.Set(&dst.Load, f, control.LoadFull)
		case 9:
			return wire.Set(&dst.LoadShards, f, 2*protocol.MaxShards*control.LoadShard)
		case fieldRegistrationScale:
			return setScale(&dst.Scale, f)
		case 10:
			return wire.SetBool(&dst.Follows, f)
		case fieldRegistrationTakeover:
			return setTakeover(&dst.Takeover, f)
		}
		return nil
	})
}

// addNode reads a node; the first one makes the list of all.
func (c *fields) addNode(f *wire.Field) (err error) {
	if c.nodes == nil {
		if c.nodes, err = wire.List[gossip.NodeID](&c.room, wire.Count(c.in, f.Number)); err != nil {
			return err
		}
	}
	var id gossip.NodeID
	err = wire.SetNode(&id, f)
	c.nodes = append(c.nodes, id)
	return err
}

// setWanted reads numbers of shards. Each list but the last is one that counts too.
func (c *fields) setWanted(f *wire.Field) error {
	b, err := f.Data(math.MaxInt)
	if err != nil {
		return err
	}
	n := 0 // The last bytes of numbers.
	for _, x := range b {
		if x < 1<<7 {
			n++
		}
	}
	if len(c.wanted)+n > 2*protocol.MaxShards {
		return wire.Malformed("more than %d shards that are looked for", 2*protocol.MaxShards)
	}
	all, err := wire.List[protocol.ShardID](&c.room, len(c.wanted)+n)
	if err != nil {
		return err
	}
	all = append(all, c.wanted...)
	for len(b) > 0 {
		v, n := wire.Varint(b)
		if n == 0 || v > math.MaxUint32 {
			return wire.Malformed("the shards that are looked for")
		}
		all = append(all, protocol.ShardID(v))
		b = b[n:]
	}
	c.wanted = all
	return nil
}

// countShard counts a shard, of which only the state is read.
func (c *fields) countShard(f *wire.Field) error {
	if c.shards+c.gone >= 3*protocol.MaxShards { // Two layouts, and one of them retired.
		return wire.Malformed("more than %d shards", 3*protocol.MaxShards)
	}
	state := uint8(0)
	err := f.Each(func(f *wire.Field) error {
		if f.Number == 4 {
			return wire.Set(&state, f, uint64(stateRetiredUnknown))
		}
		return nil
	})
	if state >= stateRetired {
		c.gone++
	} else {
		c.shards++
	}
	return err
}

// eachShard reads the shards that are not retired, and those that are, in their order.
func (c *fields) eachShard(present, retired func(*shard) error) error {
	if c.shards+c.gone == 0 {
		return nil
	}
	var s shard
	return wire.Each(c.in, func(f *wire.Field) error {
		if f.Number != 5 {
			return nil
		}
		s = shard{in: f.Bytes, room: &c.room}
		if err := f.Each(s.set); err != nil {
			return err
		}
		if s.epoch.IsZero() {
			return wire.Malformed("shard %d without an epoch", s.id)
		}
		if s.base.IsZero() {
			s.base = s.epoch
		}
		if s.state < stateRetired {
			return present(&s)
		}
		if s.state != stateRetired && len(s.positions) > 0 {
			return wire.Malformed("shard %d has positions that are not known", s.id)
		}
		return retired(&s)
	})
}

// listed returns a list with a value for each shard that is not retired, nil for none. Those that are retired have no
// place in the message.
func listed[T any](c *fields, of func(*shard) (T, error)) ([]T, error) {
	all, err := wire.List[T](&c.room, c.shards)
	if err != nil {
		return nil, err
	}
	err = c.eachShard(func(s *shard) error {
		v, err := of(s)
		all = append(all, v)
		return err
	}, func(*shard) error { return nil })
	return all, err
}

// listedBoth is listed for a message that has those that are retired too.
func listedBoth[T any](c *fields, of func(*shard) (T, error)) ([]T, []control.Retirement, error) {
	all, err := wire.List[T](&c.room, c.shards)
	if err != nil {
		return nil, nil, err
	}
	gone, err := wire.List[control.Retirement](&c.room, c.gone)
	if err != nil {
		return nil, nil, err
	}
	err = c.eachShard(func(s *shard) error {
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

// layoutsMost bounds the layouts of a message: those in force, and numbers of the past.
const layoutsMost = 64

// addLayout reads a layout. One without a number is of the past.
func (c *fields) addLayout(f *wire.Field) error {
	var number, shards uint32
	err := f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.Set(&number, f, protocol.MaxLayouts)
		case 2:
			return wire.Set(&shards, f, protocol.MaxShards)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case shards == 0 || len(c.layouts)+len(c.past) >= layoutsMost:
		return wire.Malformed("a layout without shards, or more than %d", layoutsMost)
	case number == 0:
		c.past = append(c.past, shards)
		return nil
	}
	l := protocol.Layout{Number: uint16(number - 1), Shards: shards} // At most MaxLayouts-1.
	if n := len(c.layouts); n > 1 || n == 1 && c.layouts[0].Number >= l.Number {
		return wire.Malformed("more than two layouts in force, or out of order")
	}
	c.layouts = append(c.layouts, l)
	return nil
}

func (s *shard) set(f *wire.Field) error {
	switch f.Number {
	case 1:
		return wire.Set(&s.id, f, math.MaxUint32)
	case 2:
		return setEpoch(&s.epoch, f)
	case 3:
		return setEpoch(&s.base, f)
	case 4:
		return wire.Set(&s.state, f, uint64(stateRetiredUnknown))
	case 5:
		return s.addPosition(f)
	case 6:
		return wire.Set(&s.node, f, math.MaxUint32)
	case 7:
		return s.addSnapshot(f)
	default:
		return nil
	}
}

// addPosition reads a position; the first one makes the list of all.
func (s *shard) addPosition(f *wire.Field) (err error) {
	if s.positions == nil {
		if s.positions, err = wire.List[protocol.Position](s.room, wire.Count(s.in, f.Number)); err != nil {
			return err
		}
	}
	var p protocol.Position
	err = f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.SetNode(&p.Origin, f)
		case 2:
			return wire.Set(&p.Seq, f, math.MaxUint64)
		}
		return nil
	})
	if err == nil && p.Origin.IsZero() {
		err = wire.Malformed("a position without an origin")
	}
	s.positions = append(s.positions, p)
	return err
}

// addSnapshot reads the memory of an entity; the first one makes the list of all. A loss that this version does not
// know is one on the way.
func (s *shard) addSnapshot(f *wire.Field) (err error) {
	if s.snapshots == nil {
		if s.snapshots, err = wire.List[protocol.Snapshot](s.room, wire.Count(s.in, f.Number)); err != nil {
			return err
		}
	}
	var p protocol.Snapshot
	err = f.Each(func(f *wire.Field) error {
		switch f.Number {
		case 1:
			return wire.SetText(&p.Entity, f, protocol.MaxEntityBytes)
		case 2:
			b, err := f.Data(protocol.MaxSnapshotBytes)
			p.Data = slices.Clone(b)
			return err
		case 3:
			return wire.Set(&p.Loss, f, math.MaxUint8)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case p.Entity == "" || (len(p.Data) > 0) != (p.Loss == protocol.LossNone):
		return wire.Malformed("a memory of no entity, or a loss with one")
	case int(p.Loss) >= protocol.Losses:
		p.Loss = protocol.LossOnTheWay
	}
	s.snapshots = append(s.snapshots, p)
	return nil
}

// message returns the message that the fields make up.
func (c *fields) message() (any, error) {
	switch c.typ {
	case typeReport:
		return c.report()
	case typeMap:
		return c.toMap()
	case typeHost:
		shards, err := listed(c, func(s *shard) (control.HostShard, error) {
			return control.HostShard{Shard: s.id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Snapshots: s.snapshots}, nil
		})
		return control.Host{Kind: c.kind, Term: c.term, Scale: c.scaling.current, Shards: shards}, err
	case typeShardsStopped:
		shards, err := listed(c, func(s *shard) (control.StoppedShard, error) {
			return control.StoppedShard{Shard: s.id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Snapshots: s.snapshots}, nil
		})
		return control.ShardsStopped{Kind: c.kind, Term: c.term, Shards: shards}, err
	case typeHosting, typeStop, typeResume, typeRelease, typeResumed:
		return c.ofEpochs()
	}
	nothing := func(*shard) error { return nil }
	if err := c.eachShard(nothing, nothing); err != nil { // Shards that have no place in the message are malformed all the same.
		return nil, err
	}
	return c.withoutShards()
}

func (c *fields) report() (any, error) {
	hosted, retired, err := listedBoth(c, func(s *shard) (h control.Hosted, err error) {
		if s.state == 0 {
			return h, wire.Malformed("a shard without a state")
		}
		return control.Hosted{Shard: s.id, Epoch: s.epoch, Base: s.base, State: control.HostState(s.state)}, nil
	})
	return control.Report{
		Kind: c.kind, Term: c.term, Registration: c.registration, Hosted: hosted, Layouts: c.layouts, Past: c.past, Retired: retired,
	}, err
}

func (c *fields) toMap() (any, error) {
	homes, retired, err := listedBoth(c, func(s *shard) (h control.Home, err error) {
		if int64(s.node) >= int64(len(c.nodes)) {
			return h, wire.Malformed("a home at node %d of %d", s.node, len(c.nodes))
		}
		return control.Home{Shard: s.id, Node: c.nodes[s.node], Epoch: s.epoch, Base: s.base}, nil
	})
	return control.Map{
		Kind: c.kind, Term: c.term, From: c.from, To: c.to,
		Homes: homes, Layouts: c.layouts, Past: c.past, Retired: retired, Settled: c.settled,
	}, err
}

// ofEpochs returns a message of which the shards have an epoch alone.
func (c *fields) ofEpochs() (any, error) {
	shards, err := listed(c, func(s *shard) (control.ShardEpoch, error) {
		return control.ShardEpoch{Shard: s.id, Epoch: s.epoch}, nil
	})
	switch c.typ {
	case typeHosting:
		return control.Hosting{Kind: c.kind, Term: c.term, Shards: shards}, err
	case typeStop:
		return control.Stop{Kind: c.kind, Term: c.term, Shards: shards}, err
	case typeResume:
		return control.Resume{Kind: c.kind, Term: c.term, Shards: shards}, err
	case typeRelease:
		return control.Release{Kind: c.kind, Term: c.term, Shards: shards}, err
	default:
		return control.Resumed{Kind: c.kind, Term: c.term, Shards: shards}, err
	}
}

// withoutShards returns a message that has none.
func (c *fields) withoutShards() (any, error) {
	switch c.typ {
	case typeQuery:
		return control.Query{Kind: c.kind, Term: c.term}, nil
	case typeRefused:
		return control.Refused{Kind: c.kind, Promise: c.term}, nil
	case typeNoRegion:
		return control.NoRegion{Kind: c.kind, Term: c.term, Follows: c.follows}, nil
	case typeNeedMap:
		return control.NeedMap{Kind: c.kind, Term: c.term}, nil
	case typeRegister:
		return control.Register{
			Kind: c.kind, Registration: c.registration, Term: c.term, Version: c.to, Wanted: c.wanted,
		}, nil
	case typeSettingsRefused:
		return control.SettingsRefused{Kind: c.kind, Setting: c.setting, Coordinator: c.coordinator, Region: c.region}, nil
	case typeHandOverRequest:
		return control.HandOver{Kind: c.kind, Settings: c.settings, Message: singleton.Request{}}, nil
	case typeHandOverDone:
		return control.HandOver{Kind: c.kind, Settings: c.settings, Message: singleton.Done{}}, nil
	default:
		return c.asked()
	}
}

// asked returns a question of an operator, or the answer to one.
func (c *fields) asked() (any, error) {
	switch c.typ {
	case typeExplainShard:
		return control.ExplainShard{Kind: c.kind, Shard: c.explanation.Shard, ID: c.id}, nil
	case typeExplained:
		e := c.explanation
		e.Kind, e.Term, e.ID = c.kind, c.term, c.id
		return e, nil
	case typeMoveShard:
		return control.MoveShard{Kind: c.kind, Shard: c.explanation.Shard, To: c.explanation.Target, ID: c.id}, nil
	case typeReshardKind:
		return control.ReshardKind{Kind: c.kind, ID: c.id, Shards: uint32(min(c.to, math.MaxUint32))}, nil // Bounded.
	case typeReshardAnswered:
		return control.ReshardAnswered{Kind: c.kind, ID: c.id, Refusal: c.explanation.Detail}, nil
	case typeMoveAnswered:
		return control.MoveAnswered{Kind: c.kind, Shard: c.explanation.Shard, ID: c.id, Refusal: c.explanation.Detail}, nil
	default:
		return c.scalingMessage()
	}
}
