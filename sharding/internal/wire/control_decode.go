// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"

	"github.com/quorate/quorate/machine/wire"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Reading a control message: Decode reads the fields, whatever their order, into one form, and counts the shards;
// then message makes the message of the type that one of the fields names, with lists of the length that was counted,
// into which the shards are read one by one. All lists of a message share the room that its bytes give.

// Decode returns the control message that b holds. It keeps no part of b.
func (Codec) Decode(b []byte) (any, error) {
	c := &form{in: b, room: wire.BudgetOf(b)}
	if err := wire.ReadIn(&c.room, b, c, (*form).fields); err != nil {
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

// message returns the message that the fields make up.
func (m *form) message() (any, error) {
	inForce, past, err := split(m.layouts)
	if err != nil {
		return nil, err
	}
	switch m.typ {
	case typeReport:
		return m.report(inForce, past)
	case typeMap:
		return m.toMap(inForce, past)
	case typeHost:
		shards, err := listed(m, func(s *shard) (control.HostShard, error) {
			return control.HostShard{Shard: s.id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Snapshots: s.snapshots}, nil
		})
		return control.Host{Kind: m.kind, Term: m.term, Scale: m.scale, Shards: shards}, err
	case typeShardsStopped:
		shards, err := listed(m, func(s *shard) (control.StoppedShard, error) {
			return control.StoppedShard{Shard: s.id, Epoch: s.epoch, Base: s.base, Positions: s.positions, Snapshots: s.snapshots}, nil
		})
		return control.ShardsStopped{Kind: m.kind, Term: m.term, Shards: shards}, err
	case typeHosting, typeStop, typeResume, typeRelease, typeResumed:
		return m.ofEpochs()
	}
	nothing := func(*shard) error { return nil }
	if err := m.eachShard(nothing, nothing); err != nil { // Shards that have no place in the message are malformed all the same.
		return nil, err
	}
	return m.withoutShards()
}

func (m *form) report(inForce []protocol.Layout, past []uint32) (any, error) {
	hosted, retired, err := listedBoth(m, func(s *shard) (h control.Hosted, err error) {
		if s.state == 0 {
			return h, wire.Malformed("a shard without a state")
		}
		return control.Hosted{Shard: s.id, Epoch: s.epoch, Base: s.base, State: control.HostState(s.state)}, nil
	})
	return control.Report{
		Kind: m.kind, Term: m.term, Registration: of(m.registration), Hosted: hosted, Layouts: inForce, Past: past, Retired: retired,
	}, err
}

func (m *form) toMap(inForce []protocol.Layout, past []uint32) (any, error) {
	homes, retired, err := listedBoth(m, func(s *shard) (h control.Home, err error) {
		if int64(s.node) >= int64(len(m.nodes)) {
			return h, wire.Malformed("a home at node %d of %d", s.node, len(m.nodes))
		}
		return control.Home{Shard: s.id, Node: m.nodes[s.node], Epoch: s.epoch, Base: s.base}, nil
	})
	return control.Map{
		Kind: m.kind, Term: m.term, From: m.from, To: m.to,
		Homes: homes, Layouts: inForce, Past: past, Retired: retired, Settled: m.settled,
	}, err
}

// ofEpochs returns a message of which the shards have an epoch alone.
func (m *form) ofEpochs() (any, error) {
	shards, err := listed(m, func(s *shard) (control.ShardEpoch, error) {
		return control.ShardEpoch{Shard: s.id, Epoch: s.epoch}, nil
	})
	switch m.typ {
	case typeHosting:
		return control.Hosting{Kind: m.kind, Term: m.term, Shards: shards}, err
	case typeStop:
		return control.Stop{Kind: m.kind, Term: m.term, Shards: shards}, err
	case typeResume:
		return control.Resume{Kind: m.kind, Term: m.term, Shards: shards}, err
	case typeRelease:
		return control.Release{Kind: m.kind, Term: m.term, Shards: shards}, err
	default:
		return control.Resumed{Kind: m.kind, Term: m.term, Shards: shards}, err
	}
}

// withoutShards returns a message that has none.
func (m *form) withoutShards() (any, error) {
	switch m.typ {
	case typeQuery:
		return control.Query{Kind: m.kind, Term: m.term}, nil
	case typeRefused:
		return control.Refused{Kind: m.kind, Promise: m.term}, nil
	case typeNoRegion:
		return control.NoRegion{Kind: m.kind, Term: m.term, Follows: m.follows}, nil
	case typeNeedMap:
		return control.NeedMap{Kind: m.kind, Term: m.term}, nil
	case typeRegister:
		return control.Register{
			Kind: m.kind, Registration: of(m.registration), Term: m.term, Version: m.to, Wanted: m.wanted,
		}, nil
	case typeSettingsRefused:
		return control.SettingsRefused{Kind: m.kind, Setting: m.setting, Coordinator: m.coordinator, Region: m.region}, nil
	case typeHandOverRequest:
		return control.SingletonMessage{Kind: m.kind, Settings: of(m.settings), Message: singleton.Request{}}, nil
	case typeHandOverDone:
		return control.SingletonMessage{Kind: m.kind, Settings: of(m.settings), Message: singleton.Done{}}, nil
	default:
		return m.asked()
	}
}

// of returns what a pointer points to, the zero value for none.
func of[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

// asked returns a question of an operator, or the answer to one.
func (m *form) asked() (any, error) {
	e := of(m.explanation)
	switch m.typ {
	case typeExplainShard:
		return control.ExplainShard{Kind: m.kind, Shard: e.Shard, ID: m.id}, nil
	case typeExplained:
		e.Kind, e.Term, e.ID = m.kind, m.term, m.id
		return e, nil
	case typeMoveShard:
		return control.MoveShard{Kind: m.kind, Shard: e.Shard, To: e.Target, ID: m.id}, nil
	case typeReshardKind:
		return control.ReshardKind{Kind: m.kind, ID: m.id, Shards: uint32(min(m.to, math.MaxUint32))}, nil // Bounded.
	case typeReshardAnswered:
		return control.ReshardAnswered{Kind: m.kind, ID: m.id, Refusal: e.Detail}, nil
	case typeMoveAnswered:
		return control.MoveAnswered{Kind: m.kind, Shard: e.Shard, ID: m.id, Refusal: e.Detail}, nil
	case typeRescale:
		if m.scale.Revision == 0 {
			return nil, wire.Malformed("a region is told no revision")
		}
		return control.TellScale{Kind: m.kind, Term: m.term, Scale: m.scale}, nil
	case typeScaleTo:
		if m.to > protocol.MaxShards {
			return nil, wire.Malformed("%d shards are to be in use", m.to)
		}
		return control.SetScale{Kind: m.kind, ID: m.id, Base: m.from, Count: uint32(m.to)}, nil
	case typeScaleAnswered:
		a := of(m.answer)
		a.Kind, a.ID, a.Current, a.Next = m.kind, m.id, m.scale, m.next
		return a, nil
	default:
		return m.takeover()
	}
}

// maxTaken bounds the ids of a message in each of its lists.
const maxTaken = 1 << 14

// takeover returns a message by which the ids of remembered entities are taken over from the sets of former layouts.
func (m *form) takeover() (any, error) {
	switch {
	case m.from >= protocol.MaxLayouts:
		return nil, wire.Malformed("a layout of the number %d", m.from)
	case slices.Contains(m.gone, "") || slices.Contains(m.entities, ""):
		return nil, wire.Malformed("the id of an entity is empty")
	}
	layout := uint16(m.from) // Below MaxLayouts.
	switch m.typ {
	case typeTakeOver:
		return control.ImportRequest{Kind: m.kind, Take: protocol.ExportRequest{Layout: layout, Number: m.id, Shards: m.wanted, Gone: m.gone}}, nil
	case typeGivenOver:
		return control.ImportReply{Kind: m.kind, Given: protocol.ExportReply{Layout: layout, Number: m.id, Gone: m.gone, IDs: m.entities, Over: m.over}}, nil
	default:
		return nil, wire.Malformed("a control message of type %d", m.typ)
	}
}
