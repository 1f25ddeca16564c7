// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// The variables of the environment that choose the seeds of a test. One that is empty
// counts as one that is not set.
const (
	seedVariable  = "QUORATE_SEED"
	firstVariable = "QUORATE_FIRST_SEED"
	seedsVariable = "QUORATE_SEEDS"
)

// Seeds returns the first seed that a test is to run and the number of its seeds: only
// QUORATE_SEED if that is set, else QUORATE_SEEDS seeds from QUORATE_FIRST_SEED on. Without
// QUORATE_SEEDS it is the usual number of seeds, without QUORATE_FIRST_SEED the first is 0.
// A variable that is no number ends the test.
func Seeds(t testing.TB, usual int) (first, n uint64) {
	t.Helper()
	if seed, set := number(t, seedVariable); set {
		return seed, 1
	}
	first, _ = number(t, firstVariable)
	if n, set := number(t, seedsVariable); set {
		return first, n
	}
	return first, uint64(usual)
}

// number returns the number in a variable of the environment, and whether there is one.
func number(t testing.TB, variable string) (n uint64, set bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatalf("%s=%s: %v", variable, text, err)
	}
	return n, true
}

// RequireRun ends a test whose run with a seed has failed, and prints the command that
// repeats the run. Nothing happens if the error is nil.
func RequireRun(t testing.TB, seed uint64, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\nreplay: %s=%d go test -run '^%s$' %s", err, seedVariable, seed, t.Name(), tested())
	}
}

// tested returns the package whose tests run, "." if the binary does not say it.
func tested() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		return strings.TrimSuffix(info.Path, ".test")
	}
	return "."
}
