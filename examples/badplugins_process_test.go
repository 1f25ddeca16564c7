// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && linux

package examples_test

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/examples/attached/attachedtest"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/plugins/host"
)

// Nodes whose plugins do what plugins must not do, each of which is a process of its own: the
// nodes become members, and stay members, as if there were none. First failure detectors, then
// methods of discovery.

// ports is how many nodes a club can have.
const ports = 16

// club are nodes of this process, at addresses that it has reserved.
type club struct {
	t       *testing.T
	plugin  string // The misbehaving plugin.
	ports   []int
	members []*cluster.Node
}

// TestNodesWithBadPluginsAreMembersAllTheSame has the tests of this file, for which it builds the
// plugin once.
func TestNodesWithBadPluginsAreMembersAllTheSame(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "misbehaving")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, ".")
	build.Dir = filepath.Join(root, "plugins", "internal", "process", "testdata", "misbehaving")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for name, test := range map[string]func(*club){
		"BadFailureDetectors":           badFailureDetectors,
		"AThousandFlappingVerdicts":     aThousandFlappingVerdicts,
		"BadMethodsOfDiscovery":         badMethodsOfDiscovery,
		"DiscoveryOfTenThousandTargets": discoveryOfTenThousandTargets,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // Tests of nodes mostly wait.
			test(&club{t: t, plugin: plugin, ports: attachedtest.Ports(t, ports)})
		})
	}
}

func (c *club) address(i int) string { return fmt.Sprintf("127.0.0.1:%d", c.ports[i]) }

// file writes the file of the i-th node, which knows the first one.
func (c *club) file(i int, membership, plugins string) string {
	c.t.Helper()
	path := filepath.Join(c.t.TempDir(), fmt.Sprintf("node-%d.yaml", i))
	text := strings.Join([]string{"cluster: {name: club}", "node: {address: \"" + c.address(i) + "\"}", "membership: " + membership, plugins, ""}, "\n")
	require.NoError(c.t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// start starts a node that ends with the test.
func (c *club) start(path string) *cluster.Node {
	c.t.Helper()
	node, err := cluster.Start(c.t.Context(), cluster.WithFile(path), cluster.WithPlugins(host.New()), cluster.WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = node.Membership().Close(); _ = node.Close() })
	c.members = append(c.members, node)
	return node
}

// section is the section of the plugin in a mode, for a policy.
func (c *club) section(policy, mode string) string {
	return fmt.Sprintf("plugins: {bad: {policy: %s, path: %s, unpinned: true, args: [%q], environment: {POLICY: %[1]s, VERSION: one, DELAY: 1s}, restart-backoff-min: 10ms, restart-backoff-max: 100ms}}",
		policy, c.plugin, mode)
}

// judged starts a node whose failure detector is in a mode.
func (c *club) judged(i int, mode string, interval time.Duration) {
	c.t.Helper()
	c.start(c.file(i, fmt.Sprintf("{seed-nodes: [%q], failure-detector: {strategy: bad, heartbeat-interval: %v}}", c.address(0), interval),
		c.section("failure-detector", mode)))
}

// await waits until something holds.
func (c *club) await(what string, holds func() bool) {
	c.t.Helper()
	patience.Eventually(c.t, holds, "%s", what)
}

// together reports whether each node sees n members that are up and reachable.
func (c *club) together(n int) bool {
	for _, node := range c.members {
		s := node.Membership().State()
		if len(s.Members()) != n || len(s.Unreachable()) > 0 {
			return false
		}
		for _, m := range s.Members() {
			if m.Status != gossip.Up {
				return false
			}
		}
	}
	return true
}

// asked waits until the plugin of each node has been asked n times more.
func (c *club) asked(n uint64) {
	c.t.Helper()
	before := make(map[*cluster.Node]uint64)
	for _, node := range c.members {
		before[node] = node.Plugins()[0].Calls
	}
	c.await("each plugin is asked", func() bool {
		for _, node := range c.members {
			if node.Plugins()[0].Calls < before[node]+n {
				return false
			}
		}
		return true
	})
}

// marks counts how often the nodes have taken somebody for unreachable.
func (c *club) marks() (n uint64) {
	for _, node := range c.members {
		n += node.Membership().Stats().Marks
	}
	return n
}

// Each node of a cluster has a failure detector that is bad in another way: garbage, verdicts
// about nodes that it was not asked about, answers that are late or never come, processes that
// end, verdicts that flap, accusations of everybody, and nodes that it says it keeps and does
// not. All become members, nobody is taken for unreachable, and when one ends without a word all
// others find that out. covers F56, F60, I31.
func badFailureDetectors(c *club) {
	t := c.t
	modes := []string{"flaps", "unknown", "unasked", "number", "slow", "hangcall", "diescall", "accuses", "denies", "huge"}
	for i, mode := range modes {
		c.judged(i, mode, 100*time.Millisecond)
	}
	c.await("all nodes are members", func() bool { return c.together(len(modes)) })
	c.asked(20)
	require.True(t, c.together(len(modes)))
	require.Zero(t, c.marks(), "somebody was taken for unreachable")
	for i, node := range c.members {
		p := node.Plugins()[0]
		// Verdicts that flap or accuse everybody break no rule.
		require.True(t, p.Failures > 0 || modes[i] == "flaps" || modes[i] == "accuses", "%s: none of %d calls failed", modes[i], p.Calls)
	}

	last := c.members[len(modes)-1]
	require.NoError(t, last.Membership().Close())
	c.members = c.members[:len(modes)-1]
	c.await("the end of a node is found out by all", func() bool {
		for _, node := range c.members {
			s := node.Membership().State()
			if s.Member(last.Self()) != nil && !slices.Contains(s.Unreachable(), last.Self()) {
				return false
			}
		}
		return true
	})
	for _, node := range c.members {
		require.NoError(t, node.Err())
	}
}

// Detectors that turn the verdict about everybody in each batch, a thousand verdicts a second in
// all: nobody is taken for unreachable. covers F60, I31.
func aThousandFlappingVerdicts(c *club) {
	t := c.t
	const nodes, interval = 5, 20 * time.Millisecond
	for i := range nodes {
		c.judged(i, "flaps", interval)
	}
	c.await("all nodes are members", func() bool { return c.together(nodes) })
	began := time.Now()
	c.asked(100)
	took := time.Since(began)
	require.True(t, c.together(nodes))
	require.Zero(t, c.marks(), "somebody was taken for unreachable")
	t.Logf("%.0f verdicts a second", nodes*(nodes-1)*100/took.Seconds())
}

// A node that joins by contact points which a bad method finds: where that method has no answer,
// the next one has. covers F57, F60.
func badMethodsOfDiscovery(c *club) {
	t := c.t
	modes := []string{"10001", "double", "columns", "port", "ip", "ttl", "host", "huge", "slow", "hangcall", "diescall", "fails"}
	c.start(c.file(0, fmt.Sprintf("{seed-nodes: [%q]}", c.address(0)), ""))
	for i, mode := range modes {
		c.start(c.file(i+1, fmt.Sprintf("{seed-nodes: [%q], discovery: {methods: [bad, static], resolve-timeout: 500ms}}", c.address(0)),
			c.section("discovery", mode)))
	}
	c.await("all nodes are members", func() bool { return c.together(len(modes) + 1) })
	require.Zero(t, c.marks())
	for i, node := range c.members[1:] {
		require.NotZero(t, node.Plugins()[0].Failures, modes[i])
	}
}

// A node whose method of discovery finds 10,000 contact points, all that a method may find,
// waits and says why; the cluster beside it goes on, and so it does when the node ends. covers F60.
func discoveryOfTenThousandTargets(c *club) {
	t := c.t
	for i := range 2 {
		c.start(c.file(i, fmt.Sprintf("{seed-nodes: [%q]}", c.address(0)), ""))
	}
	c.await("two are members", func() bool { return c.together(2) })
	lost := c.start(c.file(2, "{discovery: {methods: [bad], required-contact-point-nr: 1, stable-margin: 10ms}}", c.section("discovery", "10000")))
	c.members = c.members[:2]
	c.await("it says why it waits", func() bool {
		b := lost.Membership().Bootstrap()
		return b != nil && strings.Contains(b.Line, "more than 1000 contact points were found")
	})
	require.Empty(t, lost.Membership().State().Members())
	require.True(t, c.together(2))
	ended := make(chan struct{})
	go func() { // Ends with the node.
		defer close(ended)
		_ = lost.Close() // It never was a member that could leave.
	}()
	patience.Receive(t, ended, "the end of the node")
	require.True(t, c.together(2))
	require.Zero(t, c.marks())
}
