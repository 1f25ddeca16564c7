// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package recall_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// The laws of a desk, and the rules one by one, find each of these defects.
func TestMutantsAreCaught(t *testing.T) {
	const desk, calls, starts, shard = "desk.go", "calls.go", "starts.go", "shard.go"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name, file, old, new string
		tests                []string
	}{
		{name: "what was forgotten begins", file: starts, old: "!gone {", new: "!gone || mutant(NAME) {", tests: []string{"TestWhatWasForgottenDoesNotBegin"}},
		{name: "what was forgotten on its way begins", file: desk, old: "	if op == opForget {\n		delete(s.handed, entity)", new: "	if op == opForget && !mutant(NAME) {\n		delete(s.handed, entity)", tests: []string{"TestWhatIsForgottenOnItsWayDoesNotBegin"}},
		{name: "all begin at once", file: starts, old: "	if d.cfg.Rate > 0 {\n		d.next =", new: "	if d.cfg.Rate > 0 && !mutant(NAME) {\n		d.next =", tests: []string{"TestTheRate"}},
		{name: "what was not used is made up for without end", file: starts, old: "	d.next = max(d.next, now.Add(-startsAhead))\n", new: "	if !mutant(NAME) {\n		d.next = max(d.next, now.Add(-startsAhead))\n	}\n", tests: []string{"TestTheRate"}},
		{name: "an earlier wish follows a later one", file: shard, old: "!later {", new: "!later || mutant(NAME) {", tests: []string{"TestTheLastWishIsWritten"}},
		{name: "what failed is written", file: calls, old: "s.state != changing:\n		d.failure(in.Err, in.Fenced)\n	case in.Err != nil:", new: "s.state != changing:\n		d.failure(in.Err, in.Fenced)\n	case in.Err != nil && !mutant(NAME):"},
		{name: "an answer of an earlier session counts", file: calls, old: "	case s == nil || s.session != in.Session || s.state != changing:", new: "	case s == nil || s.session != in.Session && !mutant(NAME) || s.state != changing:", tests: []string{"TestAnEarlierSessionMeansNothing"}},
		{name: "ids of another shard begin", file: calls, old: `		case d.cfg.Fault(s.id, id) != "":`, new: `		case d.cfg.Fault(s.id, id) != "" && !mutant(NAME):`},
		{name: "more calls than may be", file: calls, old: "d.calls < d.cfg.Calls &&", new: "(d.calls < d.cfg.Calls || mutant(NAME)) &&"},
		{name: "a shard that failed is not opened again", file: calls, old: "	d.retry = min(d.retry, s.again)\n	s.giveBack()", new: "	if !mutant(NAME) {\n		d.retry = min(d.retry, s.again)\n	}\n	s.giveBack()"},
		{name: "a shard that is served again is not read", file: desk, old: "s.known = closed, 0, 0, false\n", new: "s.known = closed, 0, 0, mutant(NAME) && s.known\n"},
		{name: "kept although it was forgotten", file: calls, old: "return s.asked(id) == opForget }", new: "return s.asked(id) == opForget && !mutant(NAME) }", tests: []string{"TestTheLastWishIsWritten"}},
		{name: "the first of all wishes only", file: calls, old: "		d.kept(s, slices.DeleteFunc(", new: "		if mutant(NAME) {\n			s.wishes, s.line = nil, nil\n		}\n		d.kept(s, slices.DeleteFunc("},
		{name: "settled before it is written", file: desk, old: "s.settling && s.writing() == 0 {", new: "s.settling && (s.writing() == 0 || mutant(NAME)) {"},
		{name: "who waits is told again and again", file: calls, old: "wish{id, opRemember, machine.Never}", new: "wish{id, opRemember, map[bool]machine.Instant{true: w.since, false: machine.Never}[mutant(NAME)]}", tests: []string{"TestWhoWaitsIsToldOnce"}},
		{name: "the forgotten are not bounded", file: desk, old: "s.forgets >= ForgetMost {", new: "s.forgets >= ForgetMost && !mutant(NAME) {", tests: []string{"TestWhatIsToBeForgottenIsBounded"}},
	} {
		if m.tests == nil {
			m.tests = []string{"TestLaws"}
		}
		all = append(all, simulationtest.Mutant{Name: m.name, Tests: m.tests, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.new}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
