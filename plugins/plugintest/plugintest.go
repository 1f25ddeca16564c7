// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// [Test] runs the parts of the kit one after the other, each on processes of its own. The
// helpers that open, ask and signal a plugin come before the parts that use them.

// Limit is how long a plugin may take to start again, and to end. Time in which the process of the test did not
// run, since its machine had other work, does not count.
const Limit = 5 * time.Second

// part is one part of the kit.
type part struct {
	name string
	run  func(testing.TB, plugins.Config)
}

func parts() []part {
	return []part{
		{"Describe", describesItself},
		{"Settings", refusesUnknownSettings},
		{"Restart", answersAfterARestart},
		{"Interrupt", outlivesAnInterrupt},
		{"Termination", endsWhenTerminated},
		{"Stop", endsWhenStopped},
		{"Concurrency", answersManyAtOnce},
		{"BadRequests", survivesBadRequests},
		{"GivenUp", survivesCallsGivenUp},
		{"Hang", isReplacedWhenItHangs},
		{"ByHand", refusesToRunByHand},
	}
}

// Test runs the kit on a plugin. The configuration is as in a cluster's file, except that
// the path may be relative to the working directory, and that a missing checksum is taken
// from the file. The plugin must start with the settings.
func Test(t *testing.T, c plugins.Config, opts ...Option) {
	t.Helper()
	o := options{calls: callsUsual}
	for _, opt := range opts {
		opt(&o)
	}
	c = pinned(t, c)
	t.Run("Suite", func(t *testing.T) { suite(t, c) })
	for _, p := range parts() {
		t.Run(p.name, func(t *testing.T) { p.run(t, c) })
	}
	t.Run("Memory", func(t *testing.T) { keepsItsMemory(t, c, o.calls) })
}

// Build builds a Go package, named as for go build, and returns the path of the
// binary, which is removed with the test.
func Build(tb testing.TB, pkg string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "plugin")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", path, pkg)
	if text, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("go build %s: %v\n%s", pkg, err, text)
	}
	return path
}

// pinned completes the configuration by an absolute path and a checksum. A plugin that hangs is replaced while it is
// tested, whether it may be debugged or not.
func pinned(tb testing.TB, c plugins.Config) plugins.Config {
	tb.Helper()
	path, err := filepath.Abs(c.Path)
	if err != nil {
		tb.Fatal(err)
	}
	c.Path, c.Debug = path, false
	if len(c.SHA256) > 0 || c.Unpinned {
		return c
	}
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		tb.Fatal(err)
	}
	c.SHA256 = plugins.Checksums{hex.EncodeToString(hash.Sum(nil))}
	return c
}

// tested is the name under which plugins are started.
const tested = "tested"

// heard returns options with which a part that fails shows what happened to the plugin, and the last lines that it
// printed.
func heard(tb testing.TB) []host.Option {
	tb.Helper()
	printed := new(host.Output)
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		lines, all := printed.Lines()
		if all == 0 {
			tb.Log("the plugin has printed nothing")
			return
		}
		tb.Logf("printed by the plugin, the last %d lines of %d:\n  %s", len(lines), all, strings.Join(lines, "\n  "))
	})
	return []host.Option{host.WithOutput(printed), host.WithLogger(slog.New(slog.NewTextHandler(tb.Output(), nil)))}
}

// open runs the plugin until the end of the test.
func open(tb testing.TB, c plugins.Config, options ...host.Option) *host.Plugin {
	tb.Helper()
	patience.Watch(tb)
	p, err := host.Open(tb.Context(), tested, c, append(options, heard(tb)...)...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closed(tb, p) })
	return p
}

// closed closes the plugin, which a part may have closed already.
func closed(tb testing.TB, p *host.Plugin) {
	tb.Helper()
	// The context of the test has ended when the cleanup runs.
	//quorate:realtime Its end leaves the plugin to be killed, which the kit tells.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), 2*Limit)
	defer cancel()
	if err := p.Close(ctx); err != nil {
		tb.Errorf("the plugin was not closed: %v", err)
	}
}

// suite runs the suite of the plugin's policy, each part with a process of its own.
func suite(t *testing.T, c plugins.Config) {
	t.Helper()
	k, ok := suites()[c.Policy]
	if !ok {
		t.Fatalf("there is no suite for the policy %q", c.Policy)
	}
	k.suite(t, func(tb testing.TB) *host.Plugin {
		tb.Helper()
		return open(tb, c)
	})
}

const unknownKey = "plugintest-unknown-setting"

// refusesUnknownSettings sends them past the host, which refuses what the schema of the plugin does.
func refusesUnknownSettings(tb testing.TB, c plugins.Config) {
	tb.Helper()
	settings := map[string]any{unknownKey: true}
	maps.Copy(settings, c.Settings)
	faults := connected(tb, c).configure(tb, settings)
	if len(faults) == 0 {
		tb.Fatalf("a setting that does not exist is accepted: %s", unknownKey)
	}
	for _, f := range faults {
		if f.GetKey() == unknownKey {
			return
		}
	}
	tb.Fatalf("the unknown setting is not named: %v", faults)
}

// ask asks the plugin a simple question, and returns the answer.
func ask(ctx context.Context, tb testing.TB, p *host.Plugin) (any, error) {
	tb.Helper()
	return suites()[p.Manifest().Policy].ask(ctx, tb, p)
}

// await waits until a condition holds, for as long as Limit.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	within(tb, Limit, what, holds)
}

// within waits until a condition holds, for as long as a limit.
func within(tb testing.TB, most time.Duration, what string, holds func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for watch := patience.Start(tb); !holds(); <-tick.C {
		if watch.Elapsed() > most {
			tb.Fatalf("%s: not within %v", what, most)
		}
	}
}

// send sends a signal to the running process, and returns its id.
func send(tb testing.TB, p *host.Plugin, s os.Signal) int {
	tb.Helper()
	pid := p.Status().PID
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Signal(s)
	}
	if err != nil {
		tb.Fatalf("process %d cannot be sent %v: %v", pid, s, err)
	}
	return pid
}

func answersAfterARestart(tb testing.TB, c plugins.Config) {
	tb.Helper()
	p := open(tb, c)
	before, err := ask(tb.Context(), tb, p)
	if err != nil {
		tb.Fatalf("no answer: %v", err)
	}
	pid := send(tb, p, os.Kill)
	await(tb, "another process runs", func() bool { now := p.Status().PID; return now != 0 && now != pid })
	after, err := ask(tb.Context(), tb, p)
	if err != nil {
		tb.Fatalf("no answer after a restart: %v", err)
	}
	if p.Manifest().Class.Pure && !reflect.DeepEqual(before, after) {
		tb.Fatalf("it is pure, but answered %v before a restart, and %v after it", before, after)
	}
}

func outlivesAnInterrupt(tb testing.TB, c plugins.Config) {
	tb.Helper()
	if runtime.GOOS == "windows" {
		return // On Windows another process cannot be sent an interrupt.
	}
	p := open(tb, c)
	pid := send(tb, p, os.Interrupt)
	// An answer of the same process says that it has survived; a handler that ends it has
	// had the time of a few calls.
	for range 20 {
		if _, err := ask(tb.Context(), tb, p); err != nil {
			tb.Fatalf("no answer after an interrupt: %v", err)
		}
	}
	if now := p.Status().PID; now != pid {
		tb.Fatalf("process %d was ended by an interrupt, now there is %d", pid, now)
	}
}

func endsWhenTerminated(tb testing.TB, c plugins.Config) {
	tb.Helper()
	if runtime.GOOS == "windows" {
		return // Windows has no such signal.
	}
	p := open(tb, c)
	pid := send(tb, p, syscall.SIGTERM)
	await(tb, "the process has ended", func() bool { return p.Status().PID != pid })
}

func endsWhenStopped(tb testing.TB, c plugins.Config) {
	tb.Helper()
	var forced atomic.Bool
	p := open(tb, c, host.WithObserver(func(e plugins.Event) {
		if e.Type == plugins.Exited && e.Err != nil && strings.Contains(e.Err.Error(), "signal: killed") {
			forced.Store(true)
		}
	}))
	watch := patience.Start(tb)
	closed(tb, p)
	if forced.Load() {
		tb.Fatalf("told to end it did not, and was killed")
	}
	if took := watch.Elapsed(); took > Limit/2 {
		tb.Fatalf("it ended %v after it was told to, probably by force", took)
	}
}

func refusesToRunByHand(tb testing.TB, c plugins.Config) {
	tb.Helper()
	ctx := patience.Expiring(tb, Limit)
	run := exec.CommandContext(ctx, c.Path, c.Args...)
	run.Env = []string{}
	for name, value := range c.Environment {
		run.Env = append(run.Env, name+"="+value)
	}
	text, err := run.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		tb.Fatalf("started by hand, it does not end within %v, and says %.400q", Limit, text)
	case err == nil:
		tb.Fatalf("started by hand, it ends as if all were well, and says %.400q", text)
	case len(text) == 0:
		tb.Fatalf("started by hand, it says nothing")
	}
}
