// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package attached_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/internal/patience/logtest"
)

// lineVariable makes the program of the tests a node: it prints the line that the variable
// has, if any, and ends with its standard input.
const lineVariable = "QUORATE_TEST_LINE"

func TestMain(m *testing.M) {
	if line, ok := os.LookupEnv(lineVariable); ok {
		if line != "" {
			fmt.Println(line)
			_, _ = io.Copy(io.Discard, os.Stdin)
			fmt.Fprintln(os.Stderr, "orphaned")
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

// start starts the program of the tests, which is to print a line.
func start(t *testing.T, line string) (*attached.Process, *logtest.Buffer) {
	t.Helper()
	log := new(logtest.Buffer)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), lineVariable+"="+line), log
	p, err := attached.Start(cmd, (*exec.Cmd).Start)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // The process may have ended.
		<-p.Ended()
	})
	return p, log
}

func TestAProcessGreetsAndEndsWithItsParent(t *testing.T) {
	p, log := start(t, `{"node":"127.0.0.1:7946#1","http":"127.0.0.1:8558"}`)
	require.NoError(t, <-p.Hello())
	require.True(t, p.Greeted())
	require.Equal(t, []string{"127.0.0.1:7946#1", "127.0.0.1:8558"}, []string{p.Node, p.HTTP})
	require.NoError(t, p.Orphan())
	<-p.Ended()
	require.Equal(t, 7, p.Cmd.ProcessState.ExitCode())
	require.Equal(t, "orphaned\n", log.String())
}

func TestAProcessThatDoesNotGreetSaysWhy(t *testing.T) {
	silent, _ := start(t, "")
	require.ErrorIs(t, <-silent.Hello(), io.EOF)
	require.False(t, silent.Greeted())
	<-silent.Ended()

	other, _ := start(t, "listening")
	require.ErrorContains(t, <-other.Hello(), "invalid character")
	require.False(t, other.Greeted())
}

// Nobody is given a port that somebody else has reserved, who may not listen there yet.
func TestReservedPortsAreDifferent(t *testing.T) {
	different := map[int]bool{}
	for range 100 {
		ports, err := attached.ReservePorts(20)
		require.NoError(t, err)
		t.Cleanup(ports.Close)
		for _, port := range ports.Numbers {
			different[port] = true
		}
	}
	require.Len(t, different, 2000)
}
