// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package remembering_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// The laws of a machine, and the rules one by one, find each of these defects.
func TestMutantsAreCaught(t *testing.T) {
	const machine, calls, starts, shard, set = "remembering.go", "calls.go", "starts.go", "shard.go", "set.go"
	const importer, exporter, former = "importer.go", "exporter.go", "former.go"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name, file, old, new string
		tests                []string
	}{
		{name: "what was forgotten begins", file: starts, old: "!gone {", new: "!gone || mutant(NAME) {", tests: []string{"TestWhatWasForgottenDoesNotBegin"}},
		{name: "what was forgotten on its way begins", file: machine, old: "	if op == opForget {\n		delete(s.handed, entity)", new: "	if op == opForget && !mutant(NAME) {\n		delete(s.handed, entity)", tests: []string{"TestWhatIsForgottenOnItsWayDoesNotBegin"}},
		{name: "all begin at once", file: starts, old: "	if m.cfg.Rate > 0 {\n		m.next =", new: "	if m.cfg.Rate > 0 && !mutant(NAME) {\n		m.next =", tests: []string{"TestTheRate"}},
		{name: "what was not used is made up for without end", file: starts, old: "	m.next = max(m.next, now.Add(-startsAhead))\n", new: "	if !mutant(NAME) {\n		m.next = max(m.next, now.Add(-startsAhead))\n	}\n", tests: []string{"TestTheRate"}},
		{name: "an earlier wish follows a later one", file: set, old: "!later {", new: "!later || mutant(NAME) {", tests: []string{"TestTheLastWishIsWritten"}},
		{name: "what failed is written", file: calls, old: "s.state != changing:\n		m.failure(in.Err, in.Fenced)\n	case in.Err != nil:", new: "s.state != changing:\n		m.failure(in.Err, in.Fenced)\n	case in.Err != nil && !mutant(NAME):", tests: []string{"TestWhatFailedIsWrittenAgain"}},
		{name: "an answer of an earlier session counts", file: calls, old: "	case s == nil || s.session != in.Session || s.state != changing:", new: "	case s == nil || s.session != in.Session && !mutant(NAME) || s.state != changing:", tests: []string{"TestAnEarlierSessionMeansNothing"}},
		{name: "ids of another shard begin", file: shard, old: `|| !s.owns(id):`, new: `|| !s.owns(id) && !mutant(NAME):`},
		{name: "more calls than may be", file: calls, old: "m.calls < m.cfg.Calls &&", new: "(m.calls < m.cfg.Calls || mutant(NAME)) &&"},
		{name: "a shard that failed is not opened again", file: calls, old: "	m.retry = min(m.retry, s.again)\n	s.giveBack()", new: "	if !mutant(NAME) {\n		m.retry = min(m.retry, s.again)\n	}\n	s.giveBack()"},
		{name: "a shard that is served again is not read", file: machine, old: "s.known, s.stops, s.waited = closed, 0, 0, false, false, nil\n", new: "s.known, s.stops, s.waited = closed, 0, 0, mutant(NAME) && s.known, false, nil\n"},
		{name: "kept although it was forgotten", file: shard, old: "w.waits && s.asked(w.id) != opForget {", new: "w.waits && (s.asked(w.id) != opForget || mutant(NAME)) {", tests: []string{"TestTheLastWishIsWritten"}},
		{name: "the first of all wishes only", file: shard, old: "	s.kept(there, out)\n	if len(none) > 0 {", new: "	if mutant(NAME) {\n		s.requests, s.line = nil, nil\n	}\n	s.kept(there, out)\n	if len(none) > 0 {"},
		{name: "flushed before it is written", file: machine, old: "s.flushing && m.quiet(s) {", new: "s.flushing && (m.quiet(s) || mutant(NAME)) {"},
		{name: "who waits is told again and again", file: shard, old: "			w.since = machine.Never\n", new: "			if !mutant(NAME) {\n				w.since = machine.Never\n			}\n", tests: []string{"TestWhoWaitsIsToldOnce"}},
		{name: "the first shard ends although others wait for the index", file: machine, old: "|| !m.exporter.owes())", new: "|| !m.exporter.owes() || mutant(NAME))", tests: []string{"TestTheFirstShardStaysWhileOthersHaveToWrite"}},
		{name: "forgotten by who gives up before the set is read", file: machine, old: "	case !s.known:\n", new: "	case !s.known && !mutant(NAME):\n", tests: []string{"TestWhoWaitsForTooLongIsRefused"}},
		{name: "forgotten by who gives up though it waited while the shard stopped", file: shard, old: "	_, waited := s.waited[id]\n", new: "	_, waited := s.waited[id]\n	waited = waited && !mutant(NAME)\n", tests: []string{"TestWhoWaitedWhileItsShardStoppedIsNotForgotten"}},
		{name: "written although it was read and begins", file: machine, old: "m.cfg.First && s.begins(entity):", new: "m.cfg.First && s.begins(entity) && !mutant(NAME):", tests: []string{"TestWhoWaitsForTooLongIsRefused"}},
		{name: "forgotten by who gives up although it begins", file: machine, old: "s == nil || s.begins(entity):", new: "s == nil || s.begins(entity) && !mutant(NAME):", tests: []string{"TestWhoWaitsForTooLongIsRefused"}},
		{name: "forgotten by who gives up while a former set has it", file: machine, old: "	case m.importer.holds(s) &&", new: "	case m.importer.holds(s) && !mutant(NAME) &&", tests: []string{"TestWhoIsGivenUpIsLookedForInFormerSets"}},
		{name: "taken out of a former set by who gives up", file: shard, old: "		if s.asked(w.id) != opForget && !w.waits {", new: "		if s.asked(w.id) != opForget && !w.waits || mutant(NAME) {", tests: []string{"TestWhoIsGivenUpIsLookedForInFormerSets"}},
		{name: "the forgotten are not bounded", file: machine, old: "case s.forgets+len(s.held) >= MaxForgets:", new: "case s.forgets+len(s.held) >= MaxForgets && !mutant(NAME):", tests: []string{"TestWhatIsToBeForgottenIsBounded"}},
		{name: "forgotten while a former set has it", file: importer, old: "return !i.over && s.id.Layout()", new: "return !i.over && !mutant(NAME) && s.id.Layout()"},
		{name: "written before the index tells of it", file: importer, old: "return uint32(layout) < i.listed }", new: "return uint32(layout) < i.listed || mutant(NAME) }"},
		{name: "taken out before it is written", file: importer, old: "	s.remember(now, id, false)\n", new: "	s.remember(now, id, false)\n	if mutant(NAME) {\n		i.report(s, id)\n	}\n", tests: []string{"TestWhatIsTakenOverBegins"}},
		{name: "taken over and not written", file: importer, old: "	s.remember(now, id, false)\n", new: "	if !mutant(NAME) {\n		s.remember(now, id, false)\n	}\n"},
		{name: "taken over and not begun", file: importer, old: "	s.await([]string{id})\n", new: "	if !mutant(NAME) {\n		s.await([]string{id})\n	}\n", tests: []string{"TestWhatIsTakenOverBegins"}},
		{name: "an answer to an earlier question counts", file: importer, old: "|| in.Number != i.asked ||", new: "|| in.Number != i.asked && !mutant(NAME) ||", tests: []string{"TestOnlyTheLastQuestionIsAnswered"}},
		{name: "taken over by a shard that stops", file: importer, old: "|| !s.known || s.stops ||", new: "|| !s.known || s.stops && !mutant(NAME) ||", tests: []string{"TestAShardThatStopsTakesNothingOver"}},
		{name: "who waits for the index waits for ever", file: importer, old: "		i.failWaiters(now, out)\n", new: "		if !mutant(NAME) {\n			i.failWaiters(now, out)\n		}\n", tests: []string{"TestWhoWaitsForTheIndexIsRefused"}},
		{name: "the first question is not repeated soon", file: importer, old: "!i.lists(m.present().Number) {", new: "!i.lists(m.present().Number) && !mutant(NAME) {", tests: []string{"TestTheFirstQuestionIsRepeatedSoon"}},
		{name: "given once", file: exporter, old: "		if late.set.has(late.id) {\n", new: "		if late.set.has(late.id) && !mutant(NAME) {\n", tests: []string{"TestWhatWasGivenIsGivenAgain"}},
		{name: "over before it is", file: exporter, old: "Over: len(e.numbers) == 0}", new: "Over: len(e.numbers) == 0 || mutant(NAME)}"},
		{name: "a shard that is not retired is taken over", file: exporter, old: "		if !n.inForce || m.retired[", new: "		if mutant(NAME) || !n.inForce || m.retired[", tests: []string{"TestOnlyRetiredShardsAreTakenOver"}},
		{name: "a shard that retires is forgotten", file: exporter, old: "n != nil && n.inForce {\n		e.permit", new: "n != nil && n.inForce && !mutant(NAME) {\n		e.permit", tests: []string{"TestOnlyRetiredShardsAreTakenOver"}},
		{name: "out of the index before all is empty", file: former, old: "	if n.left == 0 && !n.inForce {", new: "	if (n.left == 0 || mutant(NAME)) && !n.inForce {"},
		{name: "gone although it is there", file: former, old: "	if _, there := f.ids[id]; f.known && !there {", new: "	if _, there := f.ids[id]; f.known && (!there || mutant(NAME)) {"},
		{name: "the index is not written", file: former, old: "			x.put(request{id: textOf(l.Shards), op: opRemember})\n", new: "			if !mutant(NAME) {\n				x.put(request{id: textOf(l.Shards), op: opRemember})\n			}\n"},
	} {
		if m.tests == nil {
			m.tests = []string{"TestLaws"}
		}
		all = append(all, simulationtest.Mutant{Name: m.name, Tests: m.tests, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.new}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
