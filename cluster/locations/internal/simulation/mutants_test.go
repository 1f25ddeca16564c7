// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of locations, of the strategy that follows them or of the replicated data below makes a seed
// fail.
func TestMutantsAreCaught(t *testing.T) {
	const part, external = "cluster/locations/internal/part/part.go", "allocation/external.go"
	const inputs = "ddata/internal/protocol/inputs.go"
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, file, old, to string }{
		{"what a majority has is left out", part, "	return len(others) < len(change)\n", "	return len(others) < len(change) && !mutant(NAME)\n"},
		{"a location that is there stays", part, "was != address {\n", "was != address && !(mutant(NAME) && was != \"\") {\n"},
		{"the first shard has the location of all", part, "	}\n	return p\n", "	}\n	if mutant(NAME) {\n		p = p.Put(at, now, nameOf(0), change[shards[0]])\n	}\n	return p\n"},
		{"shards without a part have no location", part, "	slices.Sort(numbers)\n	return", "	if mutant(NAME) && len(shards) > 0 {\n		return nil\n	}\n	slices.Sort(numbers)\n	return"},
		{"nothing moves to its location", external, "	if e.limits.RebalanceAbsoluteLimit == 0 {\n", "	if e.limits.RebalanceAbsoluteLimit == 0 || mutant(NAME) {\n"},
		{"a majority is one fewer", inputs, "	return min(size, max(size/2+1+l.Extra, l.MinCap))\n", "	if mutant(NAME) {\n		return max(size/2, 1)\n	}\n	return min(size, max(size/2+1+l.Extra, l.MinCap))\n"},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Edits: []simulationtest.Edit{{File: m.file, Old: m.old, New: m.to}}, Tests: []string{"TestShardsFollowTheMapUnderFaults"},
			Env: []string{"QUORATE_SEEDS=40", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	all = append(all, simulationtest.Mutant{
		Name: "a change does not know what was read", Package: "../part", Tests: []string{"TestAChangeWinsOverWhatWasRead"},
		Edits: []simulationtest.Edit{{File: part, Old: "	p = p.Merge(read)\n", New: "	if !mutant(NAME) {\n		p = p.Merge(read)\n	}\n"}},
	})
	simulationtest.RequireFound(t, "../../../..", all)
}
