// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata/store"
)

// A child process writes batches with numbers into a directory and prints the number of
// each that is acknowledged; the test kills it at a random moment, and looks. What
// there should be after the batch with a number is a function of that number, which is
// the meta.

const (
	childVariable = "QUORATE_DURABLE_DIR"
	childKeys     = 300
)

// numbered is the batch with a number.
func numbered(n int) store.Batch {
	text := strconv.Itoa(n)
	b := store.Batch{Group: "g", Meta: []byte(text)}
	for i := range 8 {
		b.Put = append(b.Put, store.Record{Key: childKey(n + i*i), Value: fmt.Appendf(nil, "%-120d", n)})
	}
	b.Drop = []string{childKey(n * 7)}
	b.Wipe = n%997 == 0
	return b
}

func childKey(n int) string { return fmt.Sprintf("key-%03d", n%childKeys) }

// numberedState is what there is after the batch with a number.
func numberedState(n int) map[string]string {
	want := map[string]string{}
	for i := max(1, n/997*997); i <= n; i++ { // Older ones were wiped.
		want = changed(want, []store.Batch{numbered(i)})
	}
	return want
}

// lastNumber returns the number of the last batch in a store, and checks that everything
// is as it was after that batch.
func lastNumber(t *testing.T, s *Store) int {
	t.Helper()
	got, err := dump(t, s)
	require.NoError(t, err)
	if len(got) == 0 {
		return 0
	}
	n, err := strconv.Atoi(got["g/meta"])
	require.NoError(t, err)
	require.Equal(t, numberedState(n), got, "after batch %d", n)
	return n
}

// TestChild is the process that is killed. Without the variable it has nothing to do.
func TestChild(t *testing.T) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		return
	}
	s, err := Open(t.Context(), Config{Dir: dir, Cluster: "bank", LogBytes: logBytesMin})
	require.NoError(t, err)
	for n := lastNumber(t, s) + 1; ; n++ {
		require.NoError(t, s.Apply(t.Context(), []store.Batch{numbered(n)}))
		fmt.Println("done", n)
	}
}

func TestAKilledProcessLosesNothing(t *testing.T) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	var starts uint64
	total := 0
	for range killCount {
		acknowledged := killed(t, dir, 1+rng.IntN(150))
		s, err := Open(t.Context(), Config{Dir: dir, Cluster: "bank", LogBytes: logBytesMin})
		require.NoError(t, err)
		require.GreaterOrEqual(t, lastNumber(t, s), acknowledged)
		require.Greater(t, s.Starts(), starts)
		starts = s.Starts()
		total = acknowledged
		require.NoError(t, s.Close())
	}
	t.Logf("%d batches were acknowledged by %d processes that were killed", total, killCount)
}

// killed runs a child until it has said that many times that something is acknowledged, and
// returns what it has said last. It is killed while it goes on.
func killed(t *testing.T, dir string, lines int) (acknowledged int) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestChild$")
	child.Env = append(os.Environ(), childVariable+"="+dir)
	pipe, err := child.StdoutPipe()
	require.NoError(t, err)
	child.Stderr = os.Stderr
	require.NoError(t, child.Start())
	out := bufio.NewScanner(pipe)
	for said := 0; out.Scan(); said++ {
		if said == lines {
			require.NoError(t, child.Process.Kill())
		}
		if _, err := fmt.Sscanf(out.Text(), "done %d", &acknowledged); err != nil {
			t.Errorf("the child has said %q", out.Text())
		}
	}
	exit := new(exec.ExitError)
	require.ErrorAs(t, child.Wait(), &exit)
	require.False(t, exit.Success())
	require.Positive(t, acknowledged)
	return acknowledged
}
