// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/internal/command"
)

func simulate(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	program := command.Program{Name: "quorate", Commands: []command.Command{
		{Name: "simulate", Help: "Run a cluster in virtual time and check its invariants", Args: &command.Simulation{}},
		{Name: "version", Help: "Print the version", Args: &command.Version{}},
	}}
	return output(program, append([]string{"simulate"}, args...)...)
}

// covers I30.
func TestOneSeedPrintsTheSameBytesAndAnotherPrintsOthers(t *testing.T) {
	status, first, stderr := simulate(t, "-nodes", "5", "-seed", "7")
	require.Equal(t, command.StatusOK, status, first)
	require.Empty(t, stderr, "progress is for terminals")
	_, again, _ := simulate(t, "-nodes", "5", "-seed", "7")
	require.Equal(t, first, again)
	_, other, _ := simulate(t, "-nodes", "5", "-seed", "8")
	require.NotEqual(t, first, other)

	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	require.Regexp(t, `^ok seed=7 nodes=5 trace=[0-9a-f]{16}$`, lines[len(lines)-1])
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 80, line)
	}
	require.Contains(t, first, "repeat: quorate simulate -seed 7 -scenario chaos -nodes 5\n")
	require.Contains(t, first, "faults")
}

func TestTraceIsWrittenWhereItIsWanted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.txt")
	args := []string{"-nodes", "3", "-scenario", "steady", "-duration", "20s"}
	_, plain, _ := simulate(t, args...)
	status, stdout, _ := simulate(t, append(args, "-trace", path)...)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, plain, stdout, "writing the trace changes nothing")
	trace, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Greater(t, bytes.Count(trace, []byte("\n")), 100)
	_, stdout, _ = simulate(t, append(args, "-trace", "-")...)
	require.Equal(t, string(trace)+plain, stdout)

	status, _, stderr := simulate(t, append(args, "-trace", filepath.Join(path, "none"))...)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "not a directory")
	status, _, stderr = simulate(t, append(args, "-trace", "-", "-json")...)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "write the trace to a file")
}

// covers F40, I30.
func TestReplayPrintsWhatTheRecordedRunPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	args := []string{"-scenario", "strategies", "-seed", "5"}
	_, plain, _ := simulate(t, args...)
	status, recorded, stderr := simulate(t, append(args, "-record", path)...)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, plain, recorded, "recording changes nothing")
	require.Contains(t, recorded, "fates of calls")
	status, replayed, stderr := simulate(t, "-replay", path)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, recorded, replayed)

	recording, err := os.ReadFile(path)
	require.NoError(t, err)
	changed := bytes.Replace(recording, []byte(`"request":"`), []byte(`"request":"0`), 1)
	require.NoError(t, os.WriteFile(path, changed, 0o600))
	status, stdout, stderr := simulate(t, "-replay", path)
	require.Equal(t, command.StatusFailed, status, stderr)
	require.Contains(t, stdout, "the replay diverges at")
	require.Contains(t, stdout, "\nFAIL seed=5\n")

	require.NoError(t, os.WriteFile(path, []byte("garbage\n"), 0o600))
	for _, args := range [][]string{{"-replay", path}, {"-replay", path + "-none"}, {"-record", "a", "-replay", path}} {
		status, _, stderr := simulate(t, args...)
		require.Equal(t, command.StatusUsage, status, args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}

func TestResultOfASimulationAsJSON(t *testing.T) {
	status, stdout, _ := simulate(t, "-json", "-nodes", "3", "-scenario", "steady", "-duration", "20s")
	require.Equal(t, command.StatusOK, status)
	var got struct {
		OK      bool
		Seed    uint64
		Members int
		Trace   string
		Checked int
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.True(t, got.OK)
	require.Equal(t, []any{uint64(1), 3}, []any{got.Seed, got.Members})
	require.Len(t, got.Trace, 16)
	require.Positive(t, got.Checked)
}

// No cluster settles in a millisecond, so that this run violates an invariant with each
// seed.
func TestViolationFailsAndSaysHowToRepeatIt(t *testing.T) {
	args := []string{"-seed", "42", "-scenario", "steady", "-duration", "1ms", "-settle", "1ms"}
	const replay = "quorate simulate -seed 42 -scenario steady -nodes 7 -duration 1ms -settle 1ms"
	status, stdout, stderr := simulate(t, args...)
	require.Equal(t, command.StatusFailed, status)
	require.Contains(t, stdout, "\nreplay: "+replay+"\nFAIL seed=42\n")
	require.Equal(t, "quorate: an invariant does not hold\n", stderr)

	status, stdout, _ = simulate(t, append(args, "-json")...)
	require.Equal(t, command.StatusFailed, status)
	var got struct {
		OK                bool
		Violation, Replay string
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.False(t, got.OK)
	require.Contains(t, got.Violation, "not settled after 1ms")
	require.Equal(t, replay, got.Replay)
}

func TestSimulationRefusesWhatItCannotRun(t *testing.T) {
	for _, args := range [][]string{
		{"-scenario", "peace"},
		{"-nodes", "-1"},
		{"-nodes", "10001"},
		{"-seed", "-1"},
		{"-scenario", "data-chaos", "-nodes", "1"},
		{"-scenario", "data-chaos", "-nodes", "101"},
		{"-scenario", "data-older", "-settle", "1s"},
		{"-scenario", "data-older", "-record", filepath.Join(t.TempDir(), "calls")},
	} {
		status, _, stderr := simulate(t, args...)
		require.Equal(t, command.StatusUsage, status, args)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	status, stdout, _ := simulate(t, "-h")
	require.Equal(t, command.StatusOK, status)
	require.Contains(t, stdout, "Examples:")
	require.Contains(t, stdout, "  data-older ")
	for line := range strings.Lines(stdout) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}

// covers F14, I2.
func TestEveryFaultOfAFamily(t *testing.T) {
	page := filepath.Join(t.TempDir(), "table.html")
	status, out, stderr := simulate(t, "-exhaustive", "3", "-family", "split-2", "-family", "crash", "-cases", "all", "-html", page)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Empty(t, stderr, "progress is for terminals")
	require.Contains(t, out, "keep-majority\nit keeps no side without a majority, and decides by the view alone\n3 nodes, 9 cases")
	require.Contains(t, out, "    1  split-2       0+1 | 2\n       [0 1] go on, settled after ")
	for line := range strings.SplitSeq(out, "\n") {
		require.LessOrEqual(t, len(line), 80, line)
	}
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<td>split-2<small>every split into two sides</small><td>3<td>0<td>3")
	require.NotRegexp(t, `https?:`, string(html), "the page needs nothing else")

	status, out, _ = simulate(t, "--json", "-exhaustive", "3", "-family", "split-3", "-downing", "down-all")
	require.Equal(t, command.StatusOK, status)
	var table struct {
		Strategy string
		Rows     []struct{ Cases, Nobody int }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &table))
	require.Equal(t, "down-all", table.Strategy)

	settings := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("cluster: {name: bank}\ndowning: {static-quorum: {quorum-size: 3}}\n"), 0o600))
	status, out, stderr = simulate(t, "-exhaustive", "4", "-family", "split-2", "-downing", "static-quorum", "-settings", settings)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, out, "static-quorum (quorum-size=3")
	require.Regexp(t, `split-2 +7 +0 +4 +0 +0 +3 +3`, out, "a side of two has no quorum")
	require.Equal(t, []struct{ Cases, Nobody int }{{1, 1}}, table.Rows)

	// A role that some have counts, and one that nobody has is said not to fit.
	require.NoError(t, os.WriteFile(settings, []byte("cluster: {name: bank}\ndowning: {static-quorum: {quorum-size: 2, role: data}}\n"), 0o600))
	role := []string{"-exhaustive", "4", "-family", "split-2", "-downing", "static-quorum", "-settings", settings}
	status, out, stderr = simulate(t, append(role, "-role", "data=3")...)
	require.Equal(t, command.StatusOK, status, stderr)
	require.NotContains(t, out, "does not fit")
	require.Regexp(t, `split-2 +7 +0 +4 +3 +0 +0 +0`, out, "two of the three are on one side")
	_, out, _ = simulate(t, role...)
	require.Contains(t, out, "\nit does not fit this cluster: downing.static-quorum.role is \"data\", and no member that is up has this role")
	require.Regexp(t, `split-2 +7 +0 +0 +0 +0 +7 +7`, out)

	// A lease goes to one side of each split, and there are families about it.
	status, out, stderr = simulate(t, "-exhaustive", "3", "-family", "split-3", "-family", "store-cut", "-downing", "lease-majority", "-lease", "-settings", settings, "-html", page)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Contains(t, out, `lease-majority (store="simulated"`)
	require.Regexp(t, `split-3 +1 +0 +0 +1 +0 +0 +0`, out)
	require.Regexp(t, `store-cut +18 +0 +9 +9 +0 +0 +0`, out)
	html, err = os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(html), "<td>store-cut<small>every split, and a side does not reach the lease store</small>")
}

func TestWrongUsesOfExhaustiveSayWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-exhaustive", "9"}, "9 nodes: want 2 to 6"},
		{[]string{"-exhaustive", "3", "-downing", "keep-minority"}, "neither built in (keep-majority"},
		{[]string{"-exhaustive", "3", "-settings", "x.yaml"}, "x.yaml"},
		{[]string{"-exhaustive", "3", "-downing", "static-quorum"}, "quorum-size"},
		{[]string{"-exhaustive", "3", "-trace", "-"}, "name it by -case"},
		{[]string{"-exhaustive", "3", "-lease"}, "-lease is for lease-majority, and keep-majority asks for no lease"},
		{[]string{"-exhaustive", "3", "-downing", "lease-majority"}, "lease-majority asks for a lease: add -lease"},
		{[]string{"-exhaustive", "3", "-role", "data=0"}, `0 nodes with the role "data": want a name, and at least one node`},
		{[]string{"-exhaustive", "3", "-family", "store-cut"}, `no family "store-cut"`},
		{[]string{"-exhaustive", "3", "-family", "splits"}, `no family "splits"`},
		{[]string{"-exhaustive", "3", "-downing", "simulate_test.go"}, "simulate_test.go"},
	} {
		status, _, stderr := simulate(t, c.args...)
		require.Equal(t, command.StatusUsage, status, c.args)
		require.Contains(t, stderr, c.want)
	}
}

// The page of a replay is that of the run that was recorded, but for saying so.
func TestRunAndItsReplayGiveTheSamePage(t *testing.T) {
	dir := t.TempDir()
	calls, first, second := filepath.Join(dir, "calls.jsonl"), filepath.Join(dir, "run.html"), filepath.Join(dir, "replay.html")
	args := []string{"-scenario", "strategies", "-seed", "5", "-duration", "30s"}
	_, plain, _ := simulate(t, args...)
	status, drawn, stderr := simulate(t, append(args, "-record", calls, "-html", first)...)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, plain, drawn, "drawing changes nothing")
	status, replayed, stderr := simulate(t, "-replay", calls, "-html", second)
	require.Equal(t, command.StatusOK, status, stderr)
	require.Equal(t, plain, replayed)
	run, err := os.ReadFile(first)
	require.NoError(t, err)
	replay, err := os.ReadFile(second)
	require.NoError(t, err)
	require.NotEqual(t, run, replay)
	said := strings.Replace(string(replay), ` <span class="tag">from a recording</span>`, "", 1)
	require.Equal(t, string(run), strings.Replace(said, `"recorded":true`, `"recorded":false`, 1))

	status, _, stderr = simulate(t, "-scenario", "steady", "-duration", "5s", "-html", filepath.Join(first, "none"))
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stderr, "not a directory")
}
