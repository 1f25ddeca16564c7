// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulationtest is for the tests of those who simulate: it chooses the seeds that a
// test runs, says how a run that failed is repeated, and puts defects into the code that the
// tests must find.
//
//	func TestChaos(t *testing.T) {
//		first, n := simulationtest.Seeds(t, 40)
//		for seed := first; seed < first+n; seed++ {
//			simulationtest.RequireRun(t, seed, chaos(seed))
//		}
//	}
//
// A test runs its usual seeds, and others with the environment:
//
//	QUORATE_SEEDS=300 QUORATE_FIRST_SEED=1000 go test -run TestChaos .
//	QUORATE_SEED=17 go test -run TestChaos .
//
// How many seeds are usual may follow from what their worlds do, see [Within], and is [Times] as much with the
// build tag seeds.
//
// # Defects
//
// A check that nothing turns red proves nothing. [RequireFound] builds the tests of a package
// over copies of the code with one defect each, a [Mutant], and has them look for it:
//
//	simulationtest.RequireFound(t, "../protocol", []simulationtest.Mutant{{
//		Name: "no promise", Tests: []string{"TestChaos"},
//		Edits: []simulationtest.Edit{{File: "vote.go", Old: "if b <= promised {", New: "if b < 0 {"}},
//	}})
//
// It needs the source and the go command, and takes the seconds of a build: a build tag keeps
// it out of the usual tests.
//
// Nothing here keeps state.
package simulationtest
