// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/tools/soak"
)

func runSoak(args ...string) (status int, stdout, stderr string) {
	program := Program{Name: "quorate", Commands: []Command{
		{Name: "soak", Help: "Run fresh seeds", Args: &Soak{}},
		{Name: "version", Help: "Print the version", Args: &Version{}},
	}}
	var out, err bytes.Buffer
	status = program.Run(append([]string{"soak"}, args...), &out, &err)
	return status, out.String(), err.String()
}

func TestSoakSumsUpWhatWasRun(t *testing.T) {
	status, stdout, stderr := runSoak("-world", "steady", "-world", "split", "-seed", "5", "-runs", "3", "-nodes", "3")
	require.Equal(t, StatusOK, status, stdout)
	require.Empty(t, stderr, "a line a minute where it is no terminal")
	require.Regexp(t, `\n  split +1 +0\.0 +0\n  steady +2 +0\.0 +0\n`, stdout)
	require.Regexp(t, `\nok runs=3 seeds=5\.\.7 virtual-hours=0\.1 violations=0 took=.*\n$`, stdout)

	status, stdout, _ = runSoak("--json", "-world", "steady", "-seed", "5", "-runs", "1", "-nodes", "2")
	require.Equal(t, StatusOK, status)
	var report soakReport
	require.NoError(t, json.Unmarshal([]byte(stdout), &report))
	require.True(t, report.OK)
	require.Equal(t, 1, report.Runs)
	require.EqualValues(t, 5, report.First)
}

func TestSoakRefusesWhatItCannotRun(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-minutes", "0"}, "want more than 0"},
		{[]string{"-minutes", "NaN"}, "want more than 0"},
		{[]string{"-nodes", "1"}, "want 2 to 100"},
		{[]string{"-runs", "-1"}, "cannot be negative"},
		{[]string{"-world", "nonsense"}, `no world "nonsense"; see quorate soak -h`},
	} {
		status, stdout, stderr := runSoak(c.args...)
		require.Equal(t, StatusUsage, status, c.args)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
	status, stdout, _ := runSoak("-h")
	require.Equal(t, StatusOK, status)
	require.Contains(t, stdout, "Examples:")
	for line := range strings.SplitSeq(stdout, "\n") {
		require.LessOrEqual(t, len(line), columns, line)
	}
}

// A violation is printed at once and in the summary, with the command that repeats its run,
// and the program fails.
func TestSoakReportsViolations(t *testing.T) {
	broken := soak.Run{World: "links", Nodes: 3, Seed: 9, Outcome: soak.Outcome{Virtual: time.Hour}, Err: errors.New("I6: it went back\ntrace")}
	const repeat = "quorate soak -world links -nodes 3 -seed 9 -runs 1"
	var out, none bytes.Buffer
	s := &Session{Stdout: &out, Stderr: &none}
	(&Soak{}).violated(s, broken)
	require.Equal(t, "FAIL world=links nodes=3 seed=9: I6: it went back\n  repeat: "+repeat+"\n", out.String())
	out.Reset()
	(&Soak{Full: true}).violated(s, broken)
	require.Contains(t, out.String(), "it went back\ntrace\nFAIL")

	r := &soakReport{First: 8, Took: "2s"}
	r.add(soak.Run{World: "pauses", Nodes: 15, Seed: 8, Outcome: soak.Outcome{Virtual: time.Hour}})
	r.add(broken)
	out.Reset()
	require.EqualError(t, r.print(s), "1 run broke an invariant")
	require.Contains(t, out.String(), "\nrepeat:\n  "+repeat+"\n")
	require.Contains(t, out.String(), "\nFAIL runs=2 seeds=8..9 virtual-hours=2.0 violations=1 took=2s\n")

	out.Reset()
	s.JSON = true
	require.Error(t, r.print(s))
	var decoded soakReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &decoded))
	require.False(t, decoded.OK)
	require.Equal(t, []soakFound{{"links", 3, 9, "I6: it went back", repeat}}, decoded.Violations)
}
