// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins/internal/process"
)

// Each test has a plugin do what its confinement forbids, and fails without that part of
// the confinement.

// confined launches the program in a mode, within a confinement.
func (f *fixture) confined(c process.Confinement, mode string, env ...string) (*process.Process, error) {
	f.confinement = c
	return f.launch(patience.Context(f.t), mode, env...)
}

// ended launches a process that reaches a limit, and returns the error that it ended with. On
// a busy machine it reaches the limit before it has answered: then the launch has the error.
func (f *fixture) ended(t *testing.T, c process.Confinement, mode string, env ...string) error {
	t.Helper()
	p, err := f.confined(c, mode, env...)
	if err != nil {
		return err
	}
	patience.Receive(t, p.Exited(), "the end of the process")
	return p.Err()
}

// status returns a line of what the kernel says about a process.
func status(t *testing.T, pid int, key string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.SplitSeq(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Join(strings.Fields(value), " ")
		}
	}
	t.Fatalf("no %s in %s", key, text)
	return ""
}

// A process that allocates without end ends itself, and not its machine.
func TestMemoryIsLimited(t *testing.T) {
	f := newFixture(t)
	held := filepath.Join(t.TempDir(), "held")
	require.Error(t, f.ended(t, process.Confinement{MemoryBytes: 512 << 20}, "hogs", "HELD="+held))
	require.NoFileExists(t, held)
	f.logs.Await(t, "out of memory")
}

// A process that forks without end is killed with all that it has forked.
func TestTasksAreLimited(t *testing.T) {
	f := newFixture(t)
	forked := filepath.Join(t.TempDir(), "forked")
	err := f.ended(t, process.Confinement{Tasks: 100}, "forkbomb", "FORKED="+forked)
	require.ErrorContains(t, err, "processes and threads, limits.tasks is 100")
	require.Empty(t, processesOf(t, f.base), "some are left")
}

// processesOf returns the processes that run a program of a directory.
func processesOf(t *testing.T, dir string) (pids []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	for _, link := range links {
		if path, err := os.Readlink(link); err == nil && strings.HasPrefix(path, dir) {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}

// Few tasks are left alone, and the threads of a process are counted.
func TestTasksWithinTheLimitGoOn(t *testing.T) {
	f := newFixture(t)
	p, err := f.confined(process.Confinement{Tasks: 100}, "forks")
	require.NoError(t, err)
	patience.Eventually(t, func() bool {
		n, err := process.TasksOf(p.PID())
		require.NoError(t, err)
		threads, err := strconv.Atoi(status(t, p.PID(), "Threads"))
		require.NoError(t, err)
		return n > threads // And those of the other process.
	}, "it is counted")
	require.NoError(t, p.Health(t.Context()))
	require.NoError(t, p.Kill(time.Second))
}

// A plugin with a user of its own runs as that user, in no group but the user's, and the
// kernel limits its tasks. Only root can start it; the error of others says so.
func TestUserIsTheOneThatIsNamed(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, os.Chmod(f.base, 0o711)) // As /tmp lets every user pass.
	p, err := f.confined(process.Confinement{User: "nobody", MemoryBytes: 1 << 30, Tasks: 300}, "good")
	if os.Geteuid() != 0 {
		require.ErrorContains(t, err, "operation not permitted")
		var fault *process.StartError
		require.ErrorAs(t, err, &fault)
		require.Contains(t, fault.Cure, "root")
		return
	}
	require.NoError(t, err)
	require.NoError(t, p.Health(t.Context()))
	require.Equal(t, "65534 65534 65534 65534", status(t, p.PID(), "Uid"))
	require.Empty(t, status(t, p.PID(), "Groups"))
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.PID()))
	require.NoError(t, err)
	require.Regexp(t, `Max processes +300 +300`, string(limits))
	require.NoError(t, p.Kill(time.Second))
}

// A number needs no name: images of containers have few. A user without a name has no group that
// could be taken.
func TestUsersMayBeNumbers(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, os.Chmod(f.base, 0o711))
	_, err := f.confined(process.Confinement{User: "64123"}, "good")
	require.ErrorContains(t, err, "there is no user 64123 whose group could be taken: set group")
	_, err = f.confined(process.Confinement{User: "4294967295", Group: "64124"}, "good")
	require.ErrorContains(t, err, `there is no user "4294967295"`)
	p, err := f.confined(process.Confinement{User: "64123", Group: "64124"}, "good")
	if os.Geteuid() != 0 {
		require.ErrorContains(t, err, "operation not permitted")
		return
	}
	require.NoError(t, err)
	require.Equal(t, "64123 64123 64123 64123", status(t, p.PID(), "Uid"))
	require.Equal(t, "64124 64124 64124 64124", status(t, p.PID(), "Gid"))
	require.NoError(t, p.Kill(time.Second))
}

func TestUnknownUsersAreRefused(t *testing.T) {
	f := newFixture(t)
	for _, c := range []process.Confinement{{User: "nobody-of-that-name"}, {Group: "no-group-of-that-name"}} {
		_, err := f.confined(c, "good")
		require.ErrorContains(t, err, "there is no ")
		require.Len(t, c.Lacks(), 1)
	}
	require.Empty(t, process.Confinement{MemoryBytes: 1, Tasks: 1}.Lacks(), "Linux keeps all of it")
}

// No program that the process executes has more rights than the process, unless that is
// permitted; the host itself is left as it was.
func TestPrivilegesCannotBeGained(t *testing.T) {
	f := newFixture(t)
	for want, permitted := range map[string]bool{"1": false, "0": true} {
		p, err := f.confined(process.Confinement{NewPrivileges: permitted}, "good")
		require.NoError(t, err)
		require.Equal(t, want, status(t, p.PID(), "NoNewPrivs"))
		require.NoError(t, p.Kill(time.Second))
	}
	patience.Eventually(t, func() bool { // The thread that has started it ends soon after.
		tasks, err := filepath.Glob("/proc/self/task/*/status")
		require.NoError(t, err)
		for _, task := range tasks {
			if text, err := os.ReadFile(task); err == nil && !strings.Contains(string(text), "NoNewPrivs:\t0") {
				return false
			}
		}
		return len(tasks) > 0
	}, "no thread of the host is confined")
}

// A descriptor that the host would pass on to every child is not passed on to a plugin.
func TestDescriptorsOfTheHostStayThere(t *testing.T) {
	secret, err := os.Create(filepath.Join(t.TempDir(), "secret"))
	require.NoError(t, err)
	inherited, err := syscall.Dup(int(secret.Fd())) // Without close-on-exec.
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(inherited, 251, 0))
	defer func() { require.NoError(t, syscall.Close(251)) }()
	defer func() { require.NoError(t, syscall.Close(inherited)) }()
	f := newFixture(t)
	p, err := f.launch(patience.Context(f.t), "good")
	require.NoError(t, err)
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.PID()))
	require.NoError(t, err)
	require.NotEmpty(t, links)
	for _, link := range links {
		file, err := os.Readlink(link)
		require.NoError(t, err)
		require.NotEqual(t, secret.Name(), file, link)
	}
	require.NoError(t, p.Kill(time.Second))
	require.NoError(t, secret.Close())
}

// A line that never ends costs no memory and no room in the log, and is counted.
func TestEndlessLineIsCounted(t *testing.T) {
	f := newFixture(t)
	written := filepath.Join(t.TempDir(), "written")
	var left atomic.Int64
	f.leftOut = func(n int) { left.Add(int64(n)) }
	p, err := f.launch(patience.Context(f.t), "gigabyte", "WRITTEN="+written)
	require.NoError(t, err)
	patience.Eventually(t, func() bool {
		_, err := os.Stat(written)
		return err == nil
	}, "the plugin waits for its host")
	require.NoError(t, p.Health(t.Context()))
	require.NoError(t, p.Kill(time.Second))
	require.Greater(t, left.Load(), int64(1<<30-1<<20))
	require.Less(t, len(f.logs.String()), 64<<10)
}
