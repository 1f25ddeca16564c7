// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package shardlog_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// The suite of stores, and the tests of pages, find each of these defects: what they find here they find in any
// other store.
func TestMutantsAreCaught(t *testing.T) {
	const contract, page, store = "TestTheStoreKeepsTheContract", "page.go", "shardlog.go"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name, test, file, old, new string
	}{
		{"what changes nothing is not written", contract, page, "		p.make(c)\n		b = wire", "		if _, there := p.ids[c.id]; mutant(NAME) && there == (c.op == opRemember) {\n			continue\n		}\n		p.make(c)\n		b = wire"},
		{"nothing is forgotten", contract, page, "	case c.op == opForget && there:\n", "	case c.op == opForget && there && !mutant(NAME):\n"},
		{"a later owner is an error as any other", contract, page, "		if errors.Is(err, is.inner) {", "		if errors.Is(err, is.inner) && !(mutant(NAME) && is.outer == remember.ErrFenced) {"},
		{"shards share their pages", contract, store, `strconv.Itoa(shard.Number) + "/"`, `strconv.Itoa(shard.Number*map[bool]int{false: 1, true: 0}[mutant(NAME)]) + "/"`},
		{"numbers of shards share their sets", contract, store, `strconv.Itoa(shard.Of) + "/"`, `strconv.Itoa(shard.Of*map[bool]int{false: 1, true: 0}[mutant(NAME)]) + "/"`},
		{"the first page only is read", contract, store, "		for id := range o.pages[i].ids {", "		for id := range o.pages[i*map[bool]int{false: 1, true: 0}[mutant(NAME)]].ids {"},
		{"a snapshot leaves something out", contract, page, "slices.Sorted(maps.Keys(p.ids)) {\n", "slices.Sorted(maps.Keys(p.ids)) {\n		if mutant(NAME) && len(b) == 0 {\n			b = []byte{1<<3 | 2, 1, 'a'}\n			continue\n		}\n"},
		{"a page is never compacted", "TestAPageIsCompacted", page, "		if p.tail.Due(p.bytes) {", "		if p.tail.Due(p.bytes) && !mutant(NAME) {"},
		{"a page grows without end", "TestAPageThatIsFull", page, "p.bytes+c.size() > p.most {", "p.bytes+c.size() > p.most && !mutant(NAME) {"},
		{"what is forgotten makes no room", "TestAPageThatIsFull", page, "return int(b.op) - int(a.op)", "if mutant(NAME) {\n			return int(a.op) - int(b.op)\n		}\n		return int(b.op) - int(a.op)"},
		{"an empty id is read", "TestRecordsThatCannotBeRead", page, `err == nil && id == "" {`, `err == nil && id == "" && !mutant(NAME) {`},
	} {
		all = append(all, simulationtest.Mutant{Name: m.name, Tests: []string{m.test}, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.new}}})
	}
	simulationtest.RequireFound(t, ".", all)
}
