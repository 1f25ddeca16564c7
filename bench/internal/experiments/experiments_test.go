// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/internal/program"
)

// whole is the program with everything that can be measured.
func whole() program.Program {
	return program.Program{Groups: Groups(), Servers: Servers(), Plugins: Plugins()}
}

// Names are unique, floors are measured before what stands on them, and there is something that measures.
func TestThePlanIsWhole(t *testing.T) {
	require.NoError(t, harness.Whole(Groups()))
}

// The help of the program has a line for each group, and all are known by their names.
func TestTheProgramKnowsAllGroups(t *testing.T) {
	var help, said, listed bytes.Buffer
	require.Zero(t, whole().Main([]string{"-h"}, nil, io.Discard, &help))
	for _, g := range Groups() {
		require.Contains(t, help.String(), "  "+g.Name+" ")
	}
	for line := range strings.Lines(help.String()) {
		require.LessOrEqual(t, len(line), 81, "%s", line)
	}
	require.NotZero(t, whole().Main([]string{"nothing"}, nil, io.Discard, &said))
	require.Contains(t, said.String(), `group "nothing" is not known, there are local, remote`)
	require.Zero(t, whole().Main([]string{"-list", "join"}, nil, &listed, io.Discard))
	require.Contains(t, listed.String(), "join/longest-gap ms")
}
