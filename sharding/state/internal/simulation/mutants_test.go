// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of the store, or of what decides about its answers, makes a seed fail.
func TestMutantsAreCaught(t *testing.T) {
	const memory, hold = "memory/memory.go", "hold/hold.go"
	var all []simulationtest.Mutant
	for _, m := range []struct {
		name  string
		edits []simulationtest.Edit
	}{
		{"writes of any owner are taken", []simulationtest.Edit{
			{File: memory, Old: "there && r.Head == w.Before() {", New: "there && (r.Head == w.Before() || mutant(NAME) && r.Version == w.Expected) {"},
		}},
		{"a claim changes nothing", []simulationtest.Edit{
			{File: memory, Old: "if !c.Owner.Less(r.Owner) {", New: "if !c.Owner.Less(r.Owner) && !mutant(NAME) {"},
			{
				File: memory, Old: "		heads[i] = r.Head\n",
				New: "		if mutant(NAME) && r.Version == w.Expected && !w.Owner.Less(r.Owner) {\n			r.Owner = w.Owner\n			r = changed(r, w)\n			s.records[w.Key] = r\n		}\n" +
					"		heads[i] = r.Head\n",
			},
		}},
		{"a claim of an earlier owner is taken", []simulationtest.Edit{
			{File: memory, Old: "		r := s.records[c.Key]\n", New: "		r := s.records[c.Key]\n		if mutant(NAME) {\n			r.Owner = c.Owner\n			s.records[c.Key] = r\n		}\n"},
		}},
		{"writes of any version are taken", []simulationtest.Edit{
			{File: memory, Old: "r, there := s.records[w.Key]", New: "r, there := s.records[w.Key]\n		if mutant(NAME) && r.Owner == w.Owner {\n			w.Expected = r.Version\n		}"},
		}},
		{"a write whose answer was lost counts as refused", []simulationtest.Edit{
			{File: hold, Old: "	h.attempts = 0\n", New: "	again := h.attempts > 0 && mutant(NAME)\n	h.attempts = 0\n"},
			{File: hold, Old: "head == h.write.After():", New: "head == h.write.After() && !again:"},
		}},
		{"the instances of a home are not told apart", []simulationtest.Edit{
			{File: hold, Old: "	return &Hold{cfg: cfg,", New: "	if mutant(NAME) {\n		owner.Instance = 1\n	}\n	return &Hold{cfg: cfg,"},
		}},
		{"a refused write counts as written", []simulationtest.Edit{
			{File: hold, Old: "		h.err = ErrFenced\n", New: "		if mutant(NAME) && h.claimed {\n			h.expected = h.write.Version\n			break\n		}\n		h.err = ErrFenced\n"},
		}},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Edits: m.edits, Tests: []string{"TestOwnersUnderFaults"},
			Env: []string{"QUORATE_SEEDS=60", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	simulationtest.RequireFound(t, "../..", all)
}
