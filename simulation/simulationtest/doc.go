// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulationtest is for the tests of those who simulate: it chooses the seeds that a
// test runs, and says how a run that failed is repeated.
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
// Nothing here keeps state.
package simulationtest
