// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// The seeds of the scenario of remembered entities find each of these defects of cells and of what they have
// remembered; what a planned move owes to a store that is slow finds the test of a cluster.
func TestRememberMutantsAreCaught(t *testing.T) {
	const seeds, remember, home = "TestRememberedEntities", "cell/remember.go", "cell/home.go"
	var all []simulationtest.Mutant
	for _, m := range []simulationtest.Mutant{
		{Name: "a rest that is forgotten", Edits: []simulationtest.Edit{{File: remember, Old: "		m.alarm.at(m.next, out)\n		return false\n", New: "		if !mutant(NAME) {\n			m.alarm.at(m.next, out)\n		}\n		return false\n"}}, Env: []string{"QUORATE_FIRST_SEED=100"}},
		{Name: "served after the first start", Edits: []simulationtest.Edit{
			{File: home, Old: "	c.entities.remembering.serve() // Before the first entity begins.\n", New: "	if !mutant(NAME) {\n		c.entities.remembering.serve()\n	}\n"},
			{File: home, Old: "	c.entities.keepUp(now, out)\n}\n", New: "	c.entities.keepUp(now, out)\n	if mutant(NAME) {\n		c.entities.remembering.serve()\n	}\n}\n"},
		}},
		{Name: "a stop for good that nobody is told of", Edits: []simulationtest.Edit{{File: remember, Old: "		e.epoch = nil\n		m.cfg.Rememberer.Forget(", New: "		e.epoch = nil\n		if mutant(NAME) {\n			return\n		}\n		m.cfg.Rememberer.Forget("}}},
		{Name: "a stop for a move is one for good", Edits: []simulationtest.Edit{{File: remember, Old: "	if m.on() && why != StopPassivated {\n", New: "	if m.on() && mutant(NAME) && why == StopMoved {\n		e.set(isForGood)\n	} else if m.on() && why != StopPassivated {\n"}}},
		{
			Name: "a move that is called off is a stop for good", Package: "../cell", Tests: []string{"TestOnlyWhoAsksIsForgotten"},
			Edits: []simulationtest.Edit{{File: "cell/stop.go", Old: "	if e.is(isPassivate) {\n		r.remembering", New: "	if e.is(isPassivate) || mutant(NAME) {\n		r.remembering"}},
		},
		{Name: "nobody is told of a start", Edits: []simulationtest.Edit{{File: remember, Old: "	if m.on() && e.epoch == nil {\n		m.cfg", New: "	if m.on() && e.epoch == nil && !mutant(NAME) {\n		m.cfg"}}},
		{Name: "the first message does not wait", Edits: []simulationtest.Edit{{File: remember, Old: "!m.cfg.RememberFirst || e.epoch != nil {", New: "!m.cfg.RememberFirst || e.epoch != nil || mutant(NAME) {"}}},
		{Name: "one that runs is given up", Package: "../cell", Tests: []string{"TestWhoRunsIsNotGivenUp"}, Edits: []simulationtest.Edit{{File: remember, Old: "		if e != nil && e.epoch != nil {\n			continue", New: "		if e != nil && e.epoch != nil && !mutant(NAME) {\n			continue"}}},
		{Name: "an entity that failed is passive", Edits: []simulationtest.Edit{{File: "cell/entitytable.go", Old: "	return r.remembering.runs(e) ||", New: "	return r.remembering.runs(e) && !(mutant(NAME) && e.state == entityFailed) ||"}}},
		{Name: "a restart that ends when half have begun", Edits: []simulationtest.Edit{{File: remember, Old: "	for _, id := range ids {\n		e := r.entity(id)\n		if e == nil {\n			e = r.create(id)", New: "	for i, id := range ids {\n		if mutant(NAME) && i > 0 {\n			break\n		}\n		e := r.entity(id)\n		if e == nil {\n			e = r.create(id)"}}},
		{
			Name: "a move that does not wait for what is to be written", Package: "../..", Tests: []string{"TestAMoveWaitsForWhatIsToBeWritten"},
			Edits: []simulationtest.Edit{{File: remember, Old: "!m.on() || m.hasty ||", New: "!m.on() || m.hasty || mutant(NAME) ||"}},
		},
	} {
		if m.Tests == nil {
			m.Tests = []string{seeds}
			m.Env = append([]string{"QUORATE_SEEDS=60", "QUORATE_SEED=", "QUORATE_FIRST_SEED="}, m.Env...)
		}
		all = append(all, m)
	}
	simulationtest.RequireFound(t, "..", all)
}
