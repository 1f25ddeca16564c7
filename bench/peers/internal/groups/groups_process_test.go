// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package groups

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/internal/program"
	"github.com/quorate/quorate/internal/patience"
)

// TestMain lets the test program play the roles of the processes that a test starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == harness.RoleFlag {
		os.Exit(whole().Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// run measures experiments of a group once, for as short a time as possible, and demands that each has a value and that
// the messages of each are right.
func run(t *testing.T, g harness.Group, only ...string) {
	t.Helper()
	t.Parallel() // It waits most of its time.
	patience.Watch(t)
	g.Experiments = slices.DeleteFunc(g.Experiments, func(e harness.Experiment) bool { return !slices.Contains(only, e.Figures[0].Name) })
	require.Len(t, g.Experiments, len(only))
	var out, said bytes.Buffer
	p := program.Program{Groups: []harness.Group{g}}
	require.Zero(t, p.Main([]string{"-runs", "1", "-time", "100ms", "-entities", "8", g.Name}, nil, &out, &said), said.String())
	lines := 0
	for line := range strings.Lines(out.String()) {
		var r figure.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.True(t, r.Correct(), line)
		require.Positive(t, r.Value, line)
		lines++
	}
	require.GreaterOrEqual(t, lines, len(only), said.String())
}

func TestHollywoodHere(t *testing.T)       { run(t, localGroup(), "hollywood-64B-to-1000") }
func TestHollywoodElsewhere(t *testing.T)  { run(t, remoteGroup(), "hollywood-64B-to-1000") }
func TestHollywoodAsked(t *testing.T)      { run(t, askGroup(), "hollywood-64") }
func TestProtoactorHere(t *testing.T)      { run(t, localGroup(), "protoactor-64B-to-4") }
func TestProtoactorElsewhere(t *testing.T) { run(t, remoteGroup(), "protoactor-1KiB-to-1000") }
func TestProtoactorAsked(t *testing.T)     { run(t, askGroup(), "protoactor-64") }
func TestQuorateHere(t *testing.T)         { run(t, localGroup(), "quorate-raw-64B-to-1000") }
func TestQuorateElsewhere(t *testing.T)    { run(t, remoteGroup(), "quorate-64B-to-1000") }
func TestQuorateAsked(t *testing.T)        { run(t, askGroup(), "floor-grpc-p50", "quorate-p50") }
func TestMemberlist(t *testing.T)          { run(t, quietGroup(), "memberlist-cpu", "quorate-cpu") }
