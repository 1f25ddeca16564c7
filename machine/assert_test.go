// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
)

// An invariant that is broken ends the program with what was found. One that holds costs no
// memory, though its values are written down: invariants are stated where each message passes.
func TestAnInvariantThatHoldsAllocatesNothing(t *testing.T) {
	given, part := 7, &machine.Violation{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		machine.Assert(given == 7, "what is given is seven", "given", given, "part", part)
	}))
	require.PanicsWithError(t, "broken invariant: what is given is eight given=7", func() {
		machine.Assert(given == 8, "what is given is eight", "given", given)
	})
}
