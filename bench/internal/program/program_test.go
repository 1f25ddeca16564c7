// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// The program with two groups and one that is optional, of which only floors can be measured:
// its arguments, and experiments that fail.

// TestMain lets the test program play the roles of the processes that a test starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == harness.RoleFlag {
		os.Exit(floors().Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func floors() Program {
	passed := harness.Single(harness.Channel, harness.Spec{Size: 64, Senders: 1}, figure.Figure{Name: "figure", Floors: []string{"floor"}})
	loses := harness.Single(func(context.Context, harness.Spec, *harness.Link) (figure.Outcome, error) {
		return figure.Outcome{Values: map[string]float64{"rate": 1}, Lost: 7}, nil
	}, harness.Spec{}, figure.Figure{Name: "loses"})
	return Program{Name: "bench", Groups: []harness.Group{
		{Name: "local", About: "one process", Experiments: []harness.Experiment{passed}},
		{Name: "remote", About: "two processes", Experiments: []harness.Experiment{passed}},
		{Name: "slow", About: "not by itself", Optional: true, Experiments: []harness.Experiment{loses}},
	}}
}

func TestArguments(t *testing.T) {
	groups := floors().Groups
	o, err := parse("bench", groups, nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.runs)
	require.Len(t, o.groups, 2)
	for _, g := range o.groups {
		require.False(t, g.Optional)
	}
	o, err = parse("bench", groups, []string{"-runs", "5", "-time", "100ms", "remote", "local"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 5, o.runs)
	require.Equal(t, 100*time.Millisecond, o.time)
	require.Equal(t, "local", o.groups[0].Name, "in the order of the plan")
	require.Equal(t, "remote", o.groups[1].Name)
	o, err = parse("bench", groups, []string{"all"}, io.Discard)
	require.NoError(t, err)
	require.Len(t, o.groups, 3)
	for _, wrong := range [][]string{{"-runs", "0"}, {"-runs", "many"}, {"-time", "1ns"}, {"-entities", "-1"}, {"nothing"}, {"-x"}} {
		_, err := parse("bench", groups, wrong, io.Discard)
		require.ErrorIs(t, err, errUsage, "%v", wrong)
	}
	var help bytes.Buffer
	_, err = parse("bench", groups, []string{"-h"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, g := range groups {
		require.Contains(t, help.String(), "  "+g.Name+" ")
	}
	for line := range strings.Lines(help.String()) {
		require.LessOrEqual(t, len(line), 81, "%s", line)
	}
}

func TestWrongArgumentsExitWithTwo(t *testing.T) {
	var said bytes.Buffer
	require.Equal(t, statusUsage, floors().Main([]string{"nothing"}, nil, io.Discard, &said))
	require.Contains(t, said.String(), `group "nothing" is not known, there are local, remote`)
	require.Equal(t, statusOK, floors().Main([]string{"-h"}, nil, io.Discard, io.Discard))
	var listed bytes.Buffer
	require.Equal(t, statusOK, floors().Main([]string{"-list", "local"}, nil, &listed, io.Discard))
	require.Contains(t, listed.String(), "local/figure msg/s")
}

// A message that was lost is a failure, unless it was another product that has lost it.
func TestLostMessagesExitWithOne(t *testing.T) {
	measure := func(p Program) (status int, said string) {
		var table bytes.Buffer
		status = p.Main([]string{"-runs", "1", "-time", "10ms", "slow"}, nil, io.Discard, &table)
		return status, table.String()
	}
	p := floors()
	status, said := measure(p)
	require.Equal(t, statusFailed, status)
	require.Contains(t, said, "slow/loses: 7 lost")
	require.Contains(t, said, errWrong.Error())
	for i, e := range p.Groups[2].Experiments {
		p.Groups[2].Experiments[i] = e.AsPeer()
	}
	status, said = measure(p)
	require.Equal(t, statusOK, status)
	require.Contains(t, said, "slow/loses: 7 lost")
}

// The output of a process that fails reaches its parent.
func TestAFailureSaysWhy(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	_, err = runner{time: time.Millisecond}.once(t.Context(), harness.Launcher{Program: program}, harness.Spec{Role: "nothing"})
	require.ErrorContains(t, err, `role "nothing" is not known`)
}

// An experiment that fails does not keep the others from being measured.
func TestOneFailureLeavesTheOthers(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	r := runner{this: harness.Launcher{Program: program}, runs: 2, time: 10 * time.Millisecond, progress: figure.NewProgress(io.Discard)}
	g := floors().Groups[0]
	g.Experiments = append([]harness.Experiment{harness.Single(nil, harness.Spec{}, figure.Figure{Name: "floor"}).AsFloor()}, g.Experiments...)
	records, err := r.run(t.Context(), g)
	require.ErrorContains(t, err, `local/floor: bench: process local/floor ended: it said: bench: bench: role "local/floor"`)
	require.Len(t, records, 1)
	require.Equal(t, "local/figure", records[0].Name)
	require.Equal(t, 2, records[0].Runs)
}

// Another build takes turns, and each figure that it has is compared.
func TestAnotherBuildTakesTurns(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	this := harness.Launcher{Program: program}
	r := runner{this: this, other: &this, runs: 2, time: 10 * time.Millisecond, progress: figure.NewProgress(io.Discard)}
	records, err := r.run(t.Context(), floors().Groups[0])
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.NotNil(t, records[0].Against)
	require.NotZero(t, records[0].Against.Other)
	require.NotEmpty(t, records[0].Against.CPUVerdict)

	r.other = &harness.Launcher{Program: "no-such-program"}
	records, err = r.run(t.Context(), floors().Groups[0])
	require.NoError(t, err, "only this build must have the figure")
	require.Nil(t, records[0].Against)
	require.Len(t, records[0].Notes, 1)
	require.Contains(t, records[0].Notes[0], "other build: local/figure: ")
}
