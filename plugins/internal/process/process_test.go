// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package process_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/internal/process"
)

// Real processes under a launcher. After what the tests share come programs that are no
// plugins, processes that are stopped, linger or have children, the environment and output
// of a process, and last which file is run: the copy, checked at each start.

// program builds the misbehaving plugin once, and returns its path.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "misbehaving-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "misbehaving")
	out, err := exec.Command("go", "build", "-o", path, "./testdata/misbehaving").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// fixture is a launcher with the misbehaving plugin staged. The test fails if it leaves a
// process, file, descriptor or goroutine behind.
type fixture struct {
	t        *testing.T
	base     string
	launcher *process.Launcher
	binary   *process.Binary
	logs     *logtest.Buffer

	confinement process.Confinement // Of the next launch.
	leftOut     func(bytes int)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	patience.Watch(t)
	leaks := goleak.IgnoreCurrent()
	base, err := os.MkdirTemp("", "p") //nolint:usetesting // The paths of sockets are short.
	require.NoError(t, err)
	f := &fixture{t: t, base: base, logs: new(logtest.Buffer)}
	f.launcher, err = process.Open(base, slog.New(slog.NewTextHandler(f.logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	files := openFiles(t)
	f.binary, err = f.launcher.Stage(t.Context(), path, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Empty(t, children(t), "processes are left")
		goleak.VerifyNone(t, leaks)
		require.NoError(t, f.launcher.Close())
		goleak.VerifyNone(t, leaks)
		require.LessOrEqual(t, openFiles(t), files, "files are open")
		left, err := os.ReadDir(base)
		require.NoError(t, err)
		require.Empty(t, left, "files are left")
		require.NoError(t, os.Remove(base))
	})
	return f
}

// launch starts the program in a mode.
func (f *fixture) launch(ctx context.Context, mode string, env ...string) (*process.Process, error) {
	environment := map[string]string{}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		environment[name] = value
	}
	p, err := f.launcher.Launch(ctx, f.binary, process.Command{Name: "subject", Args: []string{mode}, Environment: environment, Versions: []int{plugins.Version1}, Confinement: f.confinement, LeftOut: f.leftOut})
	if err == nil {
		f.t.Cleanup(func() { require.NoError(f.t, p.Kill(0)) }) // The test may have failed before it ended the process.
	}
	return p, err
}

// openFiles counts the open files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// children lists the processes whose parent is this one.
func children(t *testing.T) []string {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	var pids []string
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err == nil {
			for pid := range strings.FieldsSeq(string(text)) {
				state, _ := os.ReadFile("/proc/" + pid + "/stat")
				pids = append(pids, string(state))
			}
		}
	}
	return pids
}

// alive reports whether a process runs, which a zombie does not.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func TestProcessIsLaunchedAskedAndStopped(t *testing.T) {
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "good")
	require.NoError(t, err)
	require.Equal(t, plugins.Version1, p.Contract())
	require.True(t, alive(p.PID()))
	require.NoError(t, p.Health(t.Context()))
	require.NoError(t, p.Kill(time.Minute))
	patience.Receive(t, p.Exited(), "the end of the process")
	require.Error(t, p.Health(t.Context()))
	require.NoError(t, p.Kill(time.Second), "again")
	require.Contains(t, p.Err().Error(), "exit status 0")
}

// A program that is no plugin, or none for this host, is refused within a bounded time, with
// an error that says what it is. covers B59, F57, F58.
func TestStrangersAreRefused(t *testing.T) {
	for mode, c := range map[string]struct {
		err  error
		want string
	}{
		"exit":       {plugins.ErrNotPlugin, "no configuration, giving up"},
		"silent":     {plugins.ErrStartTimeout, "printed nothing"},
		"garbage":    {plugins.ErrNotPlugin, `"hello, I am a web server\n"`},
		"binary":     {plugins.ErrNotPlugin, "no handshake"},
		"flood":      {plugins.ErrNotPlugin, "first line has more than 16384 bytes"},
		"floodline":  {plugins.ErrStartTimeout, "yyyy"},
		"future":     {plugins.ErrVersion, "the plugin offers version 7, the host speaks 1 to 1"},
		"core":       {plugins.ErrVersion, `its handshake has version "2"`},
		"netrpc":     {plugins.ErrNotPlugin, `it speaks "netrpc", not grpc`},
		"elsewhere":  {plugins.ErrNotPlugin, "docker.sock"},
		"tcp":        {plugins.ErrNotPlugin, "203.0.113.7:80"},
		"nocert":     {plugins.ErrNotPlugin, "no certificate"},
		"fields":     {plugins.ErrNotPlugin, "no handshake"},
		"noaccept":   {plugins.ErrStartTimeout, "printed nothing"},
		"saysbye":    {plugins.ErrNotPlugin, "exit status 0"},
		"stubborn":   {plugins.ErrStartTimeout, "printed nothing"},
		"forksilent": {plugins.ErrStartTimeout, "printed nothing"},
		"forkexit":   {plugins.ErrNotPlugin, "16384 bytes"},
	} {
		t.Run(mode, func(t *testing.T) {
			f := newFixture(t)
			ctx, watch := patience.Context(t), patience.Start(t)
			if errors.Is(c.err, plugins.ErrStartTimeout) {
				ctx = patience.Expiring(t, 400*time.Millisecond)
			}
			_, err := f.launch(ctx, mode)
			require.ErrorIs(t, err, c.err)
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 1500)
			require.Less(t, watch.Elapsed(), 10*time.Second)
			var fault *process.StartError
			require.ErrorAs(t, err, &fault)
			require.NotEmpty(t, fault.Cure)
		})
	}
}

func TestLaunchEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(100*time.Millisecond, cancel)
	defer timer.Stop()
	_, err := f.launcher.Launch(ctx, f.binary, process.Command{Name: "subject", Args: []string{"silent"}, Versions: []int{1}})
	require.ErrorIs(t, err, context.Canceled)
	cancel()
	_, err = f.launcher.Launch(ctx, f.binary, process.Command{Name: "subject", Args: []string{"silent"}, Versions: []int{1}})
	require.ErrorIs(t, err, context.Canceled)
}

// covers F56.
func TestStoppedProcessIsNoticedAndKilledInTime(t *testing.T) {
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "good")
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGSTOP))
	patience.Eventually(t, func() bool { // The signal may arrive late.
		return p.Health(patience.Expiring(t, 200*time.Millisecond)) != nil
	}, "it does not answer")
	watch := patience.Start(t)
	require.NoError(t, p.Kill(500*time.Millisecond))
	require.Less(t, watch.Elapsed(), 10*time.Second)
	patience.Receive(t, p.Exited(), "the end of the process")
}

// A process that goes on after it was told to stop is killed when its grace has passed.
func TestProcessThatLingersIsKilled(t *testing.T) {
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "lingers")
	require.NoError(t, err)
	began := time.Now()
	require.NoError(t, p.Kill(300*time.Millisecond))
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond)
	require.ErrorContains(t, p.Err(), "killed")
}

// covers F56, F57.
func TestGrandchildrenGoWithTheProcess(t *testing.T) {
	for name, end := range map[string]func(p *process.Process) error{
		"killed by the host":   func(p *process.Process) error { return p.Kill(0) },
		"stopped by the host":  func(p *process.Process) error { return p.Kill(time.Second) },
		"killed by a stranger": func(p *process.Process) error { return syscall.Kill(p.PID(), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			file := filepath.Join(t.TempDir(), "pid")
			p, err := f.launch(patience.Context(f.t), "forks", "GRANDCHILD="+file)
			require.NoError(t, err)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			grandchild, err := strconv.Atoi(string(text))
			require.NoError(t, err)
			require.True(t, alive(grandchild))
			require.NoError(t, end(p))
			patience.Receive(t, p.Exited(), "the end of the process")
			patience.Eventually(t, func() bool { return !alive(grandchild) }, "the grandchild has ended")
		})
	}
}

// On systems where the end of a process cannot be awaited without reaping the process, its
// group is killed after the process was reaped, and not before.
func TestProcessLivesWhereTheEndCannotBeAwaited(t *testing.T) {
	f := newFixture(t)
	f.launcher.AwaitNothing()
	file := filepath.Join(t.TempDir(), "pid")
	p, err := f.launch(patience.Context(f.t), "forks", "GRANDCHILD="+file)
	require.NoError(t, err)
	require.NoError(t, p.Health(t.Context()))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	grandchild, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(p.PID(), syscall.SIGKILL))
	patience.Receive(t, p.Exited(), "the end of the process")
	patience.Eventually(t, func() bool { return !alive(grandchild) }, "the grandchild has ended")
}

func TestEnvironmentIsWhatWasNamed(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "s3cret")
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "good", "NAMED=value")
	require.NoError(t, err)
	text, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/environ")
	require.NoError(t, err)
	var names []string
	for variable := range strings.SplitSeq(strings.TrimRight(string(text), "\x00"), "\x00") {
		name, _, _ := strings.Cut(variable, "=")
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{
		"NAMED", plugins.CookieKey, plugins.HostPID, "PLUGIN_CLIENT_CERT", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT",
		"PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR",
	}, names)
	stdin, err := os.Readlink("/proc/" + strconv.Itoa(p.PID()) + "/fd/0")
	require.NoError(t, err)
	require.Equal(t, "/dev/null", stdin)
	require.NoError(t, p.Kill(time.Second))
}

// Lines that a plugin logs or prints reach the log of the host with the plugin's name. A
// line that only looks like a record is logged as text.
func TestOutputIsLogged(t *testing.T) {
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "prints")
	require.NoError(t, err)
	f.logs.Await(t, `"line 50"`)
	require.NoError(t, p.Kill(time.Second))
	text := f.logs.String()
	require.Contains(t, text, `level=WARN msg="the plugin logs" plugin=subject text="from the plugin" with.answer=42`)
	require.Contains(t, text, `msg="the plugin prints" plugin=subject text="plain words " stream=stderr`)
	require.Contains(t, text, `{\"@level\":\"warn\",\"@message\":7}`)
}

// covers F57.
func TestFloodOfLinesIsCounted(t *testing.T) {
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "floods")
	require.NoError(t, err)
	f.logs.Await(t, "lines_left_out")
	require.NoError(t, p.Kill(time.Second))
	require.Less(t, strings.Count(f.logs.String(), "text=zzz"), 3000)
}

// A launcher runs its copy: the file at the path may change after it was staged. covers F58.
func TestReplacedFileIsNotRun(t *testing.T) {
	f := newFixture(t)
	original, err := program()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "plugin")
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o700))
	sum := sha256.Sum256(text)
	f.binary, err = f.launcher.Stage(t.Context(), path, plugins.Checksums{strings.Repeat("ab", 32), hex.EncodeToString(sum[:])})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o700))
	p, err := f.launch(patience.Context(f.t), "good")
	require.NoError(t, err)
	require.NoError(t, p.Kill(time.Second))
	_, err = f.launcher.Stage(t.Context(), path, plugins.Checksums{strings.Repeat("ab", 32), hex.EncodeToString(sum[:])})
	require.ErrorIs(t, err, plugins.ErrChecksum)
}

// A file needs one of the checksums of the configuration; where it has none of them, the error has its own.
func TestAFileHasOneOfTheChecksums(t *testing.T) {
	f := newFixture(t)
	path := filepath.Join(t.TempDir(), "plugin")
	require.NoError(t, os.WriteFile(path, []byte("text"), 0o700))
	const sum = "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"
	one, two := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, sums := range []plugins.Checksums{nil, {sum}, {strings.ToUpper(sum)}, {one, sum}, {sum, two}} {
		b, err := f.launcher.Stage(t.Context(), path, sums)
		require.NoError(t, err, "%v", sums)
		require.Equal(t, sum, b.Sum())
		b.Remove()
	}
	for want, sums := range map[string]plugins.Checksums{
		"the file has " + sum + ", the configuration says " + one:              {one},
		"the file has " + sum + ", none of the 2 that the configuration names": {one, two},
		"the file has " + sum + ", none of the 0 that the configuration names": {},
		"the file has " + sum + ", the configuration says " + sum[:63]:         {sum[:63]},
	} {
		_, err := f.launcher.Stage(t.Context(), path, sums)
		require.ErrorIs(t, err, plugins.ErrChecksum)
		require.ErrorContains(t, err, want)
	}
}

func TestFilesThatCannotBeRunAreNamed(t *testing.T) {
	f := newFixture(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o700))
	for name, c := range map[string]struct{ path, want string }{
		"missing":        {filepath.Join(dir, "missing"), "no such file"},
		"directory":      {dir, "is a directory"},
		"not executable": {write("data", "data", 0o600), "not executable"},
		"pipe":           {fifo, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.launcher.Stage(t.Context(), c.path, nil)
			require.ErrorIs(t, err, plugins.ErrNotPlugin)
			require.ErrorContains(t, err, c.want)
		})
	}
	for name, text := range map[string]string{"empty": "", "data": "\x7fELF not really", "no interpreter": "#!/does/not/exist\n"} {
		t.Run(name, func(t *testing.T) {
			b, err := f.launcher.Stage(t.Context(), write("run-"+strings.ReplaceAll(name, " ", "-"), text, 0o700), nil)
			require.NoError(t, err)
			_, err = f.launcher.Launch(t.Context(), b, process.Command{Name: "subject", Versions: []int{1}})
			require.ErrorIs(t, err, plugins.ErrNotPlugin)
			require.ErrorContains(t, err, "cannot be executed")
		})
	}
	t.Run("script that is no plugin", func(t *testing.T) {
		b, err := f.launcher.Stage(t.Context(), write("script", "#!/bin/sh\necho usage: script file >&2\nexit 2\n", 0o700), nil)
		require.NoError(t, err)
		_, err = f.launcher.Launch(t.Context(), b, process.Command{Name: "subject", Versions: []int{1}})
		require.ErrorIs(t, err, plugins.ErrNotPlugin)
		require.ErrorContains(t, err, "exit status 2")
		require.ErrorContains(t, err, "usage: script file")
	})
}

// The copy is checked before each start: one that was changed, though it is protected, does
// not run.
func TestCopyIsCheckedAtEachStart(t *testing.T) {
	f := newFixture(t)
	found, err := filepath.Glob(f.base + "/quorate-*/b1/misbehaving")
	require.NoError(t, err)
	require.Len(t, found, 1)
	p, err := f.launch(patience.Context(f.t), "good")
	require.NoError(t, err)
	require.NoError(t, p.Kill(time.Second))
	require.NoError(t, os.Chmod(found[0], 0o700))
	file, err := os.OpenFile(found[0], os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = file.WriteString("more")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = f.launch(patience.Context(f.t), "good")
	require.ErrorIs(t, err, plugins.ErrChecksum)
}
