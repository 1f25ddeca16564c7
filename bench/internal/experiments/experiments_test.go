// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/program"
)

// whole is the program with everything that can be measured.
func whole() program.Program {
	return program.Program{Groups: Groups(), Servers: Servers(), Plugins: Plugins()}
}

// Every floor that a figure names is measured before it in the same group, the names in a
// group are unique, and a process can play the role of each experiment.
func TestThePlanIsWhole(t *testing.T) {
	for _, g := range Groups() {
		names := make(map[string]bool)
		for _, e := range g.Experiments {
			require.NotNil(t, e.Measure, g.Role(e))
			for _, f := range e.Figures {
				require.False(t, names[f.Name], "%s twice in %s", f.Name, g.Name)
				names[f.Name] = true
				require.Contains(t, []string{figure.Higher, figure.Lower}, f.Better)
				for _, floor := range f.Floors {
					require.True(t, names[floor], "%s stands on %s, which is not measured before it", f.Name, floor)
				}
			}
		}
	}
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
