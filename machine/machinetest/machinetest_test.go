// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machinetest_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine/machinetest"
)

// witness is a testing.TB that keeps a failure instead of reporting it.
type witness struct {
	testing.TB

	failed bool
}

func (w *witness) Helper()               {}
func (w *witness) Errorf(string, ...any) { w.failed = true }
func (w *witness) FailNow()              { runtime.Goexit() }

// fails reports whether a comparison fails its test.
func fails(t *testing.T, compare func(testing.TB)) bool {
	t.Helper()
	w := &witness{TB: t}
	done := make(chan struct{})
	// The goroutine ends with the comparison, or with its Goexit; this function waits.
	go func() {
		defer close(done)
		compare(w)
	}()
	<-done
	return w.failed
}

func always(trace string) func() string { return func() string { return trace } }

func TestATraceIsThatOfItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "join.txt")
	trace := func(rewrite bool, run func() string) bool {
		return fails(t, func(w testing.TB) { machinetest.Trace(w, file, rewrite, run) })
	}
	require.True(t, trace(false, always("joined\n")), "there is no file")
	require.False(t, trace(true, always("joined\n")))
	require.False(t, trace(false, always("joined\n")))
	require.True(t, trace(false, always("left\n")))
	require.True(t, trace(false, always("joined")), "without the end of the line")
	require.False(t, trace(true, always("left\n")))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "left\n", string(text))
}

func TestRunsThatDifferFail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.txt")
	runs := 0
	require.True(t, fails(t, func(w testing.TB) {
		machinetest.Trace(w, file, true, func() string {
			runs++
			return strconv.Itoa(runs)
		})
	}))
	require.NoFileExists(t, file, "no run is accepted")
}

func TestBytesAreThoseOfTheirFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "frame.hex")
	machinetest.Bytes(t, file, true, []byte{0x0a, 0xff})
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "0aff\n", string(text))
	machinetest.Bytes(t, file, false, []byte{0x0a, 0xff})
	require.True(t, fails(t, func(w testing.TB) { machinetest.Bytes(w, file, false, []byte{0x0a, 0xfe}) }))
}
