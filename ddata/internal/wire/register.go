// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// The tables of registers and their sets, and of the messages that decide registers.

// zones are the zones of the replicas of a register. Each is written once, before the sets, which refer to it by its
// place: from 1, since place 0 is the empty zone.
type zones struct {
	names  []string
	places map[string]uint32
}

// zonesOf returns the zones of all replicas that a register names.
func zonesOf(r *protocol.Register) *zones {
	z := &zones{places: map[string]uint32{"": 0}}
	z.add(r.Current)
	z.add(r.Next)
	z.add(r.Old)
	for _, h := range r.Held {
		z.add(h.Homes)
		z.add(h.Old)
	}
	for _, x := range r.Resets {
		z.add(x.Spared)
	}
	return z
}

func (z *zones) add(s protocol.Set) {
	for _, replica := range s {
		if _, known := z.places[replica.Zone]; !known {
			z.names = append(z.names, replica.Zone)
			z.places[replica.Zone] = uint32(len(z.names))
		}
	}
}

// register is the table of a register. Fields of a later release are kept, since all replicas have to have the same
// register. A later release may therefore add fields here, and not to the messages inside a register; and these must
// not refer to places of zones, which each writer numbers anew.
func (z *zones) register(m *protocol.Register, c *wire.Codec) {
	wire.Texts(c, 1, &z.names, gossip.MaxRoleBytes, math.MaxInt)
	wire.Uint(c, 2, &m.Lineage.Turn, math.MaxUint32)
	wire.Fixed(c, 3, &m.Lineage.ID)
	wire.Fixed(c, 14, &m.Continues)
	wire.Uint(c, 4, &m.Gen, math.MaxUint64)
	wire.Uint(c, 5, &m.Phase, uint64(protocol.PhaseEnded))
	z.set(c, 6, &m.Current)
	z.set(c, 7, &m.Next)
	z.set(c, 8, &m.Old)
	wire.Uint(c, 9, &m.Swept, math.MaxUint64)
	wire.Fixed(c, 10, &m.Dropped)
	wire.Fixeds(c, 11, &m.Retired, math.MaxInt)
	wire.Messages(c, 12, &m.Held, table.Buckets, z.held, checkHeld)
	wire.Messages(c, 13, &m.Resets, table.Buckets, z.reset, checkReset)
	wire.Keep(c, &m.Unknown, protocol.MaxUnknownBytes)
}

func (z *zones) check(m *protocol.Register) error {
	switch {
	case slices.Contains(z.names, ""):
		return wire.Malformed("a zone without a name")
	case m.Gen == 0 || m.Phase == 0:
		return wire.Malformed("a register of generation %d in phase %d", m.Gen, m.Phase)
	}
	return nil
}

// register is a row with a register that may be absent.
func register(c *wire.Codec, n wire.Number, m **protocol.Register) {
	if !c.At(n) || !c.Reading() && *m == nil {
		return
	}
	z := new(zones)
	if !c.Reading() {
		z = zonesOf(*m)
	}
	wire.Optional(c, n, m, z.register, z.check)
}

// set is a row with a set of replicas, whose zones are written already.
func (z *zones) set(c *wire.Codec, n wire.Number, s *protocol.Set) {
	if !c.At(n) || !c.Reading() && len(*s) == 0 {
		return
	}
	var m columns
	if !c.Reading() {
		m = z.columns(*s)
	}
	if wire.Message(c, n, &m, z.columnsTable) {
		var err error
		*s, err = z.setOf(m)
		c.Fail(err)
	}
}

// columns are the replicas of a set as they are written: their ids, and the places of their zones, none if all zones
// are empty.
type columns struct {
	ids    []protocol.ReplicaID
	places []uint32
}

func (z *zones) columnsTable(m *columns, c *wire.Codec) {
	wire.Fixeds(c, 1, &m.ids, math.MaxInt)
	wire.Uints(c, 2, &m.places, uint64(len(z.names)), math.MaxInt)
}

func (z *zones) columns(s protocol.Set) columns {
	m := columns{make([]protocol.ReplicaID, len(s)), make([]uint32, len(s))}
	some := false
	for i, replica := range s {
		m.ids[i], m.places[i] = replica.ID, z.places[replica.Zone]
		some = some || m.places[i] > 0
	}
	if !some {
		m.places = nil
	}
	return m
}

// setOf returns the set that has the columns.
func (z *zones) setOf(m columns) (protocol.Set, error) {
	if len(m.places) != 0 && len(m.places) != len(m.ids) {
		return nil, wire.Malformed("a set of %d replicas with %d zones", len(m.ids), len(m.places))
	}
	if len(m.ids) == 0 {
		return nil, nil
	}
	s, before := make(protocol.Set, len(m.ids)), protocol.ReplicaID(0)
	for i, id := range m.ids {
		if id <= before {
			return nil, wire.Malformed("a set of replicas out of order")
		}
		before, s[i].ID = id, id
		if len(m.places) > 0 && m.places[i] > 0 {
			s[i].Zone = z.names[m.places[i]-1]
		}
	}
	return s, nil
}

func ballot(m *protocol.Ballot, c *wire.Codec) {
	wire.Uint(c, 1, &m.Round, math.MaxUint32)
	wire.Fixed(c, 2, &m.By)
}

func hello(m *protocol.Hello, c *wire.Codec) {
	wire.Bool(c, 1, &m.Ask)
	wire.Uint(c, 2, &m.Taken, math.MaxUint64)
}

func prepare(m *protocol.Prepare, c *wire.Codec) {
	wire.Uint(c, 1, &m.Slot, math.MaxUint64)
	wire.Sparse(c, 2, &m.Ballot, ballot)
}

func promise(m *protocol.Promise, c *wire.Codec) {
	wire.Uint(c, 1, &m.Slot, math.MaxUint64)
	wire.Sparse(c, 2, &m.Ballot, ballot)
	wire.Bool(c, 3, &m.Refused)
	wire.Sparse(c, 4, &m.Accepted, ballot)
	register(c, 5, &m.Value)
}

func accept(m *protocol.Accept, c *wire.Codec) {
	wire.Uint(c, 1, &m.Slot, math.MaxUint64)
	wire.Sparse(c, 2, &m.Ballot, ballot)
	register(c, 5, &m.Value)
}

// checkAccept refuses a message that has nothing to accept.
func checkAccept(m *protocol.Accept) error {
	if m.Value == nil {
		return wire.Malformed("a register to accept is missing")
	}
	return nil
}

func accepted(m *protocol.Accepted, c *wire.Codec) {
	wire.Uint(c, 1, &m.Slot, math.MaxUint64)
	wire.Sparse(c, 2, &m.Ballot, ballot)
	wire.Bool(c, 3, &m.Refused)
}
