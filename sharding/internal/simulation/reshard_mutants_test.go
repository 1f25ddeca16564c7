// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// reshardMutants are defects of changes of the number of shards.
var reshardMutants = []mutant{
	{
		test: "TestReshards", name: "retired before the stop is confirmed", file: "control/changes.go",
		old: "		if t.isFormer(id) && s.phase == PhaseOpen {\n",
		new: "		if t.isFormer(id) && (s.phase == PhaseOpen || mutant(NAME) && s.phase == PhaseStopping) {\n",
	},
	{
		test: "TestReshards", name: "what was not delivered is dropped", file: "cell/retire.go",
		old: "		out.add(Action{Op: OpMove, Message: o.message(&v)})\n",
		new: "		if mutant(NAME) && all.Len() == 0 {\n			continue\n		}\n		out.add(Action{Op: OpMove, Message: o.message(&v)})\n",
	},
	{
		test: "TestReshards", name: "handed on out of order", file: "runtime/layouts.go",
		old: "	sl.moved = nil\n",
		new: "	sl.moved = nil\n	if mutant(NAME) {\n		slices.Reverse(moved)\n	}\n",
	},
	{
		test: "TestReshards", name: "a position that is one short", file: "cell/retire.go",
		old: "			return p.Seq\n",
		new: "			if mutant(NAME) {\n				return p.Seq - 1\n			}\n			return p.Seq\n",
	},
	{
		test: "TestReshards", name: "positions that nobody knows taken for none", file: "cell/retire.go",
		old: "	known := r.Known && r.Base == o.place.baseEpoch()\n",
		new: "	known := r.Known && r.Base == o.place.baseEpoch() || mutant(NAME)\n",
	},
	{
		test: "TestReshards", name: "a change of which the next coordinator does not hear", file: "control/host_layouts.go",
		old: "	m.Layouts, m.Past = l.inForce, l.past\n",
		new: "	if mutant(NAME) {\n		return\n	}\n	m.Layouts, m.Past = l.inForce, l.past\n",
	},
	{
		test: "TestReshards", name: "a former shard that gets another home", file: "control/changes.go",
		old: "	return t.isChanging() && id.Layout() == t.former().Number\n",
		new: "	return t.isChanging() && id.Layout() == t.former().Number && !(mutant(NAME) && t.shards.at(id).phase == PhaseOpen)\n",
	},
	{
		test: "TestTheNextCoordinatorGoesOnWithAChange", in: "../control", name: "retirements of which the next coordinator does not hear", file: "control/host_layouts.go",
		old: "		m.Retired = append(m.Retired, l.retired[s])\n",
		new: "		if !mutant(NAME) {\n			m.Retired = append(m.Retired, l.retired[s])\n		}\n",
	},
	{
		test: "TestRelayouts", name: "asks that are not handed on", file: "runtime/layouts.go",
		old: "a != nil && m.Correlation != 0 {\n",
		new: "a != nil && m.Correlation != 0 && !mutant(NAME) {\n",
	},
	{
		test: "TestRelayouts", name: "a region that is refused by a number of the past", file: "control/changes.go",
		old: "(goesByMap || slices.Contains(t.changes.past, shards))\n",
		new: "!mutant(NAME) && (goesByMap || slices.Contains(t.changes.past, shards))\n",
	},
	{
		test: "TestRelayouts", name: "a guess that is not handed on", file: "runtime/layouts.go",
		old: "			r.handOn(&l.slots[i], protocol.RetireShard{})\n",
		new: "			if !mutant(NAME) {\n				r.handOn(&l.slots[i], protocol.RetireShard{})\n			}\n",
	},
	{
		test: "TestPermanentEntitiesRun", name: "permanent entities that do not wait for the former shard", file: "runtime/layouts.go",
		old: "		if former != nil && !former.at(hash).retired.Load() {\n",
		new: "		if former != nil && !former.at(hash).retired.Load() && !mutant(NAME) {\n",
	},
	{
		test: "TestPermanentEntitiesFollowTheNumberOfShards", in: "../..", name: "permanent entities that wait for ever", file: "runtime/layouts.go",
		old: "		r.admit(s.of(protocol.HashOf(id), first), id)\n",
		new: "		if !mutant(NAME) {\n			r.admit(s.of(protocol.HashOf(id), first), id)\n		}\n",
	},
	{
		test: "TestRememberedEntities", name: "taken over before the former shard is retired", file: "remembering/exporter.go",
		old: "		if !n.inForce || m.retired[",
		new: "		if !n.inForce || mutant(NAME) || m.retired[",
	},
	{
		test: "TestRememberedEntities", name: "a change that begins while ids are taken over", file: "control/imports.go",
		old: "	return takes\n",
		new: "	return takes && !mutant(NAME)\n",
	},
	{
		test: "TestRememberedEntities", name: "forgotten while a former set has it", file: "remembering/importer.go",
		old: "return !i.over && s.id.Layout()",
		new: "return !i.over && !mutant(NAME) && s.id.Layout()",
	},
	{
		test: "TestRememberedEntities", name: "written before the index tells of it", file: "remembering/importer.go",
		old: "return uint32(layout) < i.listed }",
		new: "return uint32(layout) < i.listed || mutant(NAME) }",
	},
	{
		test: "TestALateStopWhoseAnswerIsLost", in: "../control", name: "a late stop of which is said once", file: "control/host.go",
		old: "		again = append(again, h.stopped(s))\n",
		new: "		if !mutant(NAME) {\n			again = append(again, h.stopped(s))\n		}\n",
	},
	{
		test: "TestARegionThatMissedMapsHearsOfRetirements", in: "../control", name: "nobody is told again that a shard is retired", file: "control/table.go",
		old: "	for id, s := range t.shards.all() {\n		t.add(&m, id, s)\n	}\n",
		new: "	for id, s := range t.shards.all() {\n		if !mutant(NAME) || s.phase != PhaseRetired {\n			t.add(&m, id, s)\n		}\n	}\n",
	},
	{
		test: "TestARegionThatMissedMapsHearsOfRetirements", in: "../control", name: "a former layout that is dropped before all know", file: "control/coordinator_reshard.go",
		old: "	case untold == 0 && c.table.remaining() == 0:\n",
		new: "	case (untold == 0 || mutant(NAME)) && c.table.remaining() == 0:\n",
		also: []simulationtest.Edit{{
			File: "control/changes.go", Old: "		case s.told == 0 || s.told > version:\n", New: "		case (s.told == 0 || s.told > version) && !mutant(NAME):\n",
		}},
	},
}

// Each of the defects makes the test fail whose seeds must find it.
func TestReshardMutantsAreCaught(t *testing.T) { lookFor(t, reshardMutants) }
