// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build traces

package passivation

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rates of all policies on traces of production, which are too large for this repository and may be used
// where their paper is cited: N. Megiddo and D. S. Modha, "ARC: a self-tuning, low overhead replacement
// cache", FAST 2003. Each line of a file *.lis in the directory of the environment variable TRACES is the
// first block, the number of blocks, and two fields that do not matter.
//
//	TRACES=/tmp/traces go test -tags traces -run Production -v ./internal/passivation

// production reads a trace.
func production(t *testing.T, path string) (trace []uint32) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var first, n, ignored, request uint32
		_, err := fmt.Sscan(lines.Text(), &first, &n, &ignored, &request)
		require.NoError(t, err)
		for i := range n {
			trace = append(trace, first+i)
		}
	}
	require.NoError(t, lines.Err())
	return trace
}

// table prints a row for each limit, as the documentation has it.
func table(t *testing.T, name string, trace []uint32, limits ...int) {
	t.Helper()
	for _, limit := range limits {
		row := []string{fmt.Sprintf("%s, %d uses", name, len(trace)), fmt.Sprint(limit)}
		for _, c := range []Config{
			byDefault(limit),
			{Limit: limit, Policy: Segmented, Protected: 0.8},
			{Limit: limit, Policy: LeastRecentlyUsed},
			{Limit: limit, Policy: LeastFrequentlyUsed, Aging: true},
			{Limit: limit, Policy: MostRecentlyUsed},
			{Limit: limit, Policy: Composite, Main: Segmented, Protected: 0.8, Window: 0.01},
		} {
			row = append(row, fmt.Sprintf("%.1f", rate(c, trace)))
		}
		row = append(row, fmt.Sprintf("%.1f", 100*float64(optimum(trace, limit))/float64(len(trace))))
		t.Log("| " + strings.Join(row, " | ") + " |")
	}
}

// On traces of production the default policy is never far below least-recently-used, which is what an
// operator would take otherwise: three points where a trace has some 50 uses for each that has room, so that the
// share of the window has no time to follow.
func TestRatesOnTracesOfProduction(t *testing.T) {
	for _, b := range bars(1_000_000) {
		table(t, b.name, b.trace, barLimit)
	}
	files, err := filepath.Glob(filepath.Join(os.Getenv("TRACES"), "*.lis"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "set TRACES to a directory with files *.lis")
	for _, path := range files {
		trace := production(t, path)
		name := strings.TrimSuffix(filepath.Base(path), ".lis")
		limits := []int{1000, 5000, 20_000}
		table(t, name, trace, limits...)
		for _, limit := range limits {
			require.Greater(t, rate(byDefault(limit), trace), rate(Config{Limit: limit, Policy: LeastRecentlyUsed}, trace)-3, "%s, limit %d", name, limit)
		}
	}
}
