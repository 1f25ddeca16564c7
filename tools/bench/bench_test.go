// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/allocation"
)

// TestMain lets the test program play the roles of the processes that a test
// starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == roleFlag {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2, median([]float64{3, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 2, 3}), 0)
	require.InDelta(t, 7, median([]float64{7}), 0)
	require.True(t, math.IsNaN(median(nil)))
	values := []float64{3, 1, 2}
	median(values)
	require.Equal(t, []float64{3, 1, 2}, values, "the runs stay in their order")
}

// A floor whose best run exceeds its worst by more than a fifth is unstable.
func TestSteady(t *testing.T) {
	require.True(t, steady([]float64{100, 110, 120}))
	require.False(t, steady([]float64{100, 110, 121}))
	require.False(t, steady([]float64{0, 1}))
	require.True(t, steady([]float64{5}))
	require.True(t, steady(nil))
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	require.Equal(t, time.Duration(50), percentile(all, 0.5))
	require.Equal(t, time.Duration(99), percentile(all, 0.99))
	require.Equal(t, time.Duration(100), percentile(all, 1))
	require.Equal(t, time.Duration(1), percentile(all, 0))
	require.Zero(t, percentile(nil, 0.5))
}

func TestRoundLeavesFiveDigits(t *testing.T) {
	for in, want := range map[float64]float64{123456: 123460, 0.123456: 0.12346, 9.999999: 10, -123456: -123460, 0: 0, math.Inf(1): 0} {
		require.InDelta(t, want, round(in), 1e-9)
	}
}

// Whatever order numbers come in, what is found agrees with a plain count.
func TestSequenceAgreesWithASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s sequence
		seen := make(map[uint64]bool)
		var highest uint64
		for _, n := range rapid.SliceOf(rapid.Uint64Range(1, 30)).Draw(t, "numbers") {
			want := late
			switch {
			case seen[n]:
				want = duplicated
			case n == highest+1:
				want = inOrder
			case n > highest:
				want = ahead
			}
			if got := s.check(n); got != want {
				t.Fatalf("number %d after %v: verdict %d, want %d", n, seen, got, want)
			}
			seen[n], highest = true, max(highest, n)
		}
	})
}

func TestTallyTellsFaultsApart(t *testing.T) {
	var found tally
	r := found.receiver(2, 64)
	for _, seq := range []uint64{1, 2, 4, 3, 3} {
		r.take(0, seq, 64)
	}
	r.take(1, 1, 64)
	r.take(1, 2, 63) // Of another length.
	r.take(2, 1, 64) // Of nobody.
	require.Equal(t, totals{Received: 5, OutOfOrder: 1, Duplicated: 1, Damaged: 2}, found.totals())
	require.Error(t, damage(found.totals()))
}

func TestCodecKeepsMessages(t *testing.T) {
	in := &message{sender: 3, seq: 1 << 40, ask: true, payload: []byte("payload")}
	b, err := codec{}.Append(nil, in)
	require.NoError(t, err)
	require.Len(t, b, codec{}.Size(in))
	var out message
	require.NoError(t, codec{}.Decode(b, &out))
	b[headerBytes] = 'X'
	require.Equal(t, *in, out)
	require.Error(t, codec{}.Decode(b[:headerBytes-1], &out))
	require.Error(t, codec{}.Check("text"))
}

// An entity that lived on two nodes at a time is found, also when it does not
// any more; one that moved is not.
func TestDoubles(t *testing.T) {
	now, ever := doubles([][]stay{
		{{"moved", 10, 20}, {"was", 10, 30}, {"is", 10, 0}, {"stayed", 10, 0}},
		{{"moved", 20, 0}, {"was", 29, 0}, {"is", 40, 0}},
	})
	require.Equal(t, 1, now)
	require.Equal(t, 2, ever)
}

func TestArguments(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.runs)
	for _, g := range o.groups {
		require.False(t, g.optional)
	}
	o, err = parse([]string{"-runs", "5", "-time", "100ms", "remote", "local"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 5, o.runs)
	require.Equal(t, 100*time.Millisecond, o.time)
	require.Equal(t, "local", o.groups[0].name, "in the order of the plan")
	require.Equal(t, "remote", o.groups[1].name)
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

// Every floor that a figure names is measured in the same group, names are
// unique, and every role is played by somebody.
func TestThePlanIsWhole(t *testing.T) {
	for _, g := range groups() {
		names := make(map[string]bool)
		for _, e := range g.experiments {
			require.Contains(t, measurers(), e.spec.Role)
			for _, f := range e.figures {
				require.False(t, names[f.name], "%s twice in %s", f.name, g.name)
				names[f.name] = true
				require.Contains(t, []string{higher, lower}, f.better)
				for _, floor := range f.floors {
					require.True(t, names[floor], "%s stands on %s, which is not measured before it", f.name, floor)
				}
			}
		}
	}
}

// A record stands on its floor: the ratio is that of the medians, and it is
// not stable when the floor is not.
func TestRecords(t *testing.T) {
	outcomes := func(values ...float64) (all []outcome) {
		for _, v := range values {
			all = append(all, outcome{Values: map[string]float64{"rate": v}, CPU: 2})
		}
		return all
	}
	g := group{name: "g", experiments: []experiment{
		single(spec{}, figure{name: "floor"}).asFloor(),
		single(spec{}, figure{name: "figure", target: 45, floors: []string{"floor"}}),
	}}
	records := summarize(g, [][]outcome{outcomes(100, 130, 90), outcomes(50, 40, 60)})
	require.Len(t, records, 2)
	require.False(t, *records[0].Stable)
	f := records[1]
	require.Equal(t, "g/figure", f.Name)
	require.InDelta(t, 50, f.Value, 0)
	require.InDelta(t, 0.5, f.Ratio, 0)
	require.InDelta(t, 2, f.CPU, 0)
	require.InDelta(t, 1, f.CPURatio, 0)
	require.Equal(t, "g/floor", f.Floor)
	require.False(t, *f.Stable)
	require.True(t, *f.Met)
	broken := outcomes(1)
	broken[0].Lost, broken[0].Note = 7, "why"
	r := newRecord("g", figure{name: "x", value: "rate", better: lower, zero: true}, broken)
	require.False(t, r.correct())
	require.False(t, *r.Met)
	once := newRecord("g", figure{name: "x", value: "rate", better: lower, zero: true}, outcomes(0, 0, 1))
	require.Zero(t, once.Value)
	require.False(t, *once.Met, "not in any run")
	var table bytes.Buffer
	writeTable(&table, append(records, r))
	require.Contains(t, table.String(), "7 lost")
	require.Contains(t, table.String(), "why")
	for line := range strings.Lines(table.String()) {
		require.LessOrEqual(t, len(strings.TrimSpace(line)), 80, "%s", line)
	}
}

// The whole way of the program in one process each, as short as it can be.
func TestLocal(t *testing.T) {
	var out, progress bytes.Buffer
	status := Main([]string{"-runs", "1", "-time", "100ms", "-entities", "4", "local"}, nil, &out, &progress)
	require.Equal(t, statusOK, status, progress.String())
	names := make(map[string]record)
	for line := range strings.Lines(out.String()) {
		var r record
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		require.Positive(t, r.Value, r.Name)
		require.True(t, r.correct(), r.Name)
		names[r.Name] = r
	}
	require.Equal(t, "local/floor-channel", names["local/tell-64B"].Floor)
	require.Positive(t, names["local/tell-64B"].Ratio)
	require.Contains(t, progress.String(), "run 1 of 1")
}

// A plugin of this program is launched, decides and allocates.
func TestPlugins(t *testing.T) {
	var out, progress bytes.Buffer
	status := Main([]string{"-runs", "1", "-time", "100ms", "-entities", "2000", "plugins"}, nil, &out, &progress)
	require.Equal(t, statusOK, status, progress.String())
	names := []string{"first-decision", "decision-p50", "decision-p99", "floor-of-two-p50", "all-allocated"}
	if awakePossible {
		names = append(names, "awake-decision-p50", "awake-floor-of-two-p99")
	}
	for _, name := range names {
		require.Contains(t, out.String(), `"plugins/`+name+`"`)
	}
	require.Error(t, even([]allocation.RegionState{{ID: "a"}, {ID: "b", Shards: []allocation.Shard{1, 2}}}, 2))
}

// Two processes and a connection, for a floor and for the product.
func TestRemote(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	r := runner{launcher: launcher{program: program}, runs: 1, time: 100 * time.Millisecond, progress: newProgress(io.Discard)}
	g := remoteGroup()
	g.experiments = slices.DeleteFunc(g.experiments, func(e experiment) bool {
		return !slices.Contains([]string{"floor-grpc-100-64B", "tell-64B"}, e.figures[0].name)
	})
	records, err := r.run(t.Context(), g)
	require.NoError(t, err)
	require.Len(t, records, 2)
	for _, r := range records {
		require.Positive(t, r.Value, r.Name)
		require.True(t, r.correct(), r.Name)
	}
}

// A process whose parent goes away ends.
func TestAPeerEndsWithItsParent(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	p, err := launcher{program: program}.start(spec{Role: roleTCPSink, Size: 64, Senders: 1})
	require.NoError(t, err)
	var first hello
	require.NoError(t, p.answer(t.Context(), &first))
	require.NotEmpty(t, first.Address)
	require.NoError(t, p.stdin.Close())
	<-p.gone
	require.Error(t, p.answer(t.Context(), &first))
}

// What a process says before it fails reaches whoever started it.
func TestAFailureSaysWhy(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	_, err = runner{launcher: launcher{program: program}, time: time.Millisecond}.once(t.Context(), spec{Role: "nothing"})
	require.ErrorContains(t, err, `role "nothing" is not known`)
}

// An experiment that fails does not keep the others from being measured.
func TestOneFailureLeavesTheOthers(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	r := runner{launcher: launcher{program: program}, runs: 2, time: 10 * time.Millisecond, progress: newProgress(io.Discard)}
	g := group{name: "g", experiments: []experiment{
		single(spec{Role: "nothing"}, figure{name: "floor"}).asFloor(),
		single(spec{Role: roleChannel, Size: 64, Senders: 1}, figure{name: "figure", floors: []string{"floor"}}),
	}}
	records, err := r.run(t.Context(), g)
	require.ErrorContains(t, err, `g/floor: bench: process nothing ended: it said: bench: bench: role "nothing"`)
	require.Len(t, records, 1)
	require.Equal(t, "g/figure", records[0].Name)
	require.Equal(t, 2, records[0].Runs)
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
