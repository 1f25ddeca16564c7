// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/gateway"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// How a cluster begins and ends: the options of nodes, [Start] and [Cluster.Add], what is
// written into the file of a node, and the end of all nodes with the test. What may be done to
// a cluster in between is in faults.go and wait.go.

// defaultTimeout is how long a wait lasts at most: several times what a cluster needs to go on
// after the loss of nodes, by the default settings.
const defaultTimeout = 2 * time.Minute

// maxSeeds is how many nodes are in the list of seed nodes: as many as a cluster in production
// would list.
const maxSeeds = 3

// Cluster is the nodes of one test, and the network between them.
type Cluster struct {
	t         testing.TB
	network   *memory.Network
	began     time.Time
	limit     time.Duration
	given     []Option // Of [Start]: every node has them.
	seeds     []string
	nodes     []*Node // All that have started, those that have ended too.
	cuts      map[cutLink]bool
	listeners *listeners
	setups    []func(*Node) error // What [Cluster.OnEach] was given.
}

// Node is a node of a [Cluster].
type Node struct {
	*cluster.Node

	address string
	ended   string // What the test did to end the node; empty while it did nothing.
}

// Address returns the "host:port" of the node.
func (n *Node) Address() string { return n.address }

// Running reports whether the node has not ended.
func (n *Node) Running() bool {
	select {
	case <-n.Done():
		return false
	default:
		return n.ended == ""
	}
}

// Option says how a node is started.
type Option func(*settings)

// settings are the arguments of a node.
type settings struct {
	address string
	roles   []string
	texts   []string
	options []cluster.Option
}

// WithConfig lays a configuration over that of the node, in YAML as in a file. If the option is
// given several times, later texts override earlier ones. Without it a setting has its default,
// but for these: the cluster is named "test", addresses are 10.0.0.1:7946, 10.0.0.2:7946 and so on, and
// the first three nodes are the seed nodes. Environment variables override the text, as in production.
func WithConfig(yaml string) Option { return func(s *settings) { s.texts = append(s.texts, yaml) } }

// WithRoles gives the node roles.
func WithRoles(roles ...string) Option { return func(s *settings) { s.roles = roles } }

// WithAddress gives a node the address of a node that has ended, or another one, as "host:port".
// It is for [Cluster.Add].
func WithAddress(address string) Option { return func(s *settings) { s.address = address } }

// WithOptions starts the node with further options, such as the files of a program, its sections
// and its strategies. A file is laid under the configuration of the kit. The default
// logger drops everything; cluster.WithLogger sets another one.
func WithOptions(opts ...cluster.Option) Option {
	return func(s *settings) { s.options = append(s.options, opts...) }
}

// Start starts a cluster of n nodes, and waits until all of them are up and know it. It must be called inside of
// synctest.Test. The options are for each of the nodes, and for those that are added later. With 0 there is
// a network alone, and [Cluster.Add] has to say which seed nodes a node has.
func Start(t testing.TB, n int, opts ...Option) *Cluster {
	t.Helper()
	if !inBubble() {
		t.Fatal("clustertest: a cluster is started outside of a bubble: call Start inside of synctest.Test")
	}
	if n < 0 {
		t.Fatalf("clustertest: a cluster of %d nodes: start 0 at least", n)
	}
	c := &Cluster{t: t, network: memory.NewNetwork(), began: time.Now(), limit: defaultTimeout, given: opts, cuts: map[cutLink]bool{}, listeners: newListeners()}
	for i := range min(n, maxSeeds) {
		c.seeds = append(c.seeds, addressOf(i))
	}
	t.Cleanup(c.end)
	for range n {
		c.start()
	}
	if n > 0 {
		c.AwaitConverged()
	}
	return c
}

// inBubble reports whether the caller is in a bubble of synctest.
func inBubble() (inside bool) {
	defer func() { inside = recover() == nil }() // Outside of a bubble Wait panics.
	synctest.Wait()
	return true
}

// addressOf is the address of the i-th node.
func addressOf(i int) string { return fmt.Sprintf("10.0.%d.%d:7946", i/250, i%250+1) }

// SetLimit sets how long each later wait may last, by the clock of the bubble. The default is
// two minutes.
func (c *Cluster) SetLimit(d time.Duration) { c.limit = d }

// limited returns a context for what a test waits for.
func (c *Cluster) limited() (context.Context, context.CancelFunc) {
	//quorate:realtime It is virtual: a Cluster is in a bubble.
	return context.WithTimeout(context.Background(), c.limit)
}

// Nodes returns the nodes that run, in the order of their start.
func (c *Cluster) Nodes() []*Node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *Node) bool { return !n.Running() })
}

// Node returns the i-th node that was started, from 0; nodes that have ended count.
func (c *Cluster) Node(i int) *Node {
	c.t.Helper()
	if i < 0 || i >= len(c.nodes) {
		c.t.Fatalf("clustertest: there is no node %d: the cluster has the nodes 0 to %d", i, len(c.nodes)-1)
	}
	return c.nodes[i]
}

// Add starts one more node, with the options of [Start] and then these, and with what
// [Cluster.OnEach] was given. It does not wait until the node is up: see
// [Cluster.AwaitConverged]. Its links are whole.
func (c *Cluster) Add(opts ...Option) *Node {
	c.t.Helper()
	n := c.start(opts...)
	for _, setup := range c.setups {
		c.setUp(n, setup)
	}
	return n
}

// OnEach calls f for each node that runs, and for each that is added later, as soon as it has
// started: it is the place for what a program does with its node. An error ends the test.
func (c *Cluster) OnEach(f func(*Node) error) {
	c.t.Helper()
	c.setups = append(c.setups, f)
	for _, n := range c.Nodes() {
		c.setUp(n, f)
	}
}

func (c *Cluster) setUp(n *Node, f func(*Node) error) {
	c.t.Helper()
	if err := f(n); err != nil {
		c.t.Fatalf("clustertest: node %s: %v", n.address, err)
	}
}

// start starts a node.
func (c *Cluster) start(opts ...Option) *Node {
	c.t.Helper()
	var s settings
	for _, opt := range slices.Concat(c.given, opts) {
		opt(&s)
	}
	if s.address == "" {
		s.address = addressOf(len(c.nodes))
	}
	options := c.options(s)
	c.check(&s, options)
	c.heal(func(l cutLink) bool { return l.from == s.address || l.to == s.address })
	node, err := cluster.Start(context.Background(), options...)
	if err != nil {
		c.t.Fatalf("clustertest: node %s: %v", s.address, err)
	}
	n := &Node{Node: node, address: s.address}
	c.nodes = append(c.nodes, n)
	return n
}

// options returns what a node is started with: the files of the test, under the file of the kit,
// under the texts.
func (c *Cluster) options(s settings) []cluster.Option {
	c.t.Helper()
	base, err := json.Marshal(map[string]any{
		"cluster":    map[string]any{"name": "test"},
		"node":       map[string]any{"address": s.address, "roles": append([]string{}, s.roles...)},
		"membership": map[string]any{"seed-nodes": append([]string{}, c.seeds...)},
	})
	if err != nil {
		c.t.Fatalf("clustertest: node %s: %v", s.address, err)
	}
	uid := gossip.UID(len(c.nodes) + 1)
	options := append([]cluster.Option{
		cluster.WithLogger(slog.New(slog.DiscardHandler)),
		cluster.WithMembership(membership.WithTransport(c.network.Transport), membership.WithUID(uid),
			membership.WithRand(rand.New(rand.NewPCG(1, uint64(uid))))),
		cluster.WithGateway(gateway.WithListen(c.listeners.listen)),
	}, s.options...)
	dir := c.t.TempDir()
	files := append([]string{string(base)}, s.texts...)
	for i, text := range files {
		path := filepath.Join(dir, fmt.Sprintf("config-%d.yaml", i)) // JSON is YAML.
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			c.t.Fatalf("clustertest: node %s: %v", s.address, err)
		}
		options = append(options, cluster.WithFile(path))
	}
	return options
}

// check refuses a configuration with which the node could not live in a bubble, or not beside
// the others. It takes over the address from the configuration.
func (c *Cluster) check(s *settings, options []cluster.Option) {
	c.t.Helper()
	cfg, err := cluster.Load(options...)
	if err != nil {
		c.t.Fatalf("clustertest: node %s: %v", s.address, err)
	}
	s.address = cfg.Node.Address
	for _, n := range c.Nodes() {
		if n.address == s.address {
			c.t.Fatalf("clustertest: node %s: another node of this address runs: kill it first, or choose another address", s.address)
		}
	}
	if cfg.Management.Address != "" || cfg.Management.Health.Address != "" {
		c.t.Fatalf("clustertest: node %s: management.address or management.health.address is set, and time stands still in a bubble that waits for a socket: set it to \"\"", s.address)
	}
}

// end ends all nodes at once: nothing of what they did is worth an orderly leave any more.
func (c *Cluster) end() {
	var ending sync.WaitGroup
	for _, n := range c.nodes {
		// Owner: end, which waits. Ends with the node.
		ending.Go(func() {
			if err := n.stop(); err != nil {
				c.t.Errorf("clustertest: node %s does not end: %v", n.address, err)
			}
		})
	}
	ending.Wait()
	for _, n := range c.nodes {
		if v := n.Sharding().Stats().Violations; v != 0 {
			c.t.Errorf("clustertest: node %s has seen what must not be, such as two hosts of one shard, %d times", n.address, v)
		}
	}
}

// stop ends a node without a word to the others.
func (n *Node) stop() error {
	_ = n.Membership().Close() // It never fails.
	return n.Close()
}
