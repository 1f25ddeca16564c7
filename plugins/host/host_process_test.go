// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/allocation"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// Plugins as real processes under a host. First come the programs that the tests run and
// what they share: watching a plugin, and finding what it leaves behind. Then plugins are
// opened and asked; faulty ones are refused when they are opened, and faulty answers when
// they come. After that processes fail in each way and are replaced, then swapped, and last
// closed.

// The plugins of the tests, each built once: misbehaving does what its first argument says,
// and served is built with package sdk.
var (
	program = builder("../internal/process/testdata/misbehaving")
	served  = builder("./testdata/served")
)

// builder returns a function that builds a program once and returns its path.
func builder(pkg string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "plugin-")
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, filepath.Base(pkg))
		out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return path, err
	})
}

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimVariable); dir != "" {
		victim(dir)
	}
	code := m.Run()
	for _, built := range []func() (string, error){program, served, every} {
		if path, err := built(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

func checksum(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// config returns the configuration of the misbehaving plugin in a mode, with short times of
// supervision.
func config(t testing.TB, policy plugins.Policy, mode string, env ...string) plugins.Config {
	t.Helper()
	path, err := program()
	require.NoError(t, err)
	c := plugins.Config{
		Policy: policy, Path: path, SHA256: plugins.Checksums{checksum(t, path)}, Args: []string{mode},
		Environment:    map[string]string{"POLICY": string(policy), "VERSION": "one"},
		StartTimeout:   10 * time.Second,
		HealthInterval: 50 * time.Millisecond, HealthTimeout: 200 * time.Millisecond,
		RestartBackoffMin: 20 * time.Millisecond, RestartBackoffMax: 300 * time.Millisecond,
	}
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		c.Environment[name] = value
	}
	return c
}

// watcher collects the events of a plugin and the log of its host.
type watcher struct {
	host.Events

	log logtest.Buffer
}

func (w *watcher) contains(text string) bool {
	return strings.Contains(w.log.String(), text)
}

func (w *watcher) options(base string) []host.Option {
	return []host.Option{
		host.WithLogger(slog.New(slog.NewTextHandler(&w.log, nil))), host.WithObserver(w.Observe), host.WithDirectory(base),
		host.WithHostVersion("1.2.3"),
	}
}

// clean returns a directory for a host, and checks at the end of the test that
// nothing is left: no process, goroutine, file or descriptor. covers I34.
func clean(t testing.TB) string {
	t.Helper()
	_, err := program()
	require.NoError(t, err)
	base, err := os.MkdirTemp("", "h") //nolint:usetesting // The paths of sockets are short.
	require.NoError(t, err)
	patience.Watch(t)
	leaks, files := goleak.IgnoreCurrent(), descriptors(t)
	t.Cleanup(func() {
		goleak.VerifyNone(t, leaks)
		require.Empty(t, children(t), "processes are left")
		require.LessOrEqual(t, descriptors(t), files, "descriptors are left")
		left, err := os.ReadDir(base)
		require.NoError(t, err)
		require.Empty(t, left, "files are left")
		require.NoError(t, os.Remove(base))
	})
	return base
}

// open opens a plugin that is closed at the end of the test.
func open(t testing.TB, cfg plugins.Config) (*host.Plugin, *watcher) {
	t.Helper()
	base := clean(t)
	w := &watcher{}
	p, err := host.Open(t.Context(), "subject", cfg, w.options(base)...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close(context.Background())) // The context of the test has ended.
		require.NoError(t, p.Close(context.Background()), "again")
		require.Equal(t, plugins.StateStopped, p.Status().State)
	})
	return p, w
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func children(t testing.TB) []string {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	var pids []string
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil {
			pids = append(pids, strings.Fields(string(text))...)
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

func kill(t testing.TB, pid int) {
	t.Helper()
	require.Positive(t, pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// view returns what a node sees of a cluster of n members that are all up and reachable.
func view(t testing.TB, n int) downing.View {
	t.Helper()
	v := downing.View{}
	for i := range n {
		id := gossip.NodeID{Address: gossip.Address{Host: "10.0.0." + strconv.Itoa(1+i%200), Port: uint16(1000 + i/200)}, UID: gossip.UID(i + 1)}
		v.Members = append(v.Members, &gossip.Member{Node: id, Status: gossip.Up, UpNumber: gossip.UpNumber(i + 1)})
	}
	slices.SortFunc(v.Members, func(a, b *gossip.Member) int { return a.Node.Compare(b.Node) })
	v.Self = v.Members[0].Node
	var voters []gossip.NodeID
	for _, m := range v.Members {
		v.Seen = append(v.Seen, m.Node)
		voters = append(voters, m.Node)
	}
	v.Base = gossip.Base{voters}
	require.NoError(t, v.Validate())
	return v
}

func request() allocation.AllocateRequest {
	return allocation.AllocateRequest{
		Kind: "account", Regions: []allocation.RegionState{{ID: "a"}, {ID: "b"}},
		Shards: []allocation.Pending{{Shard: 1}, {Shard: 2}},
	}
}

func provider(t testing.TB, p *host.Plugin) downing.Provider {
	t.Helper()
	d, err := p.Downing()
	require.NoError(t, err)
	return d
}

func strategy(t testing.TB, p *host.Plugin) allocation.Strategy {
	t.Helper()
	s, err := p.Allocation()
	require.NoError(t, err)
	return s
}

func TestPluginDecides(t *testing.T) {
	p, w := open(t, config(t, plugins.Downing, "good"))
	d := provider(t, p)
	decision, err := d.Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
	require.Equal(t, "one says nobody", decision.Reason)
	_, err = p.Allocation()
	require.ErrorIs(t, err, plugins.ErrPolicy)
	s := p.Status()
	require.Equal(t, plugins.StateRunning, s.State)
	require.Equal(t, "misbehaving", s.Manifest.Name)
	require.Equal(t, plugins.Version1, s.Manifest.Contract)
	require.True(t, alive(s.PID))
	require.True(t, config(t, plugins.Downing, "good").SHA256.Match(s.SHA256))
	require.Equal(t, uint64(1), s.Calls)
	require.Zero(t, s.Failures)
	require.Equal(t, []plugins.EventType{plugins.Started}, w.Types())
	called, ok := w.Last(plugins.Called)
	require.True(t, ok)
	require.Equal(t, "decide", called.Call)
	require.Positive(t, called.Latency)
	require.Equal(t, "decide", s.LastCall.Name)
	require.Equal(t, called.Latency, s.LastCall.Took)
	require.NoError(t, s.LastCall.Err)
	require.WithinDuration(t, called.At, s.LastCall.At.Add(s.LastCall.Took), time.Second)
}

func TestPluginAllocates(t *testing.T) {
	p, _ := open(t, config(t, plugins.Allocation, "good"))
	s := strategy(t, p)
	res, err := s.Allocate(t.Context(), request())
	require.NoError(t, err)
	require.Len(t, res.Placements, 2)
	moves, err := s.Rebalance(t.Context(), allocation.RebalanceRequest{Regions: request().Regions})
	require.NoError(t, err)
	require.Equal(t, "one", moves.Reason)
}

// Whatever makes a file or its process no plugin for this host is an error that names the
// fault, within a bounded time, and leaves nothing behind. covers B59, F57, F58.
func TestOpenNamesWhatIsWrong(t *testing.T) {
	long := 10 * time.Second
	for name, c := range map[string]struct {
		mode    string
		change  func(t *testing.T, c *plugins.Config)
		timeout time.Duration
		is      error
		want    string
	}{
		"exits at once":           {"exit", nil, long, plugins.ErrNotPlugin, "exit status 3"},
		"says nothing":            {"silent", nil, time.Second, plugins.ErrStartTimeout, "raise start-timeout"},
		"prints something else":   {"garbage", nil, long, plugins.ErrNotPlugin, "I am a web server"},
		"prints 10 MiB":           {"flood", nil, long, plugins.ErrNotPlugin, "16384 bytes"},
		"prints 10 MiB to stderr": {"floodline", nil, time.Second, plugins.ErrStartTimeout, "yyy"},
		"speaks a future version": {"future", nil, long, plugins.ErrVersion, "version 7, the host speaks 1 to 1"},
		"listens elsewhere":       {"elsewhere", nil, long, plugins.ErrNotPlugin, "docker.sock"},
		"hangs when configured":   {"hangconfigure", nil, 2 * time.Second, plugins.ErrStartTimeout, "not ready after 2s"},
		"dies when configured":    {"diesconfigure", nil, long, plugins.ErrNotPlugin, "exit status 4"},
		"refuses its settings":    {"settings", nil, long, plugins.ErrSettings, "url: is no URL; retries: is negative"},
		"has no name":             {"nameless", nil, long, plugins.ErrNotPlugin, "name"},
		"has children":            {"forkexit", nil, long, plugins.ErrNotPlugin, "16384 bytes"},
		"ignores signals":         {"stubborn", nil, time.Second, plugins.ErrStartTimeout, "printed nothing"},
		"is for another policy":   {"good", func(_ *testing.T, c *plugins.Config) { c.Environment["POLICY"] = "allocation" }, long, plugins.ErrPolicy, "is for allocation, the configuration says downing"},
		"has another checksum":    {"good", func(_ *testing.T, c *plugins.Config) { c.SHA256 = plugins.Checksums{strings.Repeat("ab", 32)} }, long, plugins.ErrChecksum, "write its checksum into sha256"},
		"is not there":            {"good", func(_ *testing.T, c *plugins.Config) { c.Path += "-not" }, long, plugins.ErrNotPlugin, "no such file"},
		"is a directory":          {"good", func(t *testing.T, c *plugins.Config) { c.Path = t.TempDir() }, long, plugins.ErrNotPlugin, "directory"},
		"is not executable":       {"good", func(t *testing.T, c *plugins.Config) { replace(t, c, "text", 0o600) }, long, plugins.ErrNotPlugin, "chmod +x"},
		"is for another system":   {"good", func(t *testing.T, c *plugins.Config) { replace(t, c, "\x7fELFtext", 0o700) }, long, plugins.ErrNotPlugin, "built for this system"},
	} {
		t.Run(name, func(t *testing.T) {
			base := clean(t)
			cfg := config(t, plugins.Downing, c.mode)
			cfg.StartTimeout = c.timeout
			if c.change != nil {
				c.change(t, &cfg)
			}
			w := &watcher{}
			watch := patience.Start(t)
			_, err := host.Open(t.Context(), "subject", cfg, w.options(base)...)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.want)
			require.Less(t, watch.Elapsed(), 20*time.Second)
			var full *plugins.Error
			require.ErrorAs(t, err, &full)
			require.Equal(t, "subject", full.Plugin)
			require.Equal(t, cfg.Path, full.Path)
			require.NotEmpty(t, full.Cure)
			require.Equal(t, []plugins.EventType{plugins.Refused, plugins.Closed}, w.Types())
		})
	}
}

// replace makes the configuration name a new file with a text, unpinned.
func replace(t *testing.T, c *plugins.Config, text string, mode os.FileMode) {
	t.Helper()
	c.Path = filepath.Join(t.TempDir(), "plugin")
	require.NoError(t, os.WriteFile(c.Path, []byte(text), mode))
	c.SHA256, c.Unpinned = nil, true
}

func TestOpenRefusesConfigurations(t *testing.T) {
	cfg := config(t, plugins.Downing, "good")
	cfg.Path = "relative"
	_, err := host.Open(t.Context(), "subject", cfg)
	require.ErrorContains(t, err, "not absolute")
	cfg.SHA256 = nil
	_, err = host.Open(t.Context(), "subject", cfg)
	require.ErrorContains(t, err, "sha256")
	_, err = host.Open(t.Context(), "subject", config(t, plugins.Discovery, "good", "POLICY=downing"))
	require.ErrorIs(t, err, plugins.ErrPolicy)
	cfg = config(t, plugins.Downing, "good")
	_, err = host.Open(t.Context(), "subject", cfg, host.WithDirectory("/does/not/exist"))
	require.ErrorIs(t, err, plugins.ErrUnavailable)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	base := clean(t)
	ctx, cancel := context.WithCancel(t.Context())
	timer := time.AfterFunc(200*time.Millisecond, cancel)
	defer timer.Stop()
	_, err := host.Open(ctx, "subject", config(t, plugins.Downing, "silent"), host.WithDirectory(base))
	require.ErrorIs(t, err, context.Canceled)
}

// An answer that breaks the contract is an error of its call alone: the process stays.
// covers F60, B60, F40.
func TestAnswersAreChecked(t *testing.T) {
	decide := func(t *testing.T, p *host.Plugin) error {
		_, err := provider(t, p).Decide(t.Context(), view(t, 3))
		return err
	}
	allocate := func(t *testing.T, p *host.Plugin) error {
		_, err := strategy(t, p).Allocate(t.Context(), request())
		return err
	}
	for _, c := range []struct {
		policy plugins.Policy
		mode   string
		call   func(*testing.T, *host.Plugin) error
		is     error
	}{
		{plugins.Downing, "unknown", decide, plugins.ErrAnswer},
		{plugins.Downing, "verdict", decide, plugins.ErrAnswer},
		{plugins.Downing, "wordy", decide, plugins.ErrAnswer},
		{plugins.Downing, "huge", decide, plugins.ErrLimit},
		{plugins.Downing, "trailer", decide, nil},
		{plugins.Downing, "fails", decide, plugins.ErrStrategy},
		{plugins.Allocation, "unknown", allocate, plugins.ErrAnswer},
		{plugins.Allocation, "double", allocate, plugins.ErrAnswer},
		{plugins.Allocation, "columns", allocate, plugins.ErrAnswer},
	} {
		t.Run(string(c.policy)+"/"+c.mode, func(t *testing.T) {
			p, w := open(t, config(t, c.policy, c.mode))
			pid := p.Status().PID
			err := c.call(t, p)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.Less(t, len(err.Error()), 4096)
			s := p.Status()
			require.Equal(t, pid, s.PID)
			require.Equal(t, uint64(1), s.Failures)
			called, _ := w.Last(plugins.Called)
			require.ErrorIs(t, called.Err, err)
		})
	}
}

// covers F56.
func TestKilledProcessIsReplaced(t *testing.T) {
	p, w := open(t, config(t, plugins.Downing, "good"))
	d := provider(t, p)
	for range 3 {
		pid := p.Status().PID
		kill(t, pid)
		patience.Eventually(t, func() bool {
			s := p.Status()
			return s.State == plugins.StateRunning && s.PID != pid
		}, "it is replaced")
		_, err := d.Decide(t.Context(), view(t, 3))
		require.NoError(t, err)
	}
	s := p.Status()
	require.Equal(t, uint64(3), s.Restarts)
	require.Equal(t, uint64(3), s.Gaps)
	require.Positive(t, s.AwayTotal)
	require.Zero(t, s.Away)
	require.ErrorContains(t, s.LastError, "killed")
	e, ok := w.Last(plugins.Restarted)
	require.True(t, ok)
	require.Positive(t, e.Away)
	t.Logf("away %v in %d gaps", s.AwayTotal, s.Gaps)
}

// covers F56.
func TestProcessThatDiesInACallIsReplaced(t *testing.T) {
	p, _ := open(t, config(t, plugins.Downing, "diescall"))
	d := provider(t, p)
	_, err := d.Decide(t.Context(), view(t, 3))
	require.ErrorIs(t, err, plugins.ErrUnavailable)
	patience.Eventually(t, func() bool { return p.Status().Restarts == 1 }, "it is replaced")
	require.ErrorContains(t, p.Status().LastError, "exit status 6")
}

// A process that is stopped is found by its health checks and killed. covers F56.
func TestStoppedProcessIsReplaced(t *testing.T) {
	p, w := open(t, config(t, plugins.Downing, "good"))
	pid := p.Status().PID
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	patience.Eventually(t, func() bool { return p.Status().Restarts == 1 }, "it is replaced")
	require.False(t, alive(pid))
	_, ok := w.Last(plugins.Unhealthy)
	require.True(t, ok)
	_, err := provider(t, p).Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
}

// When a strategy hangs in a process that passes its health checks, each call ends at its
// deadline, until three calls in a row had no answer and the process is replaced.
// covers F56.
func TestHangingStrategyIsReplaced(t *testing.T) {
	cfg := config(t, plugins.Downing, "hangcall")
	cfg.CallTimeout = 100 * time.Millisecond
	p, _ := open(t, cfg)
	d := provider(t, p)
	for range 3 {
		watch := patience.Start(t)
		_, err := d.Decide(t.Context(), view(t, 3))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, watch.Elapsed(), 10*time.Second)
	}
	patience.Eventually(t, func() bool { return p.Status().Restarts == 1 }, "it is replaced")
	require.ErrorContains(t, p.Status().LastError, "3 calls in a row had no answer")
}

// A call ends when its caller stops waiting, and the process answers the next call.
func TestSlowAnswerIsNotWaitedFor(t *testing.T) {
	p, _ := open(t, config(t, plugins.Downing, "slow", "DELAY=300ms"))
	d := provider(t, p)
	_, err := d.Decide(patience.Expiring(t, 50*time.Millisecond), view(t, 3))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	decision, err := d.Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
	require.Equal(t, "one says nobody", decision.Reason)
	require.Zero(t, p.Status().Restarts)
}

// When the process of a plugin starts once and never again, the breaker opens: calls fail at
// once, and their error says since when and why nothing runs. covers F56.
func TestLoopOfFailuresOpensTheBreaker(t *testing.T) {
	p, w := open(t, config(t, plugins.Downing, "once", "MARK="+filepath.Join(t.TempDir(), "mark")))
	d := provider(t, p)
	began := time.Now()
	kill(t, p.Status().PID)
	patience.Eventually(t, func() bool { return p.Status().State == plugins.StateBroken }, "the breaker is open")
	_, err := d.Decide(t.Context(), view(t, 3))
	var away *plugins.UnavailableError
	require.ErrorAs(t, err, &away)
	require.ErrorIs(t, err, plugins.ErrUnavailable)
	require.ErrorIs(t, away.Why, plugins.ErrNotPlugin)
	require.WithinRange(t, away.Since, began, time.Now())
	s := p.Status()
	require.Positive(t, s.Away)
	require.ErrorContains(t, s.LastError, "exit status 5")
	_, ok := w.Last(plugins.Broken)
	require.True(t, ok)
}

// A host runs a copy of the file: once a plugin is open the file at its path may change in any
// way, while the process runs and before it is started again, and only a swap reads it again. It
// does so for each policy. covers F58.
func TestReplacedFileIsNotRun(t *testing.T) {
	original, err := program()
	require.NoError(t, err)
	text, err := os.ReadFile(original)
	require.NoError(t, err)
	for name, replace := range map[string]func(t *testing.T, path string, by []byte){
		"overwritten": func(t *testing.T, path string, by []byte) { require.NoError(t, os.WriteFile(path, by, 0o700)) },
		"renamed": func(t *testing.T, path string, by []byte) {
			require.NoError(t, os.WriteFile(path+".new", by, 0o700))
			require.NoError(t, os.Rename(path+".new", path))
		},
		"removed": func(t *testing.T, path string, _ []byte) { require.NoError(t, os.Remove(path)) },
	} {
		for _, policy := range plugins.Policies() {
			t.Run(string(policy)+"/"+name, func(t *testing.T) {
				cfg := config(t, policy, "good")
				cfg.Path = filepath.Join(t.TempDir(), "plugin")
				require.NoError(t, os.WriteFile(cfg.Path, text, 0o700))
				p, _ := open(t, cfg)
				replace(t, cfg.Path, []byte("#!/bin/sh\ntouch "+cfg.Path+".ran\n"))
				_, err := p.Try(t.Context())
				require.NoError(t, err, "while it runs")
				kill(t, p.Status().PID)
				patience.Eventually(t, func() bool { return p.Status().Restarts == 1 }, "it is replaced")
				_, err = p.Try(t.Context())
				require.NoError(t, err, "after it was started again")
				err = p.Swap(t.Context(), cfg)
				if name == "removed" {
					require.ErrorIs(t, err, plugins.ErrNotPlugin)
				} else {
					require.ErrorIs(t, err, plugins.ErrChecksum)
				}
				require.NoFileExists(t, cfg.Path+".ran")
				_, err = p.Try(t.Context())
				require.NoError(t, err, "after a swap that was refused")
			})
		}
	}
}

// A process is not used when its class is not that of its predecessor: the node relies on
// what the class promised.
func TestClassMustStayTheSame(t *testing.T) {
	p, _ := open(t, config(t, plugins.Downing, "fickle", "MARK="+filepath.Join(t.TempDir(), "mark")))
	err := p.Swap(t.Context(), config(t, plugins.Downing, "majority"))
	require.ErrorIs(t, err, plugins.ErrClass)
	kill(t, p.Status().PID)
	patience.Eventually(t, func() bool { return errors.Is(p.Status().LastError, plugins.ErrClass) }, "a start has failed")
	require.Equal(t, downing.Class{}, provider(t, p).Class())
}

// While a plugin is swapped under load each call is answered by one process, and none fails.
func TestSwapUnderLoad(t *testing.T) {
	cfg := config(t, plugins.Allocation, "slow", "DELAY=5ms")
	p, w := open(t, cfg)
	s := strategy(t, p)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	counts := make([]map[string]int, 4)
	errs := make([]error, 4)
	for i := range counts {
		counts[i] = map[string]int{}
		wg.Go(func() {
			for errs[i] == nil {
				select {
				case <-stop:
					return
				default:
				}
				res, err := s.Allocate(t.Context(), request())
				errs[i] = err
				if err == nil {
					require.Equal(t, res.Placements[0].Reason, res.Placements[1].Reason)
					counts[i][res.Placements[0].Reason]++
				}
			}
		})
	}
	for _, version := range []string{"two", "three"} {
		old := p.Status().PID
		next := config(t, plugins.Allocation, "slow", "DELAY=5ms", "VERSION="+version)
		require.NoError(t, p.Swap(t.Context(), next))
		require.False(t, alive(old), "the old process has ended")
		res, err := s.Allocate(t.Context(), request())
		require.NoError(t, err)
		require.Equal(t, version, res.Placements[0].Reason)
	}
	close(stop)
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	st := p.Status()
	require.Equal(t, uint64(2), st.Swaps)
	require.Zero(t, st.Gaps)
	require.Zero(t, st.Failures)
	require.Zero(t, st.Late)
	require.Equal(t, []plugins.EventType{plugins.Started, plugins.Swapped, plugins.Exited, plugins.Swapped, plugins.Exited}, w.Types())
	t.Logf("answers by process: %v, calls %d", counts, st.Calls)
}

func TestSwapThatFailsKeepsTheOldOne(t *testing.T) {
	p, _ := open(t, config(t, plugins.Downing, "good"))
	pid := p.Status().PID
	for mode, is := range map[string]error{"exit": plugins.ErrNotPlugin, "future": plugins.ErrVersion, "settings": plugins.ErrSettings} {
		require.ErrorIs(t, p.Swap(t.Context(), config(t, plugins.Downing, mode)), is)
	}
	require.ErrorIs(t, p.Swap(t.Context(), config(t, plugins.Allocation, "good")), plugins.ErrPolicy)
	bad := config(t, plugins.Downing, "good")
	bad.SHA256 = nil
	require.ErrorContains(t, p.Swap(t.Context(), bad), "sha256")
	s := p.Status()
	require.Equal(t, pid, s.PID)
	require.Zero(t, s.Gaps)
	require.Zero(t, s.Swaps)
	_, err := provider(t, p).Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
}

// A swap mends a plugin whose process does not start any more.
func TestSwapMendsABrokenPlugin(t *testing.T) {
	p, w := open(t, config(t, plugins.Downing, "once", "MARK="+filepath.Join(t.TempDir(), "mark")))
	kill(t, p.Status().PID)
	patience.Eventually(t, func() bool { return p.Status().State == plugins.StateBroken }, "the breaker is open")
	require.NoError(t, p.Swap(t.Context(), config(t, plugins.Downing, "good", "VERSION=two")))
	decision, err := provider(t, p).Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
	require.Equal(t, "two says nobody", decision.Reason)
	e, ok := w.Last(plugins.Swapped)
	require.True(t, ok)
	require.Positive(t, e.Away)
}

func TestClosedPluginSaysSo(t *testing.T) {
	p, _ := open(t, config(t, plugins.Downing, "good"))
	d := provider(t, p)
	require.NoError(t, p.Close(t.Context()))
	_, err := d.Decide(t.Context(), view(t, 3))
	require.ErrorIs(t, err, plugins.ErrClosed)
	require.ErrorIs(t, p.Swap(t.Context(), config(t, plugins.Downing, "good")), plugins.ErrClosed)
}

// Close ends a plugin that does not end by itself, and its children, within a bounded time.
func TestCloseIsBounded(t *testing.T) {
	for _, mode := range []string{"lingers", "forks", "floods"} {
		t.Run(mode, func(t *testing.T) {
			p, _ := open(t, config(t, plugins.Downing, mode))
			watch := patience.Start(t)
			require.NoError(t, p.Close(t.Context()))
			require.Less(t, watch.Elapsed(), 10*time.Second)
		})
	}
	t.Run("stopped process", func(t *testing.T) {
		cfg := config(t, plugins.Downing, "good")
		cfg.HealthInterval = time.Minute
		p, _ := open(t, cfg)
		require.NoError(t, syscall.Kill(p.Status().PID, syscall.SIGSTOP))
		watch := patience.Start(t)
		require.NoError(t, p.Close(t.Context()))
		require.Less(t, watch.Elapsed(), 10*time.Second)
	})
}

func TestSeveralPluginsAtOnce(t *testing.T) {
	base := clean(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		cfg := config(t, plugins.Downing, "good")
		wg.Go(func() {
			p, err := host.Open(t.Context(), "subject"+strconv.Itoa(i), cfg, host.WithDirectory(base))
			if err == nil {
				err = p.Close(t.Context())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}
