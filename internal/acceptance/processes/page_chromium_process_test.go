// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix && chromium

package processes_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The page of management, in a browser, while a cluster loses a node, and then the one that the page asks.
func TestChromiumShowsAClusterThatLosesANode(t *testing.T) {
	c := newCity(t, "management: {page: true}")
	management := c.address(len(c.ports) - 1)
	asked := []string{"QUORATE_MANAGEMENT__ADDRESS=" + management, "QUORATE_TELEMETRY__METRICS=prometheus"}
	nodes := []*node{c.start(asked...), c.start(), c.start(), c.start()}
	c.awaitMembers(nodes...)

	arguments := []string{filepath.Join("..", "..", "..", "management", "page", "test", "cluster.mjs"), "http://" + management + "/ui", nodes[2].address, "acct-1"}
	if dir := os.Getenv("QUORATE_PICTURES"); dir != "" {
		arguments = append(arguments, dir)
	}
	script := exec.CommandContext(t.Context(), "node", arguments...)
	var said bytes.Buffer
	script.Stderr = &said
	out, err := script.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, script.Start())
	ended := time.AfterFunc(3*time.Minute, func() { _ = script.Process.Kill() }) // It has limits of its own.
	defer ended.Stop()

	var lines []string
	for all := bufio.NewScanner(out); all.Scan(); {
		lines = append(lines, all.Text())
		switch all.Text() {
		case "formed":
			nodes[2].signal(syscall.SIGKILL)
		case "removed":
			nodes[0].signal(syscall.SIGKILL)
			<-nodes[0].Ended()
		case "lost":
			again, err := c.spawn(nodes[0].address, (*exec.Cmd).Start, nil, asked)
			require.NoError(t, err)
			defer func() { _ = again.Cmd.Process.Kill(); <-again.Ended() }()
		}
	}
	require.NoError(t, script.Wait(), "%s\n%s", strings.Join(lines, "\n"), said.String())
	require.Equal(t, []string{"formed", "unreachable", "removed", "lost", "found"}, lines)
}
