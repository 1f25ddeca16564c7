// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package host_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
)

// What becomes of the processes of plugins when their host is killed, and of the processes
// that a plugin has forked. The host that is killed is this test program, started again as
// the victim.

// victimVariable is the variable that makes this test program a host that waits to be
// killed.
const victimVariable = "QUORATE_TEST_VICTIM"

// leaveBehind is the variable that makes the served plugin start two processes, and names
// the file for their ids.
const leaveBehind = "LEAVE_BEHIND"

func victim(dir string) {
	path := os.Getenv("QUORATE_TEST_PROGRAM")
	p, err := host.Open(context.Background(), "subject", plugins.Config{
		Policy: plugins.Downing, Path: path, Unpinned: true, Args: []string{"good"}, StartTimeout: 10 * time.Second,
		Environment: map[string]string{"POLICY": "downing", "VERSION": "one", "PATH": os.Getenv("PATH"), leaveBehind: os.Getenv(leaveBehind)},
	}, host.WithDirectory(dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Status().PID)
	select {}
}

// A host that is killed leaves no process, and the next host removes its files.
// covers F59.
func TestKilledHostLeavesNoOrphan(t *testing.T) {
	base := clean(t)
	path, err := program()
	require.NoError(t, err)
	cmd, pid := startVictim(t, base, path)
	require.NoError(t, cmd.Process.Kill())
	patience.Eventually(t, func() bool { return !alive(pid) }, "the orphan has ended")
	require.Error(t, cmd.Wait())
	left, err := filepath.Glob(base + "/quorate-*")
	require.NoError(t, err)
	require.Len(t, left, 1)
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(left[0], old, old))
	p, err := host.Open(t.Context(), "subject", config(t, plugins.Downing, "good"), host.WithDirectory(base))
	require.NoError(t, err)
	require.NoDirExists(t, left[0])
	require.NoError(t, p.Close(t.Context()))
}

// startVictim starts a host of a plugin, and returns it with the plugin's process.
func startVictim(t *testing.T, base, path string, env ...string) (cmd *exec.Cmd, pid int) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), env...), victimVariable+"="+base, "QUORATE_TEST_PROGRAM="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	require.True(t, alive(pid))
	return cmd, pid
}

// leftBehind returns the ids of the processes that the served plugin has started, in its
// group and outside.
func leftBehind(t *testing.T, file string) (inside, outside int) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &inside, &outside)
	require.NoError(t, err)
	require.True(t, alive(inside))
	require.True(t, alive(outside))
	return inside, outside
}

// The processes that a plugin has forked end with it: those in its group even if the host
// is killed, and those that have left the group when the host ends the plugin. The next
// host ends what a killed host left.
func TestNothingThatAPluginForkedStays(t *testing.T) {
	path, err := served()
	require.NoError(t, err)
	gone := func(t *testing.T, what string, pid int) {
		t.Helper()
		patience.Eventually(t, func() bool { return !alive(pid) }, "%s has ended", what)
	}
	for name, end := range map[string]func(p *host.Plugin) error{
		"plugin closed": func(p *host.Plugin) error { return p.Close(t.Context()) },
		"plugin killed": func(p *host.Plugin) error { return syscall.Kill(p.Status().PID, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			c := sdkConfig(t, nil)
			c.Environment = map[string]string{leaveBehind: file, "PATH": os.Getenv("PATH")}
			p, _ := open(t, c)
			inside, outside := leftBehind(t, file)
			require.NoError(t, end(p))
			gone(t, "what is in the group", inside)
			gone(t, "what left the group", outside)
		})
	}
	t.Run("host killed", func(t *testing.T) {
		base, file := clean(t), filepath.Join(t.TempDir(), "pids")
		cmd, pid := startVictim(t, base, path, leaveBehind+"="+file)
		inside, outside := leftBehind(t, file)
		patience.Eventually(t, func() bool { return guarded(pid) }, "there is a guard")
		require.NoError(t, cmd.Process.Kill())
		gone(t, "the plugin", pid)
		gone(t, "what is in the group", inside)
		require.Error(t, cmd.Wait())

		left, err := filepath.Glob(base + "/quorate-*")
		require.NoError(t, err)
		old := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(left[0], old, old))
		p, err := host.Open(t.Context(), "subject", sdkConfig(t, nil), host.WithDirectory(base))
		require.NoError(t, err)
		gone(t, "what left the group", outside)
		require.NoError(t, p.Close(t.Context()))
	})
}

// guarded reports whether a shell belongs to the group of a process: the guard of a plugin
// is a shell, which ends the group when the plugin has ended.
func guarded(group int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(stats, func(file string) bool {
		text, _ := os.ReadFile(file) // The process may have ended.
		var state string
		var parent, of int
		_, rest, found := strings.Cut(string(text), "(sh) ")
		n, _ := fmt.Sscan(rest, &state, &parent, &of)
		return found && n == 3 && of == group
	})
}
