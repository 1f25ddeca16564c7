// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// Plugins that are stopped as a debugger stops them: where the configuration permits that, nothing kills them.

// held reports whether a process is stopped: each of its threads, since the system stops one after the other, and those
// that still run may answer.
func held(t testing.TB, pid int) bool {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // A thread that has ended meanwhile.
		}
		require.NoError(t, err)
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// begun waits until the host has said which process may be debugged.
func begun(t testing.TB, w *watcher) int {
	t.Helper()
	said := regexp.MustCompile(`level=WARN msg="the plugin may be debugged: .*pid=(\d+)`)
	var found []string
	patience.Eventually(t, func() bool {
		found = said.FindStringSubmatch(w.log.String())
		return found != nil
	}, "the log names the process")
	pid, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return pid
}

// signals sends a signal to a process of the test.
func signals(t testing.TB, pid int, s syscall.Signal) {
	t.Helper()
	require.Positive(t, pid)
	require.NoError(t, syscall.Kill(pid, s))
}

// A process that stops while it starts is killed at start-timeout, and waited for if it may be debugged.
func TestAStartThatIsDebuggedHasNoLimit(t *testing.T) {
	cfg := config(t, plugins.Downing, "stopped")
	cfg.StartTimeout = 300 * time.Millisecond
	w := &watcher{}
	_, err := host.Open(t.Context(), "subject", cfg, w.options(clean(t))...)
	require.ErrorIs(t, err, plugins.ErrStartTimeout)
	require.False(t, w.contains("may be debugged"))

	cfg.Debug = true
	type outcome struct {
		plugin *host.Plugin
		err    error
	}
	outcomes := make(chan outcome, 1)
	options := w.options(clean(t))
	go func() { // Ends with the start.
		p, err := host.Open(t.Context(), "subject", cfg, options...)
		outcomes <- outcome{p, err}
	}()
	pid := begun(t, w)
	patience.Eventually(t, func() bool { return held(t, pid) }, "it stops itself")
	<-time.After(3 * cfg.StartTimeout) //quorate:realtime So long it is held, by the clock of the host.
	require.True(t, held(t, pid), "it was not killed")
	signals(t, pid, syscall.SIGCONT)
	o := patience.Receive(t, outcomes, "the end of the start")
	require.NoError(t, o.err)
	require.Equal(t, pid, o.plugin.Status().PID)
	require.True(t, o.plugin.Status().Debug)
	_, err = provider(t, o.plugin).Decide(t.Context(), view(t, 3))
	require.NoError(t, err)
	require.NoError(t, o.plugin.Close(context.Background()))
}

// A start that is held ends when nobody wants it any more.
func TestAStartThatIsDebuggedEndsWithItsContext(t *testing.T) {
	cfg := config(t, plugins.Downing, "stopped")
	cfg.Debug = true
	w := &watcher{}
	options := w.options(clean(t))
	ctx, cancel := context.WithCancel(t.Context())
	outcome := make(chan error, 1)
	go func() { // Ends with the start.
		_, err := host.Open(ctx, "subject", cfg, options...)
		outcome <- err
	}()
	pid := begun(t, w)
	patience.Eventually(t, func() bool { return held(t, pid) }, "it stops itself")
	cancel()
	require.ErrorIs(t, patience.Receive(t, outcome, "the end of the start"), context.Canceled)
	require.False(t, alive(pid))
}

// A process that is stopped while it runs leaves every question without an answer, each of which ends at its deadline.
// It is replaced; where it may be debugged it is not, and answers when it goes on.
func TestAPluginThatIsDebuggedIsNotReplaced(t *testing.T) {
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprint("debug ", debug), func(t *testing.T) {
			cfg := config(t, plugins.Downing, "good")
			if debug {
				cfg.CallTimeout, cfg.StartTimeout, cfg.Debug = 100*time.Millisecond, time.Second, true
			}
			p, w := open(t, cfg)
			began := patience.Start(t)
			pid := p.Status().PID
			signals(t, pid, syscall.SIGSTOP)
			d := provider(t, p)
			if !debug {
				patience.Eventually(t, func() bool { return p.Status().Restarts == 1 }, "it is replaced")
				require.False(t, alive(pid))
				return
			}
			patience.Eventually(t, func() bool { return held(t, pid) }, "it is stopped")
			for asked := 0; asked < 6 || began.Elapsed() < 2*cfg.StartTimeout; asked++ {
				_, err := d.Decide(t.Context(), view(t, 3))
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			patience.Eventually(t, func() bool { return w.contains(`level=WARN msg="the plugin does not answer, and is not killed`) }, "the log says so")
			require.True(t, held(t, pid), "it was not killed")
			signals(t, pid, syscall.SIGCONT)
			patience.Eventually(t, func() bool {
				_, err := d.Decide(t.Context(), view(t, 3))
				return err == nil
			}, "it answers")
			patience.Eventually(t, func() bool { return w.contains("the plugin answers again") }, "the log says so")
			s := p.Status()
			require.Equal(t, pid, s.PID)
			require.Zero(t, s.Restarts)
			require.Zero(t, s.FailedInARow)
			require.Equal(t, plugins.StateRunning, s.State)
			signals(t, pid, syscall.SIGSTOP) // And the end does not wait for it.
		})
	}
}
