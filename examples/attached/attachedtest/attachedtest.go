// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package attachedtest is for tests that run nodes as child processes: ports that no other test
// is given (Ports), a process from its start to the end of the test (Start), and what its HTTP
// interface says (Get).
package attachedtest

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/internal/patience/logtest"
)

// Node is one process with a node.
type Node struct {
	*attached.Process

	// Log is what the process has written to its standard error.
	Log *logtest.Buffer
}

// Ports reserves n ports until the test ends. They are sorted, so that the first one is in the
// lowest address, which founds a cluster.
func Ports(t testing.TB, n int) []int {
	t.Helper()
	ports, err := attached.ReservePorts(n)
	require.NoError(t, err)
	t.Cleanup(ports.Close)
	slices.Sort(ports.Numbers)
	return ports.Numbers
}

// Start runs a program as [attached.Start] does, and waits for its first line. Its standard error
// is the log of the node. The process is killed when the test ends, and its log is printed if
// the test has failed.
func Start(t testing.TB, address string, cmd *exec.Cmd) *Node {
	t.Helper()
	patience.Watch(t) // The limits of the program are real.
	n := &Node{Log: new(logtest.Buffer)}
	cmd.Stderr = n.Log
	var err error
	n.Process, err = attached.Start(cmd, (*exec.Cmd).Start)
	require.NoError(t, err)
	n.EndWith(t, address)
	require.NoError(t, <-n.Hello(), "%s", n.Log)
	return n
}

// EndWith kills the process when the test ends, waits for its end, and prints its log if the test
// has failed.
func (n *Node) EndWith(t testing.TB, address string) {
	t.Helper()
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", address, n.Log)
		}
	})
}

// Kill kills the process and waits for its end. It may be called again.
func (n *Node) Kill() {
	_ = n.Cmd.Process.Kill() // The process may have ended already.
	<-n.Ended()
}

// Request asks the node for a page. The caller closes the body of the answer.
func (n *Node) Request(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

// Get asks the node for a page of JSON and decodes it.
func (n *Node) Get(ctx context.Context, path string, into any) error {
	response, err := n.Request(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // The body was read.
	return json.NewDecoder(response.Body).Decode(into)
}
