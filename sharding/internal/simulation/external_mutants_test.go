// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build mutants

package simulation_test

import (
	"testing"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// Each of these defects of the strategy that follows locations makes a seed fail.
func TestExternalMutantsAreCaught(t *testing.T) {
	var all []simulationtest.Mutant
	for _, m := range []struct{ name, old, to string }{
		{"nothing moves to its location", "	if e.limits.RebalanceAbsoluteLimit == 0 {\n", "	if e.limits.RebalanceAbsoluteLimit == 0 || mutant(NAME) {\n"},
		{"what was said first counts", "	t.at[kind][shard] = address\n", "	if mutant(NAME) && t.at[kind][shard] != \"\" {\n		return\n	}\n	t.at[kind][shard] = address\n"},
	} {
		all = append(all, simulationtest.Mutant{
			Name: m.name, Edits: []simulationtest.Edit{{File: "allocation/external.go", Old: m.old, New: m.to}}, Tests: []string{"TestShardsFollowLocationsThatNodesHearLate"},
			Env: []string{"QUORATE_SEEDS=", "QUORATE_SEED=", "QUORATE_FIRST_SEED="},
		})
	}
	simulationtest.RequireFound(t, "../../..", all)
}
