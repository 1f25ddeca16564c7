// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package trial_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/bootstrap"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/plugintest"
	"github.com/quorate/quorate/plugins/sdk"
	"github.com/quorate/quorate/tools/internal/trial"
	"github.com/quorate/quorate/tools/internal/trial/kittest"
)

// The test binary is the plugin that is tried, by the variable role, and runs the kit when it is
// started with the argument kit.

const role = "TRIAL_ROLE"

type none struct{}

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "kit" {
		if os.Getenv("TRIAL_AS") == "wordy" { // One line, more than is kept and more than a pipe has room for.
			_, _ = io.Copy(os.Stdout, io.LimitReader(endless{}, 4<<20))
			os.Exit(0)
		}
		// The kit ends the process.
		panic(kittest.Run(config(os.Getenv("TRIAL_AS"), plugins.Policy(os.Args[2])), 100, os.Args[3]))
	}
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "keep-majority":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return downing.KeepMajority{}, nil }))
	case "selfish":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return selfish{}, nil }))
	case "undecided":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return undecided{}, nil }))
	case "forgetful":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return forgetful{}, nil }))
	case "picky":
		sdk.Serve(sdk.Allocation(func(none) (allocation.Strategy, error) { return picky{}, nil }))
	case "hasty":
		sdk.Serve(sdk.JoinDecider(func(none) (bootstrap.JoinDecider, error) { return hasty{}, nil }))
	case "fickle":
		sdk.Serve(sdk.Discovery(func(none) (discovery.Discovery, error) { return &fickle{}, nil }))
	case "empty":
		sdk.Serve(sdk.Discovery(func(none) (discovery.Discovery, error) { return nowhere{}, nil }))
	case "mumbling":
		sdk.Serve(sdk.FailureDetector(mumbling))
	case "late":
		sdk.Serve(sdk.Downing(func(none) (downing.Provider, error) { return late{}, nil }))
	case "phi":
		sdk.Serve(sdk.FailureDetector(func(none) (fd.Factory, error) { return fd.NewFactory(fd.Default()) }))
	}
}

// endless is a text of which each part is as long as it is wanted.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'w'
	}
	return len(p), nil
}

// selfish keeps every side.
type selfish struct{}

func (selfish) Class() downing.Class { return downing.Class{} }

func (selfish) Decide(_ context.Context, v downing.View) (downing.Decision, error) {
	d := downing.Decision{Verdict: downing.KeepSide, Reason: "mine"}
	for _, m := range v.Side().Lost() {
		d.Down = append(d.Down, m.Node)
	}
	return d, nil
}

// undecided has no answer when members are lost.
type undecided struct{ downing.KeepMajority }

func (u undecided) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	if len(v.Side().Lost()) > 0 {
		fmt.Fprintln(os.Stderr, "what now")
		return downing.Decision{}, errors.New("hard to say")
	}
	return u.KeepMajority.Decide(ctx, v)
}

// forgetful says that it is pure, but its answer depends on its process.
type forgetful struct{}

func (forgetful) Class() downing.Class { return downing.Class{Pure: true} }

func (forgetful) Decide(context.Context, downing.View) (downing.Decision, error) {
	return downing.Decision{Reason: strconv.Itoa(os.Getpid())}, nil
}

// picky has no answer where a region is leaving.
type picky struct{}

func (picky) Allocate(context.Context, allocation.AllocateRequest) (allocation.AllocateResult, error) {
	return allocation.AllocateResult{Reason: "none is good enough"}, nil
}

func (picky) Rebalance(_ context.Context, r allocation.RebalanceRequest) (allocation.RebalanceResult, error) {
	if slices.ContainsFunc(r.Regions, func(s allocation.RegionState) bool { return s.Leaving }) {
		return allocation.RebalanceResult{}, errors.New("wait until it has left")
	}
	return allocation.RebalanceResult{Reason: "fine"}, nil
}

// hasty forms a cluster at once.
type hasty struct{}

func (hasty) Decide(context.Context, bootstrap.Observations) (bootstrap.Decision, error) {
	return bootstrap.Decision{Action: bootstrap.Form, Reason: "why wait"}, nil
}

// fickle finds contact points each time that it has never found before.
type fickle struct{ asked atomic.Int32 }

func (f *fickle) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	n := int(f.asked.Add(1))
	var found discovery.Targets
	for i := range 3 {
		found.List = append(found.List, discovery.Target{Host: fmt.Sprintf("10.%d.%d.%d", n>>8&255, n&255, 1+i), Port: 7946})
	}
	return found, nil
}

// mumbler has no answer once a node has answered five times.
type mumbler struct {
	fd.Detector
	heard int
}

func mumbling(none) (fd.Factory, error) {
	phi, err := fd.NewFactory(fd.Default())
	return func() fd.Detector { return &mumbler{Detector: phi()} }, err
}

func (m *mumbler) Heartbeat(at time.Time) {
	if m.heard++; m.heard > 5 {
		panic("I have heard enough")
	}
	m.Detector.Heartbeat(at)
}

// late answers when nobody waits any more.
type late struct{ downing.KeepMajority }

func (l late) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	if len(v.Side().Lost()) > 0 {
		<-ctx.Done()
		return downing.Decision{}, ctx.Err()
	}
	return l.KeepMajority.Decide(ctx, v)
}

// nowhere finds nothing.
type nowhere struct{}

func (nowhere) Lookup(context.Context, discovery.Query) (discovery.Targets, error) {
	return discovery.Targets{Reason: "nothing is there"}, nil
}

func config(as string, policy plugins.Policy) plugins.Config {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := plugins.Default()
	c.Path, c.Policy, c.Environment = self, policy, map[string]string{role: as}
	return c
}

func tried(as string) trial.Plugin {
	return trial.Plugin{
		Config: config(as, ""), Nodes: 3, Partitions: 100, For: time.Millisecond, Seed: 0,
		Kit: func(policy plugins.Policy, pattern string) []string { return []string{"kit", string(policy), pattern} },
	}
}

// names returns the names of the checks, and of those that failed.
func names(r trial.Report) (all, failed []string) {
	for _, c := range r.Checks {
		all = append(all, c.Name)
		if !c.OK {
			failed = append(failed, c.Name)
		}
	}
	return all, failed
}

func TestAGoodPluginPassesEveryCheck(t *testing.T) {
	t.Setenv("TRIAL_AS", "keep-majority")
	p := tried("keep-majority")
	done := 0
	p.Done = func(trial.Check) { done++ }
	r, err := p.Run(t.Context())
	require.NoError(t, err)
	all, failed := names(r)
	require.Empty(t, failed, "%+v", r.Checks)
	require.True(t, r.OK)
	require.Len(t, all, done)
	for _, name := range []string{"start", "kit/Settings", "kit/Memory", "sim/every-fault", "sim/partitions", "sim/chaos-7", "sim/split-9", "sim/chaos-50"} {
		require.Contains(t, all, name)
	}
	require.True(t, slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, "kit/Suite/") }))
	require.NotContains(t, all, "kit/Suite", "what has parts of its own is no check")
}

// Each check of sim finds its fault, and says how it is repeated.
func TestFaultsAreFound(t *testing.T) {
	for _, test := range []struct{ as, check, text, repeat string }{
		{"selfish", "sim/every-fault", "", "--only sim/every-fault"},
		{"selfish", "sim/split-9", "seed ", "--only sim/split-9 --seed "},
		{"selfish", "sim/partitions", "sides go on", "--only sim/partitions --seed "},
		{"undecided", "sim/partitions", "hard to say", "--only sim/partitions --seed "},
		{"undecided", "sim/every-fault", "hard to say", "--only sim/every-fault"},
		{"undecided", "sim/chaos-50", "hard to say", "--only sim/chaos-50 --seed "},
		{"late", "sim/split-9", "deadline exceeded", "--only sim/split-9 --seed "},
		{"mumbling", "trace/", "heard enough", "--only trace/"},
		{"undecided", "sim/chaos-7", "hard to say", "--only sim/chaos-7 --seed "},
		{"picky", "sim/allocation", "wait until it has left", "--only sim/allocation --seed "},
		{"fickle", "sim/bootstrap", "not settled", "--only sim/bootstrap --seed "},
		{"empty", "sim/bootstrap", "no contact point is found", "--only sim/bootstrap --seed "},
		{"hasty", "sim/bootstrap", "not settled", "--only sim/bootstrap --seed "},
	} {
		t.Run(test.as+" "+test.check, func(t *testing.T) {
			p := tried(test.as)
			p.For, p.Only = 20*time.Second, []string{test.check}
			if test.as == "late" {
				p.Config.CallTimeout = 200 * time.Millisecond // What is late otherwise comes of a busy machine.
			}
			r, err := p.Run(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, r.Checks)
			require.False(t, r.OK)
			require.Contains(t, r.Checks[0].Text, test.text)
			if test.as == "undecided" {
				require.Contains(t, r.Checks[0].Log, "what now", "what it prints is in the report")
			}
			require.True(t, strings.HasPrefix(r.Checks[0].Repeat, test.repeat), r.Checks[0].Repeat)
		})
	}
}

// script writes a plugin that is a file of its own: it runs the test binary as one.
func script(t *testing.T, as string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), as)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+role+"="+as+" exec "+self+"\n"), 0o700))
	return path
}

// run runs a command line with the command quorate, and returns what it prints.
func run(t *testing.T, quorate, line string) (out string, status int) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Symlink(quorate, filepath.Join(dir, "quorate")))
	shell := exec.Command("sh", "-c", line)
	shell.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	text, err := shell.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(text), exit.ExitCode()
	}
	require.NoError(t, err, string(text))
	return string(text), 0
}

// The command that a failed check prints repeats it alone, with the same finding. As JSON the
// report says the same.
func TestThePrintedCommandsRepeatTheirChecks(t *testing.T) {
	quorate := plugintest.Build(t, "github.com/quorate/quorate/tools/cmd/quorate")
	for as, checks := range map[string][]string{
		"selfish": {"sim/every-fault", "sim/partitions", "sim/split-9"}, "forgetful": {"kit/Restart"},
		"fickle": {"sim/bootstrap"}, "picky": {"sim/allocation"}, "mumbling": {"trace/regular"},
	} {
		for _, check := range checks {
			t.Run(as+" "+check, func(t *testing.T) {
				line := "quorate --json plugin test " + script(t, as) + " --nodes 3 --for 20s --calls 100 --only " + check
				text, status := run(t, quorate, line)
				require.Equal(t, 1, status, text)
				first := decoded(t, text)
				require.False(t, first.OK)
				failed := first.Checks[len(first.Checks)-1]
				require.True(t, strings.HasPrefix(failed.Repeat, "quorate plugin test "), failed.Repeat)
				text, status = run(t, quorate, strings.Replace(failed.Repeat, "quorate", "quorate --json", 1))
				require.Equal(t, 1, status, text)
				again := decoded(t, text).Checks
				require.Len(t, again, 1, "it runs alone")
				require.Equal(t, failed.Name, again[0].Name)
				if !strings.HasPrefix(check, "kit/") { // What the kit prints has process ids in it.
					require.Equal(t, failed.Text, again[0].Text)
				}
			})
		}
	}
}

// decoded reads a report, which has the fields of the package and no others.
func decoded(t *testing.T, text string) (r trial.Report) {
	t.Helper()
	text, _, _ = strings.Cut(text, "\nquorate: ") // The last line, of the standard error.
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&r), text)
	require.NotEmpty(t, r.Name)
	require.NotEmpty(t, r.Policy)
	require.Len(t, r.SHA256, 64)
	require.NotEmpty(t, r.Checks)
	return r
}

// A part of the kit that fails is a check with what it has printed, and can be repeated alone.
func TestThePartsOfTheKitAreChecks(t *testing.T) {
	t.Setenv("TRIAL_AS", "forgetful")
	p := tried("forgetful")
	p.Only = []string{"kit"}
	r, err := p.Run(t.Context())
	require.NoError(t, err)
	_, failed := names(r)
	require.NotEmpty(t, failed)
	i := slices.IndexFunc(r.Checks, func(c trial.Check) bool { return !c.OK })
	require.Contains(t, failed, "kit/Restart")
	require.NotEmpty(t, r.Checks[i].Log)
	require.Equal(t, "--only "+failed[0], r.Checks[i].Repeat)
	p.Only = failed[:1]
	r, err = p.Run(t.Context())
	require.NoError(t, err)
	all, again := names(r)
	require.Equal(t, failed[:1], again)
	require.Len(t, all, 1)
}

// A kit that prints what cannot be read, such as a value without end in a failure, is cut short,
// and not waited for.
func TestAKitThatPrintsTooMuchIsNotWaitedFor(t *testing.T) {
	t.Setenv("TRIAL_AS", "wordy")
	p := tried("keep-majority")
	p.Only = []string{"kit"}
	ctx := patience.Context(t)
	r, err := p.Run(ctx)
	require.NoError(t, err)
	require.Len(t, r.Checks, 1)
	require.False(t, r.OK)
	require.Contains(t, r.Checks[0].Text, "the kit was cut short at its beginning: it has printed a line of more than 1048576 bytes")
}

func TestAJudgeIsMeasuredBesidePhi(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rack.txt")
	require.NoError(t, os.WriteFile(path, []byte("1\n2\n3\n4\n"), 0o600))
	p := tried("phi")
	p.Only, p.Traces = []string{"trace"}, []string{path}
	r, err := p.Run(t.Context())
	require.NoError(t, err)
	require.True(t, r.OK)
	require.Equal(t, "trace/"+path, r.Checks[len(r.Checks)-1].Name)
	for _, c := range r.Checks {
		var own, phi string
		own, phi, _ = strings.Cut(strings.TrimPrefix(c.Text, "marked after "), "; phi ")
		require.Equal(t, strings.ReplaceAll(own, " false marks", ""), phi, "it is phi itself")
	}
}

func TestWhatCannotBeTriedSaysWhy(t *testing.T) {
	p := tried("keep-majority")
	p.Only = []string{"trace"}
	_, err := p.Run(t.Context())
	require.ErrorIs(t, err, trial.ErrNotRun)
	require.ErrorContains(t, err, "no check of the policy downing begins with trace")
	p = tried("phi")
	p.Only, p.Traces = []string{"trace"}, []string{filepath.Join(t.TempDir(), "none")}
	_, err = p.Run(t.Context())
	require.ErrorIs(t, err, trial.ErrNotRun)
	p.Config.Path = filepath.Join(t.TempDir(), "none")
	_, err = p.Run(t.Context())
	require.ErrorIs(t, err, trial.ErrNotRun)
	require.ErrorContains(t, err, "there is no such file")
}

const examples = "github.com/quorate/quorate/examples/plugins/"

// witnessd runs the witness of the examples until the end of the test, and returns its URL.
func witnessd(t *testing.T) string {
	t.Helper()
	d := exec.Command(plugintest.Build(t, examples+"witnessd"), "-listen", "127.0.0.1:0", "-state", filepath.Join(t.TempDir(), "votes.json"))
	out, err := d.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, d.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(lines.Text())
	require.NotNil(t, address, lines.Text())
	drained := make(chan struct{})
	go func() { // Ends with the process; the cleanup waits.
		defer close(drained)
		_, _ = io.Copy(io.Discard, out)
	}()
	t.Cleanup(func() {
		require.NoError(t, d.Process.Kill())
		<-drained
		require.Error(t, d.Wait())
	})
	return "http://" + address[1] + "/"
}

// deadMachines serves a list of nodes as the API of Kubernetes does, one for each member of the trials, and returns its
// URL. None has been ready for a long time.
func deadMachines(t *testing.T) string {
	t.Helper()
	hosts := []string{"127.0.0.1"}
	for i := range 100 {
		hosts = append(hosts, fmt.Sprint("n", i), downingtest.Node(i).Address.Host)
	}
	for i, host := range hosts {
		hosts[i] = fmt.Sprintf(`{"metadata": {"name": %q}, "status": {"addresses": [{"address": %q}],
			"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, host, host)
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items": [`+strings.Join(hosts, ",")+`]}`)
	}))
	t.Cleanup(api.Close)
	return api.URL
}

// The command tries every example of the project.
func TestTheExamplesPass(t *testing.T) {
	quorate := plugintest.Build(t, "github.com/quorate/quorate/tools/cmd/quorate")
	script := filepath.Join(t.TempDir(), "inventory.sh")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" = quorate ] && printf '10.0.0.%d:7946\\n' 1 2 3\nexit 0\n"), 0o700))
	operator := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"allowed": true, "reason": "a test"}`)
	}))
	defer operator.Close()
	for name, settings := range map[string]string{
		"zoneaware": "skew: 1\n", "quantile": "factor: 3\n", "inventory": "command: [" + script + "]\n",
		"maintenance": "windows: [{days: [sat], from: \"22:00\", to: \"04:00\"}]\n",
		"kubernetes":  "url: " + deadMachines(t) + "\ntoken-file: " + os.DevNull + "\nca-file: \"\"\n",
		"prometheus":  "url: " + operator.URL + "\nqueries: [cpu]\n", // Of an operator it has no values.
		"approval":    "url: " + operator.URL + "\n", "witness": "url: " + witnessd(t) + "\ncluster: bank\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "settings.yaml")
			require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
			page := filepath.Join(t.TempDir(), "report.html")
			var out bytes.Buffer
			run := exec.Command(quorate, "plugin", "test", plugintest.Build(t, examples+name), "--settings", file, "--for", "1s", "--calls", "500", "--nodes", "3", "--html", page)
			run.Stdout, run.Stderr = &out, &out
			require.NoError(t, run.Run(), out.String())
			for line := range strings.Lines(out.String()) {
				require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
			}
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			require.Contains(t, string(text), "all checks passed")
		})
	}
}
