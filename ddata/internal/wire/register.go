// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math"
	"slices"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/wire"
)

// First registers and their sets, then the messages that decide them.

// The fields of a register.
const (
	registerZone      = 1 // Each zone once, but for the empty one, which has place 0.
	registerTurn      = 2
	registerLineage   = 3
	registerGen       = 4
	registerPhase     = 5
	registerCurrent   = 6
	registerNext      = 7
	registerOld       = 8
	registerSwept     = 9
	registerDropped   = 10
	registerRetired   = 11
	registerHeld      = 12
	registerResets    = 13
	registerContinues = 14
)

// The fields of a set.
const (
	setIDs   = 1
	setZones = 2 // The places of the zones, left out if all are empty.
)

// register appends a field with a register, and nothing for none.
func (e *encoder) register(n wire.Number, r *protocol.Register) {
	if r == nil {
		return
	}
	e.inside(n, func() {
		zones := e.zones(r)
		e.uint(registerTurn, uint64(r.Lineage.Turn))
		e.fixed(registerLineage, r.Lineage.ID)
		e.fixed(registerContinues, r.Continues)
		e.uint(registerGen, r.Gen)
		e.uint(registerPhase, uint64(r.Phase))
		e.set(registerCurrent, r.Current, zones)
		e.set(registerNext, r.Next, zones)
		e.set(registerOld, r.Old, zones)
		e.uint(registerSwept, r.Swept)
		e.fixed(registerDropped, r.Dropped)
		e.b = appendFixeds(e.b, registerRetired, r.Retired)
		for _, h := range r.Held {
			e.inside(registerHeld, func() { e.held(h, zones) })
		}
		for _, x := range r.Resets {
			e.inside(registerResets, func() { e.reset(x, zones) })
		}
	})
}

// zones appends the zones of all replicas that a register names, and returns their places.
func (e *encoder) zones(r *protocol.Register) map[string]uint32 {
	places := map[string]uint32{"": 0}
	sets := []protocol.Set{r.Current, r.Next, r.Old}
	for _, h := range r.Held {
		sets = append(sets, h.Homes, h.Old)
	}
	for _, x := range r.Resets {
		sets = append(sets, x.Spared)
	}
	for _, replica := range slices.Concat(sets...) {
		if _, known := places[replica.Zone]; !known {
			places[replica.Zone] = uint32(len(places))
			e.text(registerZone, replica.Zone)
		}
	}
	return places
}

// set appends a field with a set of replicas, and nothing for an empty one.
func (e *encoder) set(n wire.Number, s protocol.Set, zones map[string]uint32) {
	if len(s) == 0 {
		return
	}
	ids, places, some := make([]uint64, len(s)), make([]uint32, len(s)), false
	for i, replica := range s {
		ids[i], places[i] = uint64(replica.ID), zones[replica.Zone]
		some = some || places[i] > 0
	}
	e.inside(n, func() {
		e.b = appendFixeds(e.b, setIDs, ids)
		if some {
			e.b = appendUints(e.b, setZones, places)
		}
	})
}

// setRegister stores a register.
func setRegister(dst **protocol.Register, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	r, zones := &protocol.Register{}, []string{""}
	if err := fields(b, func(f *wire.Field) error {
		if f.Number == registerZone {
			zone, err := f.Text(gossip.MaxRoleBytes)
			if err == nil && zone == "" {
				err = wire.Malformed("a zone without a name")
			}
			zones = append(zones, zone)
			return err
		}
		return registerField(r, f, zones)
	}); err != nil {
		return err
	}
	if r.Gen == 0 || r.Phase == 0 {
		return wire.Malformed("a register of generation %d in phase %d", r.Gen, r.Phase)
	}
	*dst = r
	return nil
}

func registerField(r *protocol.Register, f *wire.Field, zones []string) error {
	switch f.Number {
	case registerTurn:
		return wire.Set(&r.Lineage.Turn, f, math.MaxUint32)
	case registerLineage:
		return wire.SetFixed(&r.Lineage.ID, f)
	case registerContinues:
		return wire.SetFixed(&r.Continues, f)
	case registerGen:
		return wire.Set(&r.Gen, f, math.MaxUint64)
	case registerPhase:
		return wire.Set(&r.Phase, f, uint64(protocol.PhaseEnded))
	case registerCurrent:
		return setSet(&r.Current, f, zones)
	case registerNext:
		return setSet(&r.Next, f, zones)
	case registerOld:
		return setSet(&r.Old, f, zones)
	case registerSwept:
		return wire.Set(&r.Swept, f, math.MaxUint64)
	case registerDropped:
		return wire.SetFixed(&r.Dropped, f)
	case registerRetired:
		return setFixeds(&r.Retired, f)
	case registerHeld:
		return addHeld(&r.Held, f, zones)
	case registerResets:
		return addReset(&r.Resets, f, zones)
	}
	return nil
}

// setSet stores a set of replicas, of which the zones are named already.
func setSet(dst *protocol.Set, f *wire.Field, zones []string) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	var ids []protocol.ReplicaID
	var places []uint32
	if err := fields(b, func(f *wire.Field) error {
		switch f.Number {
		case setIDs:
			return setFixeds(&ids, f)
		case setZones:
			return setUints(&places, f, uint64(len(zones)-1))
		}
		return nil
	}); err != nil {
		return err
	}
	if len(places) != 0 && len(places) != len(ids) {
		return wire.Malformed("a set of %d replicas with %d zones", len(ids), len(places))
	}
	*dst = nil
	if len(ids) > 0 {
		*dst = make(protocol.Set, len(ids))
	}
	before := protocol.ReplicaID(0)
	for i, id := range ids {
		if id <= before {
			return wire.Malformed("a set of replicas out of order")
		}
		before, (*dst)[i].ID = id, id
		if len(places) > 0 {
			(*dst)[i].Zone = zones[places[i]]
		}
	}
	return nil
}

// The fields of a ballot.
const (
	ballotRound = 1
	ballotBy    = 2
)

// ballot appends a field with a ballot, and nothing for the zero one.
func (e *encoder) ballot(n wire.Number, b protocol.Ballot) {
	if b == (protocol.Ballot{}) {
		return
	}
	e.inside(n, func() {
		e.uint(ballotRound, uint64(b.Round))
		e.fixed(ballotBy, uint64(b.By))
	})
}

// setBallot stores a ballot.
func setBallot(dst *protocol.Ballot, f *wire.Field) error {
	b, err := inner(f)
	if err != nil {
		return err
	}
	return fields(b, func(f *wire.Field) error {
		switch f.Number {
		case ballotRound:
			return wire.Set(&dst.Round, f, math.MaxUint32)
		case ballotBy:
			return wire.SetFixed(&dst.By, f)
		}
		return nil
	})
}

// The fields of a hello.
const (
	helloAsk   = 1
	helloTaken = 2
)

func appendHello(e *encoder, m protocol.Hello) {
	e.flag(helloAsk, m.Ask)
	e.uint(helloTaken, m.Taken)
}

func setHello(_ *decoder, m *protocol.Hello, f *wire.Field) error {
	switch f.Number {
	case helloAsk:
		return wire.SetBool(&m.Ask, f)
	case helloTaken:
		return wire.Set(&m.Taken, f, math.MaxUint64)
	}
	return nil
}

// The fields of the messages of a ballot.
const (
	slot           = 1
	slotBallot     = 2
	slotRefused    = 3
	slotAcceptedBy = 4 // The ballot of the value of a promise.
	slotValue      = 5
)

// slot appends the fields that the messages of a ballot have in common.
func (e *encoder) slot(of uint64, b protocol.Ballot) {
	e.uint(slot, of)
	e.ballot(slotBallot, b)
}

func setSlot(of *uint64, b *protocol.Ballot, f *wire.Field) error {
	switch f.Number {
	case slot:
		return wire.Set(of, f, math.MaxUint64)
	case slotBallot:
		return setBallot(b, f)
	}
	return nil
}

func appendPrepare(e *encoder, m protocol.Prepare) { e.slot(m.Slot, m.Ballot) }

func setPrepare(_ *decoder, m *protocol.Prepare, f *wire.Field) error {
	return setSlot(&m.Slot, &m.Ballot, f)
}

func appendPromise(e *encoder, m protocol.Promise) {
	e.slot(m.Slot, m.Ballot)
	e.flag(slotRefused, m.Refused)
	e.ballot(slotAcceptedBy, m.Accepted)
	e.register(slotValue, m.Value)
}

func setPromise(_ *decoder, m *protocol.Promise, f *wire.Field) error {
	switch f.Number {
	case slotRefused:
		return wire.SetBool(&m.Refused, f)
	case slotAcceptedBy:
		return setBallot(&m.Accepted, f)
	case slotValue:
		return setRegister(&m.Value, f)
	default:
		return setSlot(&m.Slot, &m.Ballot, f)
	}
}

func appendAccept(e *encoder, m protocol.Accept) {
	e.slot(m.Slot, m.Ballot)
	e.register(slotValue, m.Value)
}

func setAccept(_ *decoder, m *protocol.Accept, f *wire.Field) error {
	if f.Number == slotValue {
		return setRegister(&m.Value, f)
	}
	return setSlot(&m.Slot, &m.Ballot, f)
}

// checkAccept refuses a message that has nothing to accept.
func checkAccept(_ *decoder, m *protocol.Accept) error {
	if m.Value == nil {
		return wire.Malformed("a register to accept is missing")
	}
	return nil
}

func appendAccepted(e *encoder, m protocol.Accepted) {
	e.slot(m.Slot, m.Ballot)
	e.flag(slotRefused, m.Refused)
}

func setAccepted(_ *decoder, m *protocol.Accepted, f *wire.Field) error {
	if f.Number == slotRefused {
		return wire.SetBool(&m.Refused, f)
	}
	return setSlot(&m.Slot, &m.Ballot, f)
}
