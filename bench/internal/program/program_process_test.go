// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package program

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/awake"
	"github.com/quorate/quorate/bench/internal/data"
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/floor"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/traffic"
	"github.com/quorate/quorate/internal/patience"
)

// The program, run in this process: groups of experiments, measured for as short a time as
// possible, then experiments that fail. The test program itself plays the roles of the
// processes that are started.

// TestMain lets the test program play the roles of the processes that a test starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == process.RoleFlag {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// Data is replicated between processes, with and without disks, and nothing of it is lost
// or counted twice.
func TestData(t *testing.T) {
	t.Parallel() // It waits most of its time.
	patience.Watch(t)
	program, err := os.Executable()
	require.NoError(t, err)
	r := runner{Launcher: process.Launcher{Program: program}, runs: 1, time: 100 * time.Millisecond, entities: 2000, progress: figure.NewProgress(io.Discard)}
	g := data.Group()
	g.Experiments = slices.DeleteFunc(g.Experiments, func(e plan.Experiment) bool {
		return !slices.Contains([]string{"floor-map", "local-to-1000", "floor-fsync-64", "durable-64", "element-bytes", "joined-after"}, e.Figures[0].Name)
	})
	records, err := r.run(t.Context(), g)
	require.NoError(t, err)
	found := map[string]figure.Record{}
	for _, r := range records {
		require.True(t, r.Correct(), r.Name)
		found[r.Name] = r
	}
	for _, name := range []string{"local-to-1000", "durable-64", "element-bytes", "joined-after", "key-bytes", "round-bytes", "heartbeat-p99"} {
		require.Positive(t, found["data/"+name].Value, name)
	}
	require.True(t, *found["data/marked-unreachable"].Met)
	require.True(t, *found["data/standings-lost"].Met)
}

// The experiments of the group local, each in one process, give records that are correct.
func TestLocal(t *testing.T) {
	t.Parallel() // It waits most of its time.
	patience.Watch(t)
	var out, progress bytes.Buffer
	status := Main([]string{"-runs", "1", "-time", "100ms", "-entities", "4", "local"}, nil, &out, &progress)
	require.Equal(t, statusOK, status, progress.String())
	names := make(map[string]figure.Record)
	for line := range strings.Lines(out.String()) {
		var r figure.Record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Positive(t, r.Value, r.Name)
		require.True(t, r.Correct(), r.Name)
		names[r.Name] = r
	}
	require.Equal(t, "local/floor-channel", names["local/tell-64B"].Floor)
	require.Positive(t, names["local/tell-64B"].Ratio)
	require.Contains(t, progress.String(), "run 1 of 1")
}

// A plugin of this program is launched, decides and allocates.
func TestPlugins(t *testing.T) {
	t.Parallel() // It waits most of its time.
	patience.Watch(t)
	var out, progress bytes.Buffer
	status := Main([]string{"-runs", "1", "-time", "100ms", "-entities", "2000", "plugins"}, nil, &out, &progress)
	require.Equal(t, statusOK, status, progress.String())
	names := []string{"first-decision", "decision-p50", "decision-p99", "floor-of-two-p50", "all-allocated", "decision-of-1000-p50", "heartbeats-cpu", "swap-discovery", "missed-in-swaps-failure-detector"}
	if awake.Possible {
		names = append(names, "awake-decision-p50", "awake-floor-of-two-p99")
	}
	for _, name := range names {
		require.Contains(t, out.String(), `"plugins/`+name+`"`)
	}
}

// Experiments with two processes and a connection give correct records: a floor, and
// messages of the toolkit itself.
func TestRemote(t *testing.T) {
	t.Parallel() // It waits most of its time.
	patience.Watch(t)
	program, err := os.Executable()
	require.NoError(t, err)
	r := runner{Launcher: process.Launcher{Program: program}, runs: 1, time: 100 * time.Millisecond, progress: figure.NewProgress(io.Discard)}
	g := traffic.Remote()
	g.Experiments = slices.DeleteFunc(g.Experiments, func(e plan.Experiment) bool {
		return !slices.Contains([]string{"floor-grpc-100-64B", "tell-64B"}, e.Figures[0].Name)
	})
	records, err := r.run(t.Context(), g)
	require.NoError(t, err)
	require.Len(t, records, 2)
	for _, r := range records {
		require.Positive(t, r.Value, r.Name)
		require.True(t, r.Correct(), r.Name)
	}
}

// The output of a process that fails reaches its parent.
func TestAFailureSaysWhy(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	_, err = runner{Launcher: process.Launcher{Program: program}, time: time.Millisecond}.once(t.Context(), process.Spec{Role: "nothing"})
	require.ErrorContains(t, err, `role "nothing" is not known`)
}

// An experiment that fails does not keep the others from being measured.
func TestOneFailureLeavesTheOthers(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	r := runner{Launcher: process.Launcher{Program: program}, runs: 2, time: 10 * time.Millisecond, progress: figure.NewProgress(io.Discard)}
	g := plan.Group{Name: "g", Experiments: []plan.Experiment{
		plan.Single(process.Spec{Role: "nothing"}, figure.Figure{Name: "floor"}).AsFloor(),
		plan.Single(process.Spec{Role: floor.RoleChannel, Size: 64, Senders: 1}, figure.Figure{Name: "figure", Floors: []string{"floor"}}),
	}}
	records, err := r.run(t.Context(), g)
	require.ErrorContains(t, err, `g/floor: bench: process nothing ended: it said: bench: bench: role "nothing"`)
	require.Len(t, records, 1)
	require.Equal(t, "g/figure", records[0].Name)
	require.Equal(t, 2, records[0].Runs)
}
