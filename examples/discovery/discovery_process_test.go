// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package main_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/management"
)

// The test builds both programs, starts the one with the names, and changes those while
// processes with cluster.yaml, each with an address and a data directory of its own, look
// for each other. What it waits for it asks the nodes, over HTTP.

const (
	// formed is in the line of the log with which a node says that it has formed a cluster.
	formed = "this node has formed cluster"
)

// TestProcessesFormOneClusterWhileNamesChange starts three processes under a name that does
// not exist. Their addresses appear one after the other; one disappears, and its process
// comes back at another address. A fourth process joins, and the one that has formed the
// cluster is killed and started with its data directory. Of all of them one forms a
// cluster, once.
func TestProcessesFormOneClusterWhileNamesChange(t *testing.T) {
	s := newService(t)
	first, second, third := s.start(0), s.start(1), s.start(2)
	s.awaitBootstrap("no contact point was found", first, second, third)

	s.tell("+ " + s.address(0))
	s.awaitBootstrap("1 of the 2 contact points that are required were found", first)
	s.awaitBootstrap("is not among the contact points", second, third)
	s.tell("+ " + s.address(1))
	s.awaitPoints([]int{0, 1}, first, second, third)
	s.tell("+ " + s.address(2))
	s.awaitPoints([]int{0, 1, 2}, first, second, third)
	s.tell("- " + s.address(2))
	third.Kill()
	third = s.start(3)
	s.awaitPoints([]int{0, 1}, first, second, third)
	s.tell("+ " + s.address(3))
	s.awaitCluster(first, second, third)
	patience.Eventually(t, func() bool { return s.clustersFormed() == 1 }, "whoever forms says so")

	fourth := s.start(4)
	s.tell("+ " + s.address(4))
	s.awaitCluster(first, second, third, fourth)

	before := first.Node
	first.Kill()
	first = s.start(0)
	require.NotEqual(t, before, first.Node, "the process is another incarnation")
	s.awaitCluster(first, second, third, fourth)

	require.Equal(t, 1, s.clustersFormed(), "nobody formed a second cluster")
	require.Len(t, s.seen, 1, "nobody was in a second cluster")
}

// service has the processes that look each other up under one name.
type service struct {
	t       *testing.T
	dir     string // The directory with the programs, the data directories and cluster.yaml.
	ports   []int
	dns     string // The address of the server of the names.
	lines   io.Writer
	said    *bufio.Scanner
	started []*attachedtest.Node
	seen    map[string]bool // The clusters that a node was in when it was asked.
}

// newService builds the programs and starts the server of the names.
func newService(t *testing.T) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), ports: attachedtest.Ports(t, 5), seen: map[string]bool{}}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.dir+string(filepath.Separator), "./...").CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile("cluster.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "cluster.yaml"), text, 0o600))

	names := exec.CommandContext(t.Context(), filepath.Join(s.dir, "names"))
	s.lines, err = names.StdinPipe()
	require.NoError(t, err)
	stdout, err := names.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, names.Start())
	t.Cleanup(func() { _ = names.Wait() }) // The end of the test's context has killed it.
	s.said = bufio.NewScanner(stdout)
	require.True(t, s.said.Scan(), "no address: %v", s.said.Err())
	s.dns = s.said.Text()
	return s
}

// tell has the server change the name, and waits until it has.
func (s *service) tell(line string) {
	s.t.Helper()
	_, err := fmt.Fprintln(s.lines, line)
	require.NoError(s.t, err)
	require.True(s.t, s.said.Scan(), "the server of the names has ended: %v", s.said.Err())
	require.Contains(s.t, s.said.Text(), "_node._tcp.bank.example.")
}

func (s *service) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", s.ports[i]) }

// start starts a process at the i-th address, with the data directory of that address, and
// waits for its first line.
func (s *service) start(i int) *attachedtest.Node {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.dir, "discovery"), "-attached", "-config", filepath.Join(s.dir, "cluster.yaml"))
	cmd.Env = append(os.Environ(), "QUORATE_NODE__ADDRESS="+s.address(i),
		fmt.Sprintf("QUORATE_NODE__DATA_DIR=data-%d", i), "QUORATE_DISCOVERY_DNS__SERVERS="+s.dns)
	n := attachedtest.Start(s.t, s.address(i), cmd)
	s.started = append(s.started, n)
	return n
}

// await asks each node again and again until holds is true of the node.
func (s *service) await(what string, nodes []*attachedtest.Node, holds func(*attachedtest.Node) (said string, ok bool)) {
	s.t.Helper()
	for _, n := range nodes {
		var said string
		patience.Eventually(s.t, func() bool {
			var ok bool
			said, ok = holds(n)
			return ok
		}, "%s says %s", n.Node, what)
		s.t.Logf("%s: %s", n.Node, said)
	}
}

// awaitBootstrap waits until nodes say at /bootstrap what they wait for.
func (s *service) awaitBootstrap(line string, nodes ...*attachedtest.Node) {
	s.t.Helper()
	s.await(line, nodes, func(n *attachedtest.Node) (string, bool) {
		b, err := s.bootstrap(n)
		return b.Waits, err == nil && strings.Contains(b.Waits, line)
	})
}

// awaitPoints waits until the last lookup of nodes has found the addresses with these
// indices and no others, or the node is in a cluster, since then it looks nobody up.
func (s *service) awaitPoints(want []int, nodes ...*attachedtest.Node) {
	s.t.Helper()
	var addresses []string
	for _, i := range want {
		addresses = append(addresses, s.address(i))
	}
	s.await(fmt.Sprint(addresses), nodes, func(n *attachedtest.Node) (string, bool) {
		b, err := s.bootstrap(n)
		var found []string
		for _, p := range b.ContactPoints {
			found = append(found, p.Address)
		}
		slices.Sort(found)
		return b.Waits, err == nil && (slices.Equal(addresses, found) || s.members(n).Cluster != "")
	})
}

func (s *service) bootstrap(n *attachedtest.Node) (management.BootstrapStatus, error) {
	var b management.BootstrapStatus
	err := n.Get(s.t.Context(), "/bootstrap", &b)
	return b, err
}

// awaitCluster waits until nodes see exactly each other, up.
func (s *service) awaitCluster(nodes ...*attachedtest.Node) {
	s.t.Helper()
	var want []string
	for _, n := range nodes {
		want = append(want, n.Node)
	}
	slices.Sort(want)
	s.await(fmt.Sprint(want), nodes, func(n *attachedtest.Node) (string, bool) {
		m := s.members(n)
		var up []string
		for _, other := range m.Members {
			if other.Status != "up" && other.Status != "ready" {
				return m.Cluster, false
			}
			up = append(up, other.Node)
		}
		slices.Sort(up)
		return m.Cluster, slices.Equal(want, up)
	})
}

// members asks a node for the members of its cluster, and notes the cluster as seen.
func (s *service) members(n *attachedtest.Node) management.ClusterMembers {
	var m management.ClusterMembers
	if err := n.Get(s.t.Context(), "/v1/members", &m); err != nil {
		return management.ClusterMembers{}
	}
	if m.Cluster != "" {
		s.seen[m.Cluster] = true
	}
	return m
}

// clustersFormed returns how often any process has said that it formed a cluster.
func (s *service) clustersFormed() int {
	times := 0
	for _, n := range s.started {
		times += strings.Count(n.Log.String(), formed)
	}
	return times
}
