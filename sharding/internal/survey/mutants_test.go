// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package survey_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects makes a law fail, or a test of the machine.
func TestMutantsAreCaught(t *testing.T) {
	const twice, once, last = "TestNobodyIsToldTwice", "TestPagesHaveEveryEntityOnce", "TestFormerShardsAreToldLast"
	const broadcast, page, machine = "broadcast.go", "page.go", "machine.go"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, test, file, old, to string }{
		{"who has moved away counts as told", twice, broadcast, "	if t.Away {\n", "	if t.Away && !mutant(NAME) {\n"},
		{"homes that do not answer are asked again", twice, broadcast, "	if m.Unasked {\n", "	if m.Unasked || mutant(NAME) {\n"},
		{"homes that say nothing of a shard are asked again", twice, broadcast, "				b.open[p.Shard] = false\n				b.result.Lost++\n			}\n		}\n	}\n	b.asked = nil\n", "				b.open[p.Shard] = mutant(NAME)\n				b.result.Lost++\n			}\n		}\n	}\n	b.asked = nil\n"},
		{"who was not asked is given up", twice, broadcast, "	b.result.Missing = append(b.result.Missing, m)\n", "	b.result.Missing = append(b.result.Missing, m)\n	m.Unasked = m.Unasked && !mutant(NAME)\n"},
		{"former shards are told with the next ones", last, broadcast, "return all[max(first, 0):]", "if mutant(NAME) {\n		return all\n	}\n	return all[max(first, 0):]"},
		{"what one node has not listed is left out", once, page, "	if end != nil {\n", "	if end != nil && !mutant(NAME) {\n"},
		{"who moves is listed twice", once, page, "return a.At == b.At })", "return a.At == b.At && !mutant(NAME) })"},
		{"a full page says that there is no more", once, page, "	p.more = true\n	return false\n", "	p.more = !mutant(NAME)\n	return false\n"},
		{"a page keeps what came first", once, page, "	if !p.isFull() || at.Less(p.all[len(p.all)-1].At) {\n", "	if !p.isFull() || !mutant(NAME) && at.Less(p.all[len(p.all)-1].At) {\n"},
		{"a question is acted upon twice", "TestWhatIsServed", machine, "	if m.seen[name] {\n", "	if m.seen[name] && !mutant(NAME) {\n"},
		{"any number of questions are served at once", "TestWhatIsServed", machine, "	if len(m.serving) >= maxServed {\n", "	if len(m.serving) >= maxServed && !mutant(NAME) {\n"},
		{"the answer to another question counts", "TestAnswersAreCollected", machine, "!waits || id != answer.ID {", "!waits || id != answer.ID && !mutant(NAME) {"},
		{"who leaves is waited for", "TestSilenceHasAnEnd", machine, "m.state.Member(node) == nil {", "m.state.Member(node) == nil && !mutant(NAME) {"},
		{"a limit that is over ends nothing", "TestSilenceHasAnEnd", machine, "	i := slices.IndexFunc(m.asks, func(a *asking) bool { return a.ID == id })\n", "	i := slices.IndexFunc(m.asks, func(a *asking) bool { return a.ID == id && !mutant(NAME) })\n"},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Package: ".", Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
