// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package memory_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// The suite finds each of these defects of a store: what it finds here it finds in any other.
func TestMutantsAreCaught(t *testing.T) {
	var all []simulationtest.Mutant
	for _, place := range []struct {
		names    []string
		old, new string
	}{
		{
			names: []string{"a claim of an earlier owner is taken", "a claim is not kept"},
			old:   "if !c.Owner.Less(r.Owner) {",
			new:   `if (!c.Owner.Less(r.Owner) || mutant("a claim of an earlier owner is taken")) && !mutant("a claim is not kept") {`,
		},
		{
			names: []string{"writes of any owner are taken", "writes of any version are taken", "a record that nobody has claimed is written"},
			old:   "there && r.Head == w.Before() {",
			new: `there && r.Head == w.Before() || mutant("writes of any owner are taken") && there && r.Version == w.Expected ||
				mutant("writes of any version are taken") && r.Owner == w.Owner || mutant("a record that nobody has claimed is written") && !there {`,
		},
		{
			names: []string{"a snapshot leaves the events", "a state without bytes is none"},
			old:   "		r.Snapshot, r.Events = cloned(w.Snapshot), nil\n",
			new: `		r.Snapshot = cloned(w.Snapshot)
		if !mutant("a snapshot leaves the events") {
			r.Events = nil
		}
		if mutant("a state without bytes is none") && len(w.Snapshot.Bytes) == 0 {
			r.Snapshot.Form = 0
		}
`,
		},
		{
			names: []string{"events take the place of events"},
			old:   "	for _, e := range w.Events {\n", new: "	if mutant(NAME) {\n		r.Events = nil\n	}\n	for _, e := range w.Events {\n",
		},
		{
			names: []string{"bytes are shared"},
			old:   "func cloned(v store.Value) store.Value {", new: "func cloned(v store.Value) store.Value {\n	if mutant(NAME) {\n		return v\n	}\n",
		},
	} {
		for i, name := range place.names {
			m := simulationtest.Mutant{Name: name, Tests: []string{"TestTheStoreKeepsTheContract"}}
			if i == 0 { // The others are in the same text.
				m.Edits = []simulationtest.Edit{{File: "memory.go", Old: place.old, New: place.new}}
			}
			all = append(all, m)
		}
	}
	simulationtest.RequireFound(t, ".", all)
}
