// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package durable

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
)

const limitVariable = "QUORATE_DURABLE_LIMITED_DIR"

// TestLimitedChild is the process that may write no large files. It says which batch
// was the last.
func TestLimitedChild(t *testing.T) {
	dir := os.Getenv(limitVariable)
	if dir == "" {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 100_000, Max: 100_000}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	s, err := Open(t.Context(), Config{Dir: dir, Cluster: "bank", LogBytes: 1 << 20})
	require.NoError(t, err)
	n := 0
	for err == nil {
		n++
		err = s.Apply(t.Context(), []store.Batch{numbered(n)})
	}
	require.ErrorIs(t, err, store.ErrFull)
	require.ErrorContains(t, err, filepath.Join(dir, "log-"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "acknowledged"), fmt.Append(nil, n-1), 0o600))
	require.NoError(t, s.Close())
}

// A system that refuses to let a file grow is as a full disk: it is told with the name
// of the file, and nothing that was acknowledged is lost.
func TestAFileThatMayNotGrow(t *testing.T) {
	dir := t.TempDir()
	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestLimitedChild$")
	child.Env = append(os.Environ(), limitVariable+"="+dir)
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(filepath.Join(dir, "acknowledged"))
	require.NoError(t, err)
	want, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	require.Positive(t, want)
	s, err := Open(t.Context(), Config{Dir: dir, Cluster: "bank", LogBytes: 1 << 20})
	require.NoError(t, err)
	require.Equal(t, want, lastNumber(t, s))
	require.NoError(t, s.Close())
}

// A directory that nobody may write cannot be opened, and can be checked.
func TestADirectoryThatIsReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, err := Open(t.Context(), Config{Dir: dir, Cluster: "bank", LogBytes: 1 << 20})
	require.NoError(t, err)
	require.NoError(t, s.Apply(t.Context(), []store.Batch{numbered(1)}))
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(filepath.Join(dir, "lock")))
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	if f, err := os.Create(filepath.Join(dir, "try")); err == nil {
		require.NoError(t, errors.Join(f.Close(), os.Remove(f.Name())))
		return // The superuser may write everywhere.
	}
	_, err = Open(t.Context(), Config{Dir: dir, Cluster: "bank", LogBytes: 1 << 20})
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, dir)
	r, err := Check(t.Context(), dir, nil)
	require.NoError(t, err)
	require.Empty(t, r.Fault)
	require.Equal(t, int64(7), r.Keys)
}
