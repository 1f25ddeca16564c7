// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/internal/patience"
)

// The program runs with the file that deploy/compose.yaml gives it, and with certificates that the
// quorate command has made: three processes become a cluster, answer probes, and are replaced one
// after the other while visits are counted.

const (
	// deadline is within which a node leaves, as in the manifests.
	deadline = 25 * time.Second
)

// world has the programs, the certificates and the ports of the nodes.
type world struct {
	t     *testing.T
	dir   string
	ports []int // Those of the nodes, then those of their probes.
	nodes []*attachedtest.Node
}

// newWorld builds the programs and makes the certificates.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), ports: attachedtest.Ports(t, 6)}
	for name, pkg := range map[string]string{"visits": ".", "quorate": "../../tools/cmd/quorate"} {
		out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(w.dir, name), pkg).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "compose", "cluster.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "cluster.yaml"), text, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "tls"), 0o700))
	for _, args := range [][]string{{"cert", "authority"}, {"cert", "node", "127.0.0.1"}, {"cert", "check", "-host", "127.0.0.1"}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(w.dir, "quorate"), args...)
		cmd.Dir = filepath.Join(w.dir, "tls")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return w
}

// address is that of a node for the others.
func (w *world) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", w.ports[i]) }

// start starts a node. What the environment changes is what differs between a container and a process
// on this machine: addresses and directories.
func (w *world) start(i int) *attachedtest.Node {
	w.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), filepath.Join(w.dir, "visits"), "-attached", "-config", "cluster.yaml")
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(),
		"QUORATE_NODE__ADDRESS="+w.address(i), fmt.Sprintf("QUORATE_NODE__DATA_DIR=data-%d", i),
		"QUORATE_MEMBERSHIP__SEED_NODES="+strings.Join([]string{w.address(0), w.address(1), w.address(2)}, ","),
		"QUORATE_TRANSPORT__BIND=", "QUORATE_MANAGEMENT__ADDRESS=127.0.0.1:0", "QUORATE_MANAGEMENT__HEALTH__ADDRESS="+w.address(3+i),
	)
	return attachedtest.Start(w.t, w.address(i), cmd)
}

// ask sends a request to an address, and returns the status and the text of the answer.
func ask(t *testing.T, method, address, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }() // The body was read.
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, strings.TrimSpace(string(text))
}

// awaitReady waits until the probes of a node say that it is ready.
func (w *world) awaitReady(i int) {
	w.t.Helper()
	for _, path := range []string{"/health/ready", "/health/startup", "/health/live"} {
		patience.Eventually(w.t, func() bool {
			status, _ := ask(w.t, http.MethodGet, w.address(3+i), path)
			return status == http.StatusOK
		}, "%s succeeds at node %d", path, i)
	}
}

// A rolling update replaces every node: each leaves within the deadline with status 0, and no
// visit is lost.
func TestARollingUpdateLosesNoVisit(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // There is no SIGTERM.
	}
	w := newWorld(t)
	for i := range 3 {
		w.nodes = append(w.nodes, w.start(i))
	}
	for i := range w.nodes {
		w.awaitReady(i)
	}
	_, metrics := ask(t, http.MethodGet, w.address(3), "/metrics")
	require.Contains(t, metrics, "quorate_membership_standing")
	const pages = 12
	for round := range 4 {
		for page := range pages {
			status, text := ask(t, http.MethodPost, w.nodes[(round+page)%3].HTTP, fmt.Sprintf("/visits/%d", page))
			require.Equal(t, http.StatusOK, status, text)
			require.Equal(t, fmt.Sprint(round+1), text, "after the replacement of %d nodes", round)
		}
		if round == 3 {
			break
		}
		old := w.nodes[round]
		watch := patience.Start(t)
		require.NoError(t, old.Cmd.Process.Signal(syscall.SIGTERM))
		<-old.Ended()
		require.Less(t, watch.Elapsed(), deadline)
		require.Equal(t, 0, old.Cmd.ProcessState.ExitCode(), "%s", old.Log)
		w.nodes[round] = w.start(round)
		w.awaitReady(round)
	}
}
