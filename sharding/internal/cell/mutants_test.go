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
	const room, gathered, handle, given, another = "TestWhoMakesRoom", "TestUsesAreGathered", "TestInstancesHaveHandles", "TestWhoIsGivenUpHasNoHandle", "TestAnotherLimiter"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"uses are told after a handle was given", gathered, limit, "	s.tell(true)\n	e.handle = ", "	if !mutant(NAME) {\n		s.tell(true)\n	}\n	e.handle = "},
		{"uses are told after a handle was freed", gathered, limit, "		s.tell(true)\n		s.cfg.Limiter.Leave(e.handle)\n", "		if !mutant(NAME) {\n			s.tell(true)\n		}\n		s.cfg.Limiter.Leave(e.handle)\n"},
		{"uses that must be known may be forgotten", gathered, limit, "		s.cfg.Limiter.Use(s.uses, must)\n", "		s.cfg.Limiter.Use(s.uses, must && !mutant(NAME))\n"},
		{"uses wait for the next handle that is given", gathered, limit, "len(s.uses) >= maxUses {\n", "len(s.uses) >= maxUses && !mutant(NAME) {\n"},
		{"the first message is one more use", gathered, limit, "	if e.is(isFresh) {\n", "	if e.is(isFresh) && !mutant(NAME) {\n"},
		{"who was used since the limiter was told goes", room, limit, "	if !slices.Contains(s.uses, e.handle) {\n", "	if !slices.Contains(s.uses, e.handle) || mutant(NAME) {\n"},
		{"who holds itself goes", room, sweep, "	if _, idle := e.Idle(); !idle || e.is(isHeld) ||", "	if _, idle := e.Idle(); !idle || e.is(isHeld) && !mutant(NAME) ||"},
		{"whose reply waits goes", room, sweep, "e.Withholds() || r.place.isSuspended() {\n		return Busy\n", "e.Withholds() && !mutant(NAME) || r.place.isSuspended() {\n		return Busy\n"},
		{"a node without standing stops somebody", room, sweep, "r.place.isSuspended() {\n		return Busy\n", "r.place.isSuspended() && !mutant(NAME) {\n		return Busy\n"},
		{"a limiter of before has a say", room, sweep, "	if r.cfg.Limiter != by ||", "	if r.cfg.Limiter != by && !mutant(NAME) ||"},
		{"whoever had the handle before goes", room, sweep, "|| e.handle != s {\n", "|| e.handle != s && !mutant(NAME) {\n"},
		{"who makes room was idle", room, sweep, "	e.set(isEvicted)\n", "	if !mutant(NAME) {\n		e.set(isEvicted)\n	}\n"},
		{"who cannot start keeps its handle", handle, "instances.go", "	r.limiter.leave(e)\n", "	if !mutant(NAME) {\n		r.limiter.leave(e)\n	}\n"},
		{"who was left behind keeps its handle", given, "entitytable.go", "	r.limiter.leave(e)\n	e.set(isReleased)\n", "	if !mutant(NAME) {\n		r.limiter.leave(e)\n	}\n	e.set(isReleased)\n"},
		{"who is at work when the home is another one keeps its handle", given, "entitytable.go", "		e.dropReply()\n		r.limiter.leave(e)\n", "		e.dropReply()\n		if !mutant(NAME) {\n			r.limiter.leave(e)\n		}\n"},
		{"who runs stays with the limiter of before", another, sweep, "		r.limiter.leave(e)\n", "		if e.handle != 0 && mutant(NAME) {\n			r.limiter.tell(true)\n			e.handle = 0\n		}\n		r.limiter.leave(e)\n"},
		{"who stops counts for another limiter", another, sweep, "e.Live() && !r.permanent(e) {\n", "(e.Live() || mutant(NAME)) && !r.permanent(e) {\n"},
		{"who is permanent counts for another limiter", handle, sweep, "&& !r.permanent(e) {\n			r.limiter.enter(e)\n", "&& (!r.permanent(e) || mutant(NAME)) {\n			r.limiter.enter(e)\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
