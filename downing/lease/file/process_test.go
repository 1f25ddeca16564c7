// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package file_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/file"
)

// holderVariable makes this test binary a process that takes the lease in a directory and
// keeps it until its standard input ends.
const holderVariable = "QUORATE_LEASE_HOLDER"

func TestMain(m *testing.M) {
	dir := os.Getenv(holderVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	s, err := file.New(dir)
	if err == nil {
		var a lease.Answer
		a, err = s.Take(context.Background(), claim("holder"))
		fmt.Println(a.Granted, a.Token, a.Owner, err)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	if err != nil {
		os.Exit(1)
	}
}

// holder starts a process that takes the lease, and returns what it said.
func holder(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), holderVariable+"="+dir)
	_, err := command.StdinPipe()
	require.NoError(t, err)
	out, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return command, line
}

// A holder that is frozen keeps the lease whatever its time; one that is killed loses it at
// once, and the next token is higher.
func TestALeaseEndsWithTheProcessThatHoldsIt(t *testing.T) {
	dir := t.TempDir()
	first, line := holder(t, dir)
	require.Equal(t, "true 1 holder <nil>\n", line)
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
	s := open(t, dir)
	short := claim("b")
	short.TTL = time.Millisecond
	for range 20 {
		a, err := s.Take(t.Context(), short)
		require.NoError(t, err)
		require.Equal(t, lease.Answer{Owner: "holder"}, a)
	}
	require.NoError(t, first.Process.Kill())
	require.Error(t, first.Wait())
	a, err := s.Take(t.Context(), claim("b"))
	require.NoError(t, err)
	require.True(t, a.Granted)
	require.EqualValues(t, 2, a.Token)
	second, line := holder(t, dir)
	require.Equal(t, "false 0 b <nil>\n", line)
	require.NoError(t, second.Process.Kill())
	require.Error(t, second.Wait())
}
