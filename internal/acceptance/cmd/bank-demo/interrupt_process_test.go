// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

	"github.com/quorate/quorate/internal/patience"
)

// playing is a demo that runs.
type playing struct {
	cmd       *exec.Cmd
	out       *bufio.Scanner
	stderr    bytes.Buffer
	addresses []string // The addresses of the nodes that the demo begins with.
}

// play starts a demo and waits until the load has begun.
func play(t *testing.T) *playing {
	t.Helper()
	dir := t.TempDir()
	for name, source := range map[string]string{
		"bank": filepath.Join("..", "..", "..", "..", "examples", "bank", "cmd", "bank"), "bank-demo": ".",
	} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), ".")
		build.Dir = source
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	p := &playing{cmd: exec.Command(filepath.Join(dir, "bank-demo"), "-accounts", "50", "-rate", "50", "-dir", dir)}
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() }) // The demo has ended, if all is well.
	p.out = bufio.NewScanner(stdout)
	for begun := false; !begun && p.out.Scan(); {
		begun = strings.Contains(p.out.Text(), "op/s")
	}
	require.Contains(t, p.out.Text(), "op/s", "the load did not begin: %s", &p.stderr)
	p.addresses = listening(t, dir)
	return p
}

// TestAnInterruptedDemoLeavesNothingBehind interrupts the demo while it runs:
// it ends soon with a verdict that is not ok and a status other than zero, and
// none of its nodes listens any more. The nodes are not signalled themselves.
func TestAnInterruptedDemoLeavesNothingBehind(t *testing.T) {
	demo := play(t)
	at := time.Now()
	require.NoError(t, demo.cmd.Process.Signal(syscall.SIGINT))
	last := ""
	for demo.out.Scan() {
		last = demo.out.Text()
	}
	require.Error(t, demo.cmd.Wait())
	require.Equal(t, 1, demo.cmd.ProcessState.ExitCode(), "%s", &demo.stderr)
	require.Less(t, time.Since(at), 20*time.Second)

	var v verdict
	require.NoError(t, json.Unmarshal([]byte(last), &v))
	require.False(t, v.OK)
	require.NotEmpty(t, v.Error)
	require.Zero(t, v.Lost)
	for _, address := range demo.addresses {
		_, err := net.Dial("tcp", address)
		require.ErrorIs(t, err, syscall.ECONNREFUSED, "a node lives on at %s", address)
	}
}

// TestAKilledDemoLeavesNothingBehind kills the demo, which then cannot end its
// nodes: they end by themselves.
func TestAKilledDemoLeavesNothingBehind(t *testing.T) {
	demo := play(t)
	require.NoError(t, demo.cmd.Process.Kill())
	require.Error(t, demo.cmd.Wait())
	demo.awaitNobody(t)
}

// awaitNobody waits until no node listens.
func (p *playing) awaitNobody(t *testing.T) {
	t.Helper()
	for _, address := range p.addresses {
		patience.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				_ = conn.Close() // The node still listens.
			}
			return errors.Is(err, syscall.ECONNREFUSED)
		}, "no node is left at %s", address)
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
