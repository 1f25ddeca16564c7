// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package machinetest compares what machines do, and the bytes of their messages, with
// golden files: those that people have read and accepted.
//
//	var rewrite = flag.Bool("rewrite", false, "write the golden files anew")
//
//	func TestGoldenTraces(t *testing.T) {
//		machinetest.Trace(t, "testdata/join.txt", *rewrite, func() string { return traceOf(t, join) })
//	}
//
// Who changes a machine on purpose rewrites the files, and reads what has changed in them.
package machinetest

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Trace fails the test unless two runs give the same trace, which is that of the file.
// With rewrite, the file gets the trace of the first run before; its directory is made.
//
// Each call of run is to begin with new machines. Runs that differ have used what a
// machine may not: a clock, an order of a map, or randomness that they were not given.
func Trace(t testing.TB, file string, rewrite bool, run func() string) {
	t.Helper()
	first := run()
	require.Equal(t, first, run(), "equal runs give equal traces")
	golden(t, file, rewrite, first)
}

// Bytes fails the test unless the bytes are those of the file, which has them as a line of
// hexadecimal digits. With rewrite, the file gets the bytes before; its directory is made.
func Bytes(t testing.TB, file string, rewrite bool, b []byte) {
	t.Helper()
	golden(t, file, rewrite, hex.EncodeToString(b)+"\n")
}

func golden(t testing.TB, file string, rewrite bool, text string) {
	t.Helper()
	if rewrite {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "%s is golden", file)
}
