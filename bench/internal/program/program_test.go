// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/figure"
)

// The program in this process: its arguments, its plan, and wrong arguments.

func TestArguments(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.runs)
	for _, g := range o.groups {
		require.False(t, g.Optional)
	}
	o, err = parse([]string{"-runs", "5", "-time", "100ms", "remote", "local"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 5, o.runs)
	require.Equal(t, 100*time.Millisecond, o.time)
	require.Equal(t, "local", o.groups[0].Name, "in the order of the plan")
	require.Equal(t, "remote", o.groups[1].Name)
	for _, wrong := range [][]string{{"-runs", "0"}, {"-runs", "many"}, {"-time", "1ns"}, {"-entities", "-1"}, {"nothing"}, {"-x"}} {
		_, err := parse(wrong, io.Discard)
		require.ErrorIs(t, err, errUsage, "%v", wrong)
	}
	var help bytes.Buffer
	_, err = parse([]string{"-h"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, g := range groupNames() {
		require.Contains(t, help.String(), "  "+g+" ")
	}
	for line := range strings.Lines(help.String()) {
		require.LessOrEqual(t, len(line), 81, "%s", line)
	}
}

// Every floor that a figure names is measured before it in the same group, the names in a
// group are unique, and a process can play the role of each experiment.
func TestThePlanIsWhole(t *testing.T) {
	for _, g := range groups() {
		names := make(map[string]bool)
		for _, e := range g.Experiments {
			require.Contains(t, allRoles().Measurers, e.Spec.Role)
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

func TestWrongArgumentsExitWithTwo(t *testing.T) {
	var said bytes.Buffer
	require.Equal(t, statusUsage, Main([]string{"nothing"}, nil, io.Discard, &said))
	require.Contains(t, said.String(), `group "nothing" is not known, there are local, remote`)
	require.Equal(t, statusOK, Main([]string{"-h"}, nil, io.Discard, io.Discard))
	var listed bytes.Buffer
	require.Equal(t, statusOK, Main([]string{"-list", "join"}, nil, &listed, io.Discard))
	require.Contains(t, listed.String(), "join/longest-gap ms")
}
