// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/command"
	"github.com/quorate/quorate/tools/internal/hocon"
)

// What all commands have in common, shown by a program with three: first what config check
// prints, of good files and of faults; then flags, exit statuses, help, and the version.

// settings stands for the sections of a real node.
type settings struct {
	Node struct {
		Address string        `koanf:"address"`
		Drain   time.Duration `koanf:"drain-time"`
	} `koanf:"node"`
}

func load(own command.Extensions, paths ...string) (needs, warnings config.Errors, err error) {
	file, err := config.Loader{}.Load(paths...)
	if err != nil {
		return nil, nil, err
	}
	var beside []config.Section
	for _, name := range own.Sections {
		beside = append(beside, config.Section{Name: name, Into: new(any)})
	}
	if slices.ContainsFunc(paths, func(path string) bool { return filepath.Base(path) == demanding }) {
		needs = config.Errors{{File: demanding, Line: 3, Key: "node.metrics", Reason: "the program must link it"}}
	}
	return needs, nil, file.DecodeAll(&settings{}, beside...)
}

func translate(settings []hocon.Setting) (*akka.Translation, error) {
	return akka.Translate(settings, cluster.Extensions{})
}

// demanding is the name of a file for which load reports a part that the program must link.
const demanding = "demanding.yaml"

// count is a command with flags and an argument.
type count struct {
	Nodes int    `help:"How many." default:"3"`
	Seed  int64  `help:"The seed."`
	Mode  string `short:"m" help:"The mode."`
	fail  error
	seen  []any
}

func (c *count) Run(*command.Session) error {
	c.seen = []any{c.Nodes, c.Seed, c.Mode}
	return c.fail
}

func run(t *testing.T, c *count, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return output(command.Program{Name: "quorate", Help: "A cluster toolkit.", Commands: []command.Command{
		{Name: "config", Help: "Look at configuration files", Args: command.NewConfig(load, values, translate, settings{})},
		{Name: "version", Help: "Print the version", Args: &command.Version{}},
		{Name: "count", Help: "Count", Args: c},
	}}, args...)
}

func output(program command.Program, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = program.Run(args, &out, &errs)
	return status, out.String(), errs.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestGoodConfigurationIsOk(t *testing.T) {
	path := write(t, "node: {address: a, drain-time: 3s}\n")
	status, stdout, stderr := run(t, &count{}, "config", "check", path)
	require.Equal(t, []any{command.StatusOK, "ok\n", ""}, []any{status, stdout, stderr})
	status, stdout, _ = run(t, &count{}, "-json", "config", "check", path)
	require.Equal(t, command.StatusOK, status)
	require.JSONEq(t, `{"ok":true,"faults":[],"needs":[],"warnings":[]}`, stdout)
}

func TestWhatTheProgramNeedsIsPrinted(t *testing.T) {
	path := filepath.Join(t.TempDir(), demanding)
	require.NoError(t, os.WriteFile(path, []byte("node: {address: a, drain-time: 3s}\n"), 0o600))
	status, stdout, _ := run(t, &count{}, "config", "check", path)
	require.Equal(t, command.StatusOK, status)
	require.Equal(t, "ok\nrefused by a program without it: demanding.yaml:3: node.metrics: the program must link it\n", stdout)
	_, stdout, _ = run(t, &count{}, "-json", "config", "check", path)
	require.JSONEq(t, `{"ok":true,"faults":[],"needs":[{"file":"demanding.yaml","line":3,"key":"node.metrics","reason":"the program must link it"}],"warnings":[]}`, stdout)
}

func TestEveryFaultOfAConfigurationIsPrinted(t *testing.T) {
	path := write(t, "node: {adrs: a, drain-time: 3}\nnod: 1\n")
	status, stdout, stderr := run(t, &count{}, "config", "check", path)
	require.Equal(t, command.StatusUsage, status)
	require.Equal(t, 3, strings.Count(stdout, "\n"), stdout)
	require.Contains(t, stdout, path+`:2: nod: unknown section; did you mean "node"?`)
	require.NotContains(t, stdout, "\x1b", "colours are for terminals")
	require.Empty(t, stderr)

	status, stdout, _ = run(t, &count{}, "config", "check", "--json", path)
	require.Equal(t, command.StatusUsage, status)
	var got struct {
		OK     bool
		Faults []struct {
			File, Key, Reason, Nearest string
			Line                       int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got))
	require.False(t, got.OK)
	require.Len(t, got.Faults, 3)
	require.Equal(t, "node.drain-time", got.Faults[1].Key)
	require.Equal(t, 2, got.Faults[2].Line)

	status, stdout, _ = run(t, &count{}, "config", "check", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stdout, "no such file")
}

// A section that belongs to the user's program is refused, unless --allow names it.
func TestASectionOfTheProgramIsAllowed(t *testing.T) {
	path := write(t, "twins: {any: 1}\n")
	status, stdout, _ := run(t, &count{}, "config", "check", path)
	require.Equal(t, command.StatusUsage, status)
	require.Contains(t, stdout, ":1: twins: unknown section")
	for _, args := range [][]string{{"--allow", "twins"}, {"-allow", "twins"}, {"--allow", "other,twins"}} {
		status, stdout, _ = run(t, &count{}, append(append([]string{"config", "check"}, args...), path)...)
		require.Equal(t, []any{command.StatusOK, "ok\n"}, []any{status, stdout}, args)
	}
}

func TestFlagsTakeOneHyphenOrTwo(t *testing.T) {
	for _, args := range [][]string{
		{"-nodes", "5", "-seed", "-7", "-m", "x"},
		{"--nodes=5", "--seed=-7", "--mode=x"},
		{"-nodes=5", "-seed=-7", "-mode", "x"},
	} {
		c := &count{}
		status, _, stderr := run(t, c, append([]string{"count"}, args...)...)
		require.Equal(t, command.StatusOK, status, stderr)
		require.Equal(t, []any{5, int64(-7), "x"}, c.seen)
	}
}

func TestStatusSaysWhoseFaultItIs(t *testing.T) {
	for _, c := range []struct {
		args []string
		fail error
		want int
		text string
	}{
		{[]string{"count"}, nil, command.StatusOK, ""},
		{[]string{"count"}, errors.New("no luck"), command.StatusFailed, "quorate: no luck\n"},
		{[]string{"count"}, command.RejectedError{Text: "no such scenario"}, command.StatusUsage, "quorate: no such scenario\n"},
		{[]string{"count"}, command.RejectedError{}, command.StatusUsage, ""},
		{[]string{"cuont"}, nil, command.StatusUsage, "quorate: unexpected argument cuont"},
		{[]string{"count", "-nodes", "many"}, nil, command.StatusUsage, "quorate: --nodes: "},
		{[]string{"count", "-colour"}, nil, command.StatusUsage, "quorate: unknown flag --colour"},
		{[]string{"config", "check"}, nil, command.StatusUsage, "quorate: expected \"<file> ...\""},
	} {
		status, _, stderr := run(t, &count{fail: c.fail}, c.args...)
		require.Equal(t, c.want, status, c.args)
		require.True(t, strings.HasPrefix(stderr, c.text), stderr)
		require.LessOrEqual(t, strings.Count(stderr, "\n"), 1, "one line")
	}
}

func TestHelpFitsTheTerminalAndHasExamples(t *testing.T) {
	for _, args := range [][]string{{}, {"-h"}, {"-help"}, {"config", "-h"}, {"config", "check", "-h"}, {"version", "--help"}} {
		status, stdout, stderr := run(t, &count{}, args...)
		require.Equal(t, command.StatusOK, status)
		require.Empty(t, stderr)
		require.Contains(t, stdout, "Usage: quorate")
		for line := range strings.Lines(stdout) {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
		}
		if len(args) > 1 && args[len(args)-2] != "config" {
			require.Contains(t, stdout, "Examples:")
		}
	}
}

func TestVersionNamesTheToolchain(t *testing.T) {
	status, stdout, _ := run(t, &count{}, "version")
	require.Equal(t, command.StatusOK, status)
	require.Regexp(t, `^quorate .*, go1\.\d+.*, \w+/\w+\n$`, stdout)
	status, stdout, _ = run(t, &count{}, "version", "-json")
	require.Equal(t, command.StatusOK, status)
	var build command.Build
	require.NoError(t, json.Unmarshal([]byte(stdout), &build))
	require.NotEmpty(t, build.Go)
}
