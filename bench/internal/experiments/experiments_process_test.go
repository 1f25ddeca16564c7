// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package experiments

import (
	"bytes"
	"encoding/json"
	"log/slog"
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

// Groups of experiments, measured for as short a time as possible. The test program itself
// plays the roles of the processes that are started.

// TestMain lets the test program play the roles of the processes that a test starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == harness.RoleFlag {
		os.Exit(whole().Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	if address := os.Getenv(addressVariable); address != "" {
		if err := serve(address); err != nil {
			slog.Error("the node has failed", "error", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// run measures a group once, all of it or only the experiments with the given first figures, and
// returns the records by their names.
func run(t *testing.T, g harness.Group, entities string, only ...string) (records map[string]figure.Record, progress string) {
	t.Helper()
	patience.Watch(t)
	if len(only) > 0 {
		g.Experiments = slices.DeleteFunc(g.Experiments, func(e harness.Experiment) bool {
			return !slices.Contains(only, e.Figures[0].Name)
		})
	}
	var out, said bytes.Buffer
	p := program.Program{Groups: []harness.Group{g}}
	status := p.Main([]string{"-runs", "1", "-time", "100ms", "-entities", entities, g.Name}, nil, &out, &said)
	require.Zero(t, status, said.String())
	records = map[string]figure.Record{}
	for line := range strings.Lines(out.String()) {
		var r figure.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.True(t, r.Correct(), r.Name)
		records[strings.TrimPrefix(r.Name, g.Name+"/")] = r
	}
	return records, said.String()
}

// Data is replicated between processes, with and without disks, and nothing of it is lost
// or counted twice.
func TestData(t *testing.T) {
	t.Parallel() // It waits most of its time.
	found, _ := run(t, dataGroup(), "2000", "floor-map", "local-to-1000", "floor-fsync-64", "durable-64", "element-bytes", "joined-after")
	for _, name := range []string{"local-to-1000", "durable-64", "element-bytes", "joined-after", "key-bytes", "round-bytes", "heartbeat-p99"} {
		require.Positive(t, found[name].Value, name)
	}
	require.True(t, *found["marked-unreachable"].Met)
	require.True(t, *found["standings-lost"].Met)
}

// Processes that do nothing are measured. How much they send within a second depends on the machine.
func TestQuiet(t *testing.T) {
	t.Parallel() // It waits most of its time.
	g := quietGroup()
	g.Experiments[0].Spec.Nodes = 2
	found, _ := run(t, g, "0")
	require.Len(t, found, len(g.Experiments[0].Figures))
	if harness.SocketsCounted {
		require.Positive(t, found["resident-own"].Value)
		require.Greater(t, found["resident"].Value, found["resident-own"].Value)
	}
}

// The experiments of the group local, each in one process, give records that are correct.
func TestLocal(t *testing.T) {
	t.Parallel() // It waits most of its time.
	found, progress := run(t, localGroup(), "4")
	for name, r := range found {
		require.Positive(t, r.Value, name)
	}
	require.Equal(t, "local/floor-channel", found["tell-64B"].Floor)
	require.Positive(t, found["tell-64B"].Ratio)
	require.Contains(t, progress, "run 1 of 1")
}

// A plugin of this program is launched, decides and allocates.
func TestPlugins(t *testing.T) {
	t.Parallel() // It waits most of its time.
	found, _ := run(t, pluginsGroup(), "2000")
	names := []string{"first-decision", "decision-p50", "decision-p99", "floor-of-two-p50", "all-allocated", "decision-of-1000-p50", "heartbeats-cpu", "swap-discovery", "missed-in-swaps-failure-detector"}
	if harness.AwakePossible {
		names = append(names, "awake-decision-p50", "awake-floor-of-two-p99")
	}
	for _, name := range names {
		require.Contains(t, found, name)
	}
}

// Experiments with two processes and a connection give correct records: a floor, and
// messages of the toolkit itself.
func TestRemote(t *testing.T) {
	t.Parallel() // It waits most of its time.
	found, _ := run(t, remoteGroup(), "0", "floor-grpc-100-64B", "tell-64B")
	require.Len(t, found, 2)
	for name, r := range found {
		require.Positive(t, r.Value, name)
	}
}
