// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnInterruptedDemoLeavesNothingBehind interrupts the demo while it runs:
// it ends soon with a verdict that is not ok and a status other than zero, and
// none of its nodes listens any more. The nodes are not signalled themselves.
func TestAnInterruptedDemoLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"bank", "bank-demo"} {
		out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), "../"+name).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	demo := exec.Command(filepath.Join(dir, "bank-demo"), "-accounts", "50", "-rate", "50", "-dir", dir)
	var stderr bytes.Buffer
	demo.Stderr = &stderr
	stdout, err := demo.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, demo.Start())
	t.Cleanup(func() { _ = demo.Process.Kill() }) // It has ended, if all is well.

	var lines []string
	out := bufio.NewScanner(stdout)
	for out.Scan() {
		lines = append(lines, out.Text())
		if strings.Contains(out.Text(), "op/s") {
			break
		}
	}
	require.NotEmpty(t, lines)
	require.Contains(t, lines[len(lines)-1], "op/s", "the load did not begin: %s", &stderr)
	addresses := listening(t, dir)
	at := time.Now()
	require.NoError(t, demo.Process.Signal(syscall.SIGINT))
	for out.Scan() {
		lines = append(lines, out.Text())
	}
	require.Error(t, demo.Wait())
	require.Equal(t, 1, demo.ProcessState.ExitCode(), "%s", &stderr)
	require.Less(t, time.Since(at), 20*time.Second)

	var v verdict
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &v))
	require.False(t, v.OK)
	require.NotEmpty(t, v.Error)
	require.Zero(t, v.Lost)
	for _, address := range addresses {
		_, err := net.Dial("tcp", address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "a node lives on at %s", address)
	}
}

// listening returns the addresses of the nodes, each of which must be in use.
func listening(t *testing.T, dir string) []string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, "cluster.yaml"))
	require.NoError(t, err)
	_, seeds, _ := strings.Cut(string(file), "seed-nodes:")
	addresses := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(seeds, -1)
	require.Len(t, addresses, firstNodes)
	for _, address := range addresses {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	return addresses
}
