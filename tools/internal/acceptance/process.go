// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Virtual time is to be had in a test alone, so a run outside of `go test` is a process whose only test it is:
// [Process] starts this program anew, and [Main], which the program calls first, runs it there.

const (
	// variable of the environment says which run a process is for.
	variable = "QUORATE_WHOLE_NODES"
	// maxProcess ends a run that hangs.
	maxProcess = 30 * time.Minute
	// took begins the line that says how long a run was in virtual time.
	took = "virtual time: "
)

// Main runs one run and ends the process, if [Process] has started it. Otherwise it does nothing.
func Main() {
	var seed uint64
	var nodes int
	if _, err := fmt.Sscanf(os.Getenv(variable), "%d %d", &seed, &nodes); err != nil {
		return
	}
	os.Args = os.Args[:1]
	run := func(t *testing.T) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			t.Helper()
			t.Cleanup(func() { fmt.Printf("%s%v\n", took, time.Since(began)) })
			Run(t, seed, nodes)
		})
	}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "WholeNodes", F: run}}, nil, nil)
}

// Process runs one run in a process of its own, of a program that calls [Main] first, and returns how much time
// passed in it. The error begins with the first violation, and has all that the run said.
func Process(seed uint64, nodes int) (virtual time.Duration, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxProcess)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", variable, seed, nodes), "GOGC=400")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	failed := cmd.Run()
	first := ""
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSpace(line)
		if text, is := strings.CutPrefix(line, took); is {
			if virtual, err = time.ParseDuration(text); err != nil {
				return 0, err
			}
		}
		_, violation, is := strings.Cut(line, "violation: ")
		if first == "" && is {
			first = violation
		}
	}
	if failed == nil && virtual == 0 {
		failed = errors.New("it did not run: the program does not begin with acceptance.Main")
	}
	if failed != nil {
		return virtual, fmt.Errorf("%s (%w)\n%s", first, failed, out.String())
	}
	return virtual, nil
}
