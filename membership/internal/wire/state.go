// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
	pb "github.com/quorate/quorate/membership/internal/proto/quorate/membership/v1"
)

// A state, a delta and a digest are encoded here, in that order, from the records that
// records.go converts.

func toState(s *gossip.State) *pb.State {
	var t table
	p := s.Parts()
	r := records{
		members: p.Members, tombstones: p.Tombstones, observers: p.Observers, config: &p.Config,
		registers: &gossip.Registers{
			LastUpNumber: p.LastUpNumber, PrunedBefore: p.PrunedBefore, Downing: p.Downing, EpochBorn: p.EpochBorn, Yielded: p.Yielded,
		},
	}
	state := &pb.State{Cluster: toCluster(p.Cluster), Records: t.records(r), Clock: t.clock(p.Clock), Seen: t.set(p.Seen)}
	state.Nodes = t.proto()
	return state
}

func fromState(p *pb.State) (*gossip.State, error) {
	t, err := fromNodes(p.GetNodes())
	if err != nil {
		return nil, err
	}
	r, err := t.fromRecords(p.GetRecords())
	if err != nil {
		return nil, err
	}
	clock, err := t.fromClock(p.GetClock())
	if err != nil {
		return nil, err
	}
	seen, err := t.set(p.GetSeen())
	if err != nil {
		return nil, err
	}
	parts := gossip.Raw{
		Cluster: fromCluster(p.GetCluster()), Members: r.members, Tombstones: r.tombstones,
		Clock: clock, Seen: seen, Observers: r.observers,
	}
	if r.config != nil {
		parts.Config = *r.config
	}
	if r.registers != nil {
		parts.LastUpNumber, parts.PrunedBefore = r.registers.LastUpNumber, r.registers.PrunedBefore
		parts.Downing = r.registers.Downing
		parts.EpochBorn, parts.Yielded = r.registers.EpochBorn, r.registers.Yielded
	}
	return gossip.FromParts(parts)
}

func toDigest(d gossip.Digest) *pb.Digest {
	var t table
	p := &pb.Digest{
		Cluster: toCluster(d.Cluster), Clock: t.clockRef(d.Clock), Version: uint64(d.Version), Seen: uint64(d.Seen),
	}
	p.Nodes = t.proto()
	return p
}

func fromDigest(p *pb.Digest) (gossip.Digest, error) {
	t, err := fromNodes(p.GetNodes())
	if err != nil {
		return gossip.Digest{}, err
	}
	clock, err := t.fromClockRef(p.GetClock())
	if err != nil {
		return gossip.Digest{}, err
	}
	d := gossip.Digest{
		Cluster: fromCluster(p.GetCluster()), Clock: clock,
		Version: gossip.Hash(p.GetVersion()), Seen: gossip.Hash(p.GetSeen()),
	}
	return d, d.Validate()
}

func toDelta(d gossip.Delta) *pb.Delta {
	var t table
	p := &pb.Delta{
		Cluster: toCluster(d.Cluster), Full: d.Full,
		Records: t.records(records{
			members: d.Members, tombstones: d.Tombstones, observers: d.Observers, config: d.Config, registers: d.Registers,
		}),
		From: t.clockRef(d.From), Clock: t.clockRef(d.Clock), Version: uint64(d.Version), Edits: t.edits(d.Edits),
		Seen: t.set(d.Seen),
	}
	p.Nodes = t.proto()
	return p
}

func fromDelta(p *pb.Delta) (gossip.Delta, error) {
	d := gossip.Delta{Cluster: fromCluster(p.GetCluster()), Full: p.GetFull(), Version: gossip.Hash(p.GetVersion())}
	t, err := fromNodes(p.GetNodes())
	if err != nil {
		return d, err
	}
	r, err := t.fromRecords(p.GetRecords())
	if err != nil {
		return d, err
	}
	d.Members, d.Tombstones, d.Observers = r.members, r.tombstones, r.observers
	d.Config, d.Registers = r.config, r.registers
	if d.From, err = t.fromClockRef(p.GetFrom()); err != nil {
		return d, err
	}
	if d.Clock, err = t.fromClockRef(p.GetClock()); err != nil {
		return d, err
	}
	if d.Edits, err = t.fromEdits(p.GetEdits()); err != nil {
		return d, err
	}
	if d.Seen, err = t.set(p.GetSeen()); err != nil {
		return d, err
	}
	return d, d.Validate()
}

func (t *table) clock(entries []gossip.Dot) *pb.Clock {
	p := &pb.Clock{Node: make([]uint32, len(entries)), Count: make([]uint64, len(entries))}
	t.expect = 0
	for i, e := range entries {
		p.Node[i], p.Count[i] = t.place(e.Node), e.Count
	}
	return p
}

func (t nodes) fromClock(p *pb.Clock) ([]gossip.Dot, error) {
	if err := columns("clock entries", len(p.GetNode()), 2*gossip.MaxMembers, len(p.GetCount())); err != nil {
		return nil, err
	}
	if len(p.GetNode()) == 0 {
		return nil, nil
	}
	entries := make([]gossip.Dot, len(p.GetNode()))
	for i, place := range p.GetNode() {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		entries[i] = gossip.Dot{Node: n, Count: p.GetCount()[i]}
	}
	return entries, nil
}

func (t *table) clockRef(r gossip.ClockRef) *pb.ClockRef {
	return &pb.ClockRef{Base: uint64(r.Base), Clock: t.clock(r.Entries)}
}

func (t nodes) fromClockRef(p *pb.ClockRef) (gossip.ClockRef, error) {
	entries, err := t.fromClock(p.GetClock())
	return gossip.ClockRef{Base: gossip.Hash(p.GetBase()), Entries: entries}, err
}

// keyKinds is the factor by which the table index of a node is multiplied in a key.
const keyKinds = 8

func (t *table) edits(edits []gossip.Edited) *pb.Edits {
	p := &pb.Edits{}
	for _, e := range edits {
		p.Node = append(p.Node, t.place(e.Dot.Node))
		p.Count = append(p.Count, e.Dot.Count)
		p.KeyCount = append(p.KeyCount, uint32(len(e.Keys)))
		for _, k := range e.Keys {
			key := uint64(k.Type)
			if !k.Node.IsZero() {
				key += keyKinds * (uint64(t.place(k.Node)) + 1)
			}
			p.Key = append(p.Key, key)
		}
	}
	return p
}

func (t nodes) fromEdits(p *pb.Edits) ([]gossip.Edited, error) {
	if err := columns("edits", len(p.GetNode()), SizeMax, len(p.GetCount()), len(p.GetKeyCount())); err != nil {
		return nil, err
	}
	var edits []gossip.Edited
	rest := p.GetKey()
	for i, place := range p.GetNode() {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		var keys []uint64
		if keys, rest, err = split("keys", rest, p.GetKeyCount()[i]); err != nil {
			return nil, err
		}
		e := gossip.Edited{Dot: gossip.Dot{Node: n, Count: p.GetCount()[i]}}
		for _, k := range keys {
			key := gossip.Key{Type: gossip.KeyType(k % keyKinds)}
			if place := k / keyKinds; place > uint64(len(t)) {
				return nil, wire.Malformed("key of node %d of %d", place, len(t))
			} else if place > 0 {
				key.Node = t[place-1]
			}
			e.Keys = append(e.Keys, key)
		}
		edits = append(edits, e)
	}
	if len(rest) > 0 {
		return nil, wire.Malformed("%d keys of no edit", len(rest))
	}
	return edits, nil
}

// split cuts the first count values off a column.
func split[T any](what string, column []T, count uint32) (first, rest []T, err error) {
	if int64(count) > int64(len(column)) {
		return nil, nil, wire.Malformed("%d %s where %d are left", count, what, len(column))
	}
	return column[:count:count], column[count:], nil
}
