// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package cell_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of the part that entities take in a limit makes a rule fail. What the seeds find of
// the cell is in package simulation.
func TestMutantsAreCaught(t *testing.T) {
	const limit, sweep = "limit.go", "sweep.go"
	const room, gathered, seat, given, another = "TestWhoMakesRoom", "TestUsesAreGathered", "TestInstancesHaveSeats", "TestWhoIsGivenUpHasNoSeat", "TestAnotherLimiter"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"uses are told after a seat was given", gathered, limit, "	s.tell(true)\n	e.seat = ", "	if !mutant(NAME) {\n		s.tell(true)\n	}\n	e.seat = "},
		{"uses are told after a seat was freed", gathered, limit, "		s.tell(true)\n		s.cfg.Limiter.Leave(e.seat)\n", "		if !mutant(NAME) {\n			s.tell(true)\n		}\n		s.cfg.Limiter.Leave(e.seat)\n"},
		{"uses that must be known may be forgotten", gathered, limit, "		s.cfg.Limiter.Use(s.uses, must)\n", "		s.cfg.Limiter.Use(s.uses, must && !mutant(NAME))\n"},
		{"uses wait for the next seat that is given", gathered, limit, "len(s.uses) >= usesMost {\n", "len(s.uses) >= usesMost && !mutant(NAME) {\n"},
		{"the first message is one more use", gathered, limit, "	if e.is(isFresh) {\n", "	if e.is(isFresh) && !mutant(NAME) {\n"},
		{"who was used since the limiter was told goes", room, limit, "	if !slices.Contains(s.uses, e.seat) {\n", "	if !slices.Contains(s.uses, e.seat) || mutant(NAME) {\n"},
		{"who holds itself goes", room, sweep, "	if _, idle := e.Idle(); !idle || e.is(isHeld) ||", "	if _, idle := e.Idle(); !idle || e.is(isHeld) && !mutant(NAME) ||"},
		{"whose reply waits goes", room, sweep, "e.Withholds() || r.place.isSuspended() {\n		return Busy\n", "e.Withholds() && !mutant(NAME) || r.place.isSuspended() {\n		return Busy\n"},
		{"a node without standing stops somebody", room, sweep, "r.place.isSuspended() {\n		return Busy\n", "r.place.isSuspended() && !mutant(NAME) {\n		return Busy\n"},
		{"a limiter of before has a say", room, sweep, "	if u.r.cfg.Limiter != by ||", "	if u.r.cfg.Limiter != by && !mutant(NAME) ||"},
		{"whoever had the seat before goes", room, sweep, "|| e.seat != s {\n", "|| e.seat != s && !mutant(NAME) {\n"},
		{"who makes room was idle", room, sweep, "	e.set(isEvicted)\n", "	if !mutant(NAME) {\n		e.set(isEvicted)\n	}\n"},
		{"who cannot start keeps its seat", seat, "life.go", "	r.seats.leave(e)\n", "	if !mutant(NAME) {\n		r.seats.leave(e)\n	}\n"},
		{"who was left behind keeps its seat", given, "residents.go", "	r.seats.leave(e)\n	e.set(isReleased)\n", "	if !mutant(NAME) {\n		r.seats.leave(e)\n	}\n	e.set(isReleased)\n"},
		{"who is at work when the home is another one keeps its seat", given, "residents.go", "		e.forgo()\n		r.seats.leave(e)\n", "		e.forgo()\n		if !mutant(NAME) {\n			r.seats.leave(e)\n		}\n"},
		{"who runs stays with the limiter of before", another, sweep, "		r.seats.leave(e)\n", "		if e.seat != 0 && mutant(NAME) {\n			r.seats.tell(true)\n			e.seat = 0\n		}\n		r.seats.leave(e)\n"},
		{"who stops counts for another limiter", another, sweep, "		if e.Live() && !r.permanent(e) {\n", "		if (e.Live() || mutant(NAME)) && !r.permanent(e) {\n"},
		{"who is permanent counts for another limiter", seat, sweep, "&& !r.permanent(e) {\n			r.seats.enter(e)\n", "&& (!r.permanent(e) || mutant(NAME)) {\n			r.seats.enter(e)\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
