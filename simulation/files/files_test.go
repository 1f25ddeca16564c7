// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package files_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation/files"
)

// What was synced is there after a crash, and of what was not any part.
func Example() {
	d := files.New(rand.New(rand.NewPCG(1, 1)))
	f, err := d.Create("log")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = f.WriteAt([]byte("kept"), 0)
	fmt.Println(err, f.Sync(), d.Sync())
	d.Crash()
	fmt.Println(string(d.Names["log"].Data))
	// Output:
	// <nil> <nil> <nil>
	// kept
}

// Each sector of a write that was not synced is there or not, whatever became of those before.
func TestACrashLeavesAnySectors(t *testing.T) {
	left := map[string]bool{}
	for seed := range uint64(64) {
		d := files.New(rand.New(rand.NewPCG(seed, 1)))
		f, err := d.Create("log")
		require.NoError(t, err)
		require.NoError(t, d.Sync())
		_, err = f.WriteAt(bytes.Repeat([]byte{1}, 2*512), 0)
		require.NoError(t, err)
		d.Crash()
		data := append(bytes.Clone(d.Names["log"].Data), make([]byte, 2*512)...)
		left[fmt.Sprint(data[0], data[512])] = true
	}
	require.Len(t, left, 4)
}

// Names that were not synced are lost from some change on.
func TestACrashLosesNames(t *testing.T) {
	left := map[int]bool{}
	for seed := range uint64(64) {
		d := files.New(rand.New(rand.NewPCG(seed, 1)))
		for i := range 3 {
			_, err := d.Create(fmt.Sprint(i))
			require.NoError(t, err)
		}
		d.Crash()
		names, err := d.List()
		require.NoError(t, err)
		for i, name := range names {
			require.Equal(t, fmt.Sprint(i), name)
		}
		left[len(names)] = true
	}
	require.Len(t, left, 4)
}

func TestOperationsFailFromOneOn(t *testing.T) {
	d := files.New(nil)
	f, err := d.Create("log")
	require.NoError(t, err)
	d.FailAt, d.Err, d.Fails = d.Operations+1, syscall.ENOSPC, func(op string) bool { return op == "write" }
	n, err := f.WriteAt([]byte("half"), 0)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.Equal(t, 2, n)
	require.NoError(t, f.Sync())
	require.NoError(t, d.Rename("log", "other"))
	_, err = d.Open("log")
	require.ErrorIs(t, err, fs.ErrNotExist)
	copied := d.Clone()
	d.Die()
	_, err = f.WriteAt([]byte("whole"), 0)
	require.NoError(t, err)
	require.Equal(t, "ha", string(copied.Names["other"].Data))
}
