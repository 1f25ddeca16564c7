// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/internal/patience"
)

// The test builds the program and starts three processes with cluster.yaml, each with an
// address and a data directory of its own. It reads the streams of their pages, as browsers
// do, and asks the nodes what their pages show.

// TestThreePagesThroughDeathAndRestart kills a process and starts it with its disk, kills
// another one and starts it without, and at last kills all of them. The pages show who is
// connected to which node; nobody is connected to a node that is gone; and no page forgets
// when a name was last seen.
func TestThreePagesThroughDeathAndRestart(t *testing.T) {
	s := newSite(t)
	nodes := []*node{s.start(0), s.start(1), s.start(2)}
	names := []string{"alice", "bob", "carol"}
	for i, n := range nodes {
		n.connect(names[i])
	}
	s.awaitPages("all are online", nodes, func(b pageContent) bool {
		return s.online(b, "alice", 0) && s.online(b, "bob", 1) && s.online(b, "carol", 2)
	})

	nodes[1].Kill()
	others := []*node{nodes[0], nodes[2]}
	s.awaitPages("bob was connected to a node that is gone", others, func(b pageContent) bool {
		return s.online(b, "alice", 0) && s.offline(b, "bob", 1) && s.online(b, "carol", 2) && len(b.Members) == 2
	})
	nodes[1] = s.start(1)
	s.awaitPages("bob was seen, and is not online before he connects", nodes, func(b pageContent) bool {
		return len(b.Members) == 3 && s.online(b, "alice", 0) && s.offline(b, "bob", 1) && s.online(b, "carol", 2)
	})
	nodes[1].connect("bob")
	s.awaitPages("bob is back", nodes, func(b pageContent) bool { return s.online(b, "bob", 1) })

	nodes[2].Kill()
	require.NoError(t, os.RemoveAll(s.data(2)))
	nodes[2] = s.start(2)
	s.awaitPages("a node without a disk is told everything", nodes, func(b pageContent) bool {
		return len(b.Members) == 3 && s.online(b, "alice", 0) && s.online(b, "bob", 1) && s.offline(b, "carol", 2)
	})

	before, err := nodes[0].board()
	require.NoError(t, err)
	for _, n := range nodes {
		n.Kill()
	}
	for i := range nodes {
		nodes[i] = s.start(i)
	}
	s.awaitPages("nobody is online after the cluster has stopped, and everybody was seen", nodes, func(b pageContent) bool {
		return len(b.Members) == 3 && s.offline(b, "alice", 0) && s.offline(b, "bob", 1) && s.offline(b, "carol", 2) &&
			s.seenAlice(b).Equal(s.seenAlice(before))
	})
	stream := nodes[0].connect("alice")
	s.awaitPages("alice is back", nodes, func(b pageContent) bool {
		return s.online(b, "alice", 0) && s.seenAlice(b).After(s.seenAlice(before))
	})
	require.NoError(t, stream.Close())
	s.awaitPages("alice has left", nodes, func(b pageContent) bool { return s.offline(b, "alice", 0) })
}

// site has the processes.
type site struct {
	t     *testing.T
	dir   string // The directory with the program, cluster.yaml and the data directories.
	ports []int
}

// newSite builds the program, and replaces the ports in cluster.yaml by some that are free.
func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), ports: attachedtest.Ports(t, 3)}
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "presence"), ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	file, err := os.ReadFile("cluster.yaml")
	require.NoError(t, err)
	text := string(file)
	for i, port := range s.ports {
		written := fmt.Sprintf("127.0.0.1:%d", 7946+i)
		require.Contains(t, text, written, "the addresses are not where the test looks for them")
		text = strings.ReplaceAll(text, written, fmt.Sprintf("127.0.0.1:%d", port))
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "cluster.yaml"), []byte(text), 0o600))
	return s
}

func (s *site) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", s.ports[i]) }

// data returns the data directory of the i-th address.
func (s *site) data(i int) string { return filepath.Join(s.dir, fmt.Sprintf("data-%d", i)) }

// online reports whether a page shows a name as connected to the i-th address alone.
func (s *site) online(b pageContent, name string, i int) bool {
	p, found := s.person(b, name)
	return found && slices.Equal(p.Online, []string{s.address(i)}) && len(p.Lost) == 0 && p.SeenAt == s.address(i)
}

// offline reports whether a page shows a name as connected to no node, and seen at the i-th
// address.
func (s *site) offline(b pageContent, name string, i int) bool {
	p, found := s.person(b, name)
	return found && len(p.Online) == 0 && len(p.Lost) == 0 && p.SeenAt == s.address(i) && !p.Seen.IsZero()
}

func (*site) person(b pageContent, name string) (person, bool) {
	i := slices.IndexFunc(b.People, func(p person) bool { return p.Name == name })
	if i < 0 {
		return person{}, false
	}
	return b.People[i], true
}

// seenAlice returns when alice was seen, as a page shows it.
func (s *site) seenAlice(b pageContent) time.Time {
	p, _ := s.person(b, "alice")
	return p.Seen
}

// awaitPages waits until the page of each node shows what it should.
func (s *site) awaitPages(what string, nodes []*node, shows func(pageContent) bool) {
	s.t.Helper()
	began := time.Now()
	for _, n := range nodes {
		var last pageContent
		ok := func() bool {
			b, err := n.board()
			last = b
			return err == nil && shows(b)
		}
		patience.Eventually(s.t, ok, "%s shows: %s; last: %+v", n.Node.Node, what, &last)
	}
	s.t.Logf("after %v: %s", time.Since(began).Round(10*time.Millisecond), what)
}

// node is one process.
type node struct {
	*attachedtest.Node

	t *testing.T
}

// start starts a process at the i-th address, with the data directory of that address, and
// waits until its page is served.
func (s *site) start(i int) *node {
	s.t.Helper()
	cmd := exec.Command(filepath.Join(s.dir, "presence"), "-attached", "-config", filepath.Join(s.dir, "cluster.yaml"))
	cmd.Env = append(os.Environ(), "QUORATE_NODE__ADDRESS="+s.address(i), "QUORATE_NODE__DATA_DIR="+s.data(i))
	return &node{Node: attachedtest.Start(s.t, s.address(i), cmd), t: s.t}
}

// board asks the node what its page shows.
func (n *node) board() (b pageContent, err error) {
	err = n.Get(n.t.Context(), "/board", &b)
	return b, err
}

// connect reads the stream of the node under a name, as a browser does, until the first
// board has come. The stream goes on until the body is closed or the process ends.
func (n *node) connect(name string) interface{ Close() error } {
	n.t.Helper()
	response, err := n.Request(n.t.Context(), "/events?name="+url.QueryEscape(name))
	require.NoError(n.t, err)
	n.t.Cleanup(func() { _ = response.Body.Close() }) // Closing it again does nothing.
	require.Equal(n.t, "text/event-stream", response.Header.Get("Content-Type"))
	lines := bufio.NewScanner(response.Body)
	require.True(n.t, lines.Scan(), "no event: %v", lines.Err())
	text, found := strings.CutPrefix(lines.Text(), "data: ")
	require.True(n.t, found, "%q", lines.Text())
	var b pageContent
	require.NoError(n.t, json.Unmarshal([]byte(text), &b))
	return response.Body
}
