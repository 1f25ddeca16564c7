// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// A state, a delta and a digest have a form here, in that order, made of the records that
// records.go converts.

// rawState is the form of a state.
type rawState struct {
	cluster gossip.ClusterID
	nodes   rawNodes
	records rawRecords
	clock   rawClock
	seen    []byte
}

func (p *rawState) fields(c *wire.Codec) {
	wire.Sparse(c, 1, &p.cluster, cluster)
	wire.Message(c, 2, &p.nodes, (*rawNodes).fields)
	wire.Message(c, 3, &p.records, (*rawRecords).fields)
	wire.Message(c, 4, &p.clock, (*rawClock).fields)
	wire.Data(c, 5, &p.seen, math.MaxInt)
}

// state is a row with a state.
func state(c *wire.Codec, n wire.Number, s **gossip.State) {
	if !c.At(n) {
		return
	}
	var p rawState
	if !c.Reading() {
		p = toState(*s)
	}
	if wire.Message(c, n, &p, (*rawState).fields) {
		var err error
		*s, err = fromState(&p)
		c.Fail(err)
	}
}

// present refuses a message without a state, unless a state may be empty.
func present(s **gossip.State) (err error) {
	if *s == nil {
		*s, err = fromState(new(rawState))
	}
	return err
}

func toState(s *gossip.State) rawState {
	var t table
	p := s.Parts()
	r := records{
		members: p.Members, tombstones: p.Tombstones, observers: p.Observers, config: &p.Config,
		registers: &gossip.Registers{
			LastUpNumber: p.LastUpNumber, PrunedBefore: p.PrunedBefore, Downing: p.Downing, EpochBorn: p.EpochBorn, Yielded: p.Yielded,
			Unknown: p.Unknown,
		},
	}
	state := rawState{cluster: p.Cluster, records: t.records(r), clock: t.clock(p.Clock), seen: t.set(p.Seen)}
	state.nodes = t.raw()
	return state
}

func fromState(p *rawState) (*gossip.State, error) {
	t, err := fromNodes(&p.nodes)
	if err != nil {
		return nil, err
	}
	r, err := t.fromRecords(&p.records)
	if err != nil {
		return nil, err
	}
	clock, err := t.fromClock(&p.clock)
	if err != nil {
		return nil, err
	}
	seen, err := t.set(p.seen)
	if err != nil {
		return nil, err
	}
	parts := gossip.Raw{
		Cluster: p.cluster, Members: r.members, Tombstones: r.tombstones,
		Clock: clock, Seen: seen, Observers: r.observers,
	}
	if r.config != nil {
		parts.Config = *r.config
	}
	if r.registers != nil {
		parts.LastUpNumber, parts.PrunedBefore = r.registers.LastUpNumber, r.registers.PrunedBefore
		parts.Downing = r.registers.Downing
		parts.EpochBorn, parts.Yielded, parts.Unknown = r.registers.EpochBorn, r.registers.Yielded, r.registers.Unknown
	}
	return gossip.FromParts(parts)
}

// rawDigest is the form of a digest.
type rawDigest struct {
	d     gossip.Digest // Without the clock.
	nodes rawNodes
	clock rawClockRef
}

func (p *rawDigest) fields(c *wire.Codec) {
	wire.Sparse(c, 1, &p.d.Cluster, cluster)
	wire.Message(c, 2, &p.nodes, (*rawNodes).fields)
	wire.Message(c, 3, &p.clock, (*rawClockRef).fields)
	wire.Fixed(c, 4, &p.d.Version)
	wire.Fixed(c, 5, &p.d.Seen)
}

// digest is a row with a digest, which is not validated.
func digest(c *wire.Codec, n wire.Number, d *gossip.Digest) {
	if !c.At(n) {
		return
	}
	var p rawDigest
	if !c.Reading() {
		var t table
		p = rawDigest{d: *d, clock: t.clockRef(d.Clock)}
		p.nodes = t.raw()
	}
	if wire.Message(c, n, &p, (*rawDigest).fields) {
		t, err := fromNodes(&p.nodes)
		if err == nil {
			p.d.Clock, err = t.fromClockRef(&p.clock)
		}
		*d = p.d
		c.Fail(err)
	}
}

// rawDelta is the form of a delta.
type rawDelta struct {
	d       gossip.Delta // Without what is in the other fields.
	nodes   rawNodes
	from    rawClockRef
	clock   rawClockRef
	seen    []byte
	edits   rawEdits
	records rawRecords
}

func (p *rawDelta) fields(c *wire.Codec) {
	wire.Sparse(c, 1, &p.d.Cluster, cluster)
	wire.Message(c, 2, &p.nodes, (*rawNodes).fields)
	wire.Bool(c, 3, &p.d.Full)
	wire.Message(c, 4, &p.from, (*rawClockRef).fields)
	wire.Message(c, 5, &p.clock, (*rawClockRef).fields)
	wire.Fixed(c, 6, &p.d.Version)
	wire.Data(c, 7, &p.seen, math.MaxInt)
	wire.Message(c, 8, &p.edits, (*rawEdits).fields)
	wire.Message(c, 9, &p.records, (*rawRecords).fields)
}

// delta is a row with a delta, which is not validated.
func delta(c *wire.Codec, n wire.Number, d *gossip.Delta) {
	if !c.At(n) {
		return
	}
	var p rawDelta
	if !c.Reading() {
		p = toDelta(d)
	}
	if wire.Message(c, n, &p, (*rawDelta).fields) {
		c.Fail(p.into(d))
	}
}

func toDelta(d *gossip.Delta) rawDelta {
	var t table
	p := rawDelta{
		d: gossip.Delta{Cluster: d.Cluster, Full: d.Full, Version: d.Version},
		records: t.records(records{
			members: d.Members, tombstones: d.Tombstones, observers: d.Observers, config: d.Config, registers: d.Registers,
		}),
		from: t.clockRef(d.From), clock: t.clockRef(d.Clock), edits: t.edits(d.Edits),
		seen: t.set(d.Seen),
	}
	p.nodes = t.raw()
	return p
}

// into makes a delta of its form.
func (p *rawDelta) into(d *gossip.Delta) error {
	*d = p.d
	t, err := fromNodes(&p.nodes)
	if err != nil {
		return err
	}
	r, err := t.fromRecords(&p.records)
	if err != nil {
		return err
	}
	d.Members, d.Tombstones, d.Observers = r.members, r.tombstones, r.observers
	d.Config, d.Registers = r.config, r.registers
	if d.From, err = t.fromClockRef(&p.from); err != nil {
		return err
	}
	if d.Clock, err = t.fromClockRef(&p.clock); err != nil {
		return err
	}
	if d.Edits, err = t.fromEdits(&p.edits); err != nil {
		return err
	}
	d.Seen, err = t.set(p.seen)
	return err
}

// rawClock are the columns of a clock.
type rawClock struct {
	node  []uint32
	count []uint64
}

func (p *rawClock) fields(c *wire.Codec) {
	wire.Uints(c, 1, &p.node, math.MaxUint32, maxNodes)
	wire.Uints(c, 2, &p.count, math.MaxUint64, maxNodes)
}

func (t *table) clock(entries []gossip.Dot) rawClock {
	p := rawClock{node: make([]uint32, len(entries)), count: make([]uint64, len(entries))}
	t.expect = 0
	for i, e := range entries {
		p.node[i], p.count[i] = t.place(e.Node), e.Count
	}
	return p
}

func (t nodes) fromClock(p *rawClock) ([]gossip.Dot, error) {
	if err := columns("clock entries", len(p.node), 2*gossip.MaxMembers, len(p.count)); err != nil {
		return nil, err
	}
	if len(p.node) == 0 {
		return nil, nil
	}
	entries := make([]gossip.Dot, len(p.node))
	for i, place := range p.node {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		entries[i] = gossip.Dot{Node: n, Count: p.count[i]}
	}
	return entries, nil
}

// rawClockRef is the form of a clock as the difference from another.
type rawClockRef struct {
	base  gossip.Hash
	clock rawClock
}

func (p *rawClockRef) fields(c *wire.Codec) {
	wire.Fixed(c, 1, &p.base)
	wire.Message(c, 2, &p.clock, (*rawClock).fields)
}

func (t *table) clockRef(r gossip.ClockRef) rawClockRef {
	return rawClockRef{r.Base, t.clock(r.Entries)}
}

func (t nodes) fromClockRef(p *rawClockRef) (gossip.ClockRef, error) {
	entries, err := t.fromClock(&p.clock)
	return gossip.ClockRef{Base: p.base, Entries: entries}, err
}

// rawEdits are the columns of edits. The keys of all edits lie together, one edit after the other.
type rawEdits struct {
	node     []uint32
	count    []uint64
	keyCount []uint32
	key      []uint64
}

func (p *rawEdits) fields(c *wire.Codec) {
	wire.Uints(c, 1, &p.node, math.MaxUint32, maxNodes)
	wire.Uints(c, 2, &p.count, math.MaxUint64, maxNodes)
	wire.Uints(c, 3, &p.keyCount, math.MaxUint32, maxNodes)
	wire.Uints(c, 4, &p.key, math.MaxUint64, perMember)
}

// keyKinds is the factor by which the table index of a node is multiplied in a key.
const keyKinds = 8

func (t *table) edits(edits []gossip.Edited) (p rawEdits) {
	for _, e := range edits {
		p.node = append(p.node, t.place(e.Dot.Node))
		p.count = append(p.count, e.Dot.Count)
		p.keyCount = append(p.keyCount, uint32(len(e.Keys)))
		for _, k := range e.Keys {
			key := uint64(k.Type)
			if !k.Node.IsZero() {
				key += keyKinds * (uint64(t.place(k.Node)) + 1)
			}
			p.key = append(p.key, key)
		}
	}
	return p
}

func (t nodes) fromEdits(p *rawEdits) ([]gossip.Edited, error) {
	if err := columns("edits", len(p.node), maxNodes, len(p.count), len(p.keyCount)); err != nil {
		return nil, err
	}
	var edits []gossip.Edited
	rest := p.key
	for i, place := range p.node {
		n, err := t.at(place)
		if err != nil {
			return nil, err
		}
		var keys []uint64
		if keys, rest, err = split("keys", rest, p.keyCount[i]); err != nil {
			return nil, err
		}
		e := gossip.Edited{Dot: gossip.Dot{Node: n, Count: p.count[i]}}
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
