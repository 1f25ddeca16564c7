// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// The test program stands in for a program that soaks.
func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// Each seed is a run; see the variables of package simulationtest for others.
func TestWholeNodes(t *testing.T) {
	first, n := simulationtest.Seeds(t, simulationtest.Times)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { Run(t, seed, Nodes(seed)) })
		})
	}
}

// One more seed than the others, as the soak runs it.
func TestARunOutsideOfTests(t *testing.T) {
	virtual, err := Process(1, Nodes(1))
	require.NoError(t, err)
	require.Greater(t, virtual, settled)
}
