// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/simulation/simulationtest"
)

// The body of a test over seeds: go test runs the usual ones, QUORATE_SEED=17 go test one.
func ExampleSeeds() {
	_ = func(t *testing.T) {
		first, n := simulationtest.Seeds(t, 40)
		for seed := first; seed < first+n; seed++ {
			w := simulation.New(simulation.Options{Seed: seed})
			simulationtest.RequireRun(t, seed, w.Run(time.Minute))
		}
	}
}
