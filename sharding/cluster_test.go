// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/transport/memory"
)

// The cluster of most tests of this package: a few nodes in one process, with a network in
// memory and in virtual time. First a world and the bubble that it lives in, then how nodes
// are started, cut off and ended, and last what a test does on a node: ask, tell, and find
// entities that live where it wants them. The entities themselves are in actor_test.go.

// text is the type of the messages to the entities of these tests, and of their replies.
type text = *wrapperspb.StringValue

func say(s string) text { return wrapperspb.String(s) }

// limit bounds every wait of a test, in virtual time. A cluster always has timers, so that
// a bubble never notices by itself that a test waits for an event that does not come.
const limit = 2 * time.Minute

// world is a cluster in one process, in virtual time.
type world struct {
	t       *testing.T
	network *memory.Network
	nodes   []*node
	journal journal
	hold    chan struct{} // Actors at the command "wait" go on when hold is closed.
	others  []io.Closer   // Transports on the network that belong to no node; end closes them.

	// A test may set these before the first node starts.
	config  func(*membership.Config, *sharding.Config)
	kind    func(n *node, k *sharding.Kind[text])
	options []sharding.Option
}

// node is one node of a world, and its region of the kind "test".
type node struct {
	*membership.Node

	w      *world
	i      int
	system *sharding.System
	region *sharding.Region[text]
}

// inBubble runs a test in virtual time, which does not pass in real time. The bubble fails
// the test when a goroutine is left.
func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: memory.NewNetwork(), hold: make(chan struct{})}
		defer w.end()
		f(t, w)
	})
}

// end closes all nodes, waits until their entities have returned, and expects that no node
// saw a shard with two hosts.
func (w *world) end() {
	w.release()
	for _, o := range w.others {
		_ = o.Close() // The test is over; an error would change nothing.
	}
	for _, n := range w.nodes {
		_ = n.Close() // Closing a node never fails.
	}
	for _, n := range w.nodes {
		require.NoError(w.t, n.awaitEnd(limit))
		require.Zero(w.t, n.system.Stats().Violations)
	}
}

// release lets the actors go on that were told to wait.
func (w *world) release() {
	select {
	case <-w.hold:
	default:
		close(w.hold)
	}
}

// pass lets virtual time pass, and returns when nothing is left to be done until a later
// time.
func pass(d time.Duration) {
	nap(d)
	synctest.Wait()
}

// nap lets virtual time pass for the goroutine that calls it.
func nap(d time.Duration) {
	//quorate:realtime All that calls it runs in a bubble.
	<-time.After(d)
}

// within returns the next value of c.
func within[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	return patience.Receive(t, c, "what the test waits for")
}

// eventually waits until ok holds when nothing is left to be done until a later time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	patience.Eventually(t, func() bool {
		synctest.Wait()
		return ok()
	}, "%s", what)
}

func address(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i+1) }

// build starts a node without a kind.
func (w *world) build() *node {
	i := len(w.nodes)
	cfg, shards := membership.Default(), sharding.Default()
	cfg.Cluster.Name, cfg.Node.Address = "test", address(i)
	cfg.Membership.SeedNodes = []string{address(0)}
	shards.NumberOfShards = 12
	if w.config != nil {
		w.config(&cfg, &shards)
	}
	quiet := slog.New(slog.DiscardHandler)
	m, err := membership.Start(w.t.Context(), cfg, membership.WithLogger(quiet), membership.WithUID(gossip.UID(i+1)),
		membership.WithRand(rand.New(rand.NewPCG(1, uint64(i)))),
		membership.WithTransport(w.network.Transport))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = m.Close() })
	s, err := sharding.New(m, shards, append([]sharding.Option{sharding.WithLogger(quiet)}, w.options...)...)
	require.NoError(w.t, err)
	n := &node{Node: m, w: w, i: i, system: s}
	w.nodes = append(w.nodes, n)
	return n
}

// form starts n nodes without a kind, and waits until they may host and the last change of the
// voters is complete: before that a crash may take the majority of the voters of before.
func (w *world) form(n int) {
	for range n {
		w.build()
	}
	for _, n := range w.nodes {
		require.NoError(w.t, n.AwaitUp(patience.Context(w.t)))
	}
	eventually(w.t, "all have standing, and vote", func() bool {
		return !slices.ContainsFunc(w.nodes, func(o *node) bool {
			base := o.View().Base
			return !o.Standing().Held() || len(base) != 1 || len(base[0]) != len(w.nodes)
		})
	})
}

// start starts n nodes with the kind, and waits until each of them has reached an entity.
// All nodes have standing before the first of them starts the kind, so that the first
// allocation gives shards to all of them.
func (w *world) start(n int) {
	w.form(n)
	for _, n := range w.nodes {
		n.startKind()
	}
	for _, n := range w.nodes {
		n.must("first", "where")
	}
}

// startKind starts the kind "test" on a node.
func (n *node) startKind() {
	k := sharding.Kind[text]{Name: "test", New: func(*sharding.Context) sharding.Entity[text] { return &actor{n: n} }}
	if n.w.kind != nil {
		n.w.kind(n, &k)
	}
	region, err := sharding.Start(n.system, k)
	require.NoError(n.w.t, err)
	n.region = region
}

func (n *node) awaitEnd(d time.Duration) error { return n.system.AwaitEnd(patience.Expiring(n.w.t, d)) }

// cut cuts a node off from all others.
func (w *world) cut(n *node) {
	for _, o := range w.nodes {
		if o != n {
			w.network.Cut(n.Self().Address, o.Self().Address)
		}
	}
}

// freezer is a component that has the driver of its node stand still.
type freezer struct{}

// Step implements [machine.Machine].
func (freezer) Step(_ machine.Now, in machine.Input, out *machine.Outbox) {
	if _, ok := in.(freezer); ok {
		out.Add(in)
	}
}

// freeze has the driver of a node stand still, which hears of nothing any more, not even that time passes. The
// other goroutines of the node run on: as after a freeze of the process, when they have their turn first.
func (n *node) freeze() (thaw func()) {
	frozen := make(chan struct{})
	h, err := n.Attach(membership.Attachment{
		Component: machine.Component{Name: "freezer", Machine: freezer{}},
		Other:     func(machine.Effect) { <-frozen },
	})
	require.NoError(n.w.t, err)
	require.NoError(n.w.t, h.Post(freezer{}))
	return sync.OnceFunc(func() { close(frozen) })
}

// crash ends a node that cannot tell the others.
func (w *world) crash(n *node) {
	w.cut(n)
	require.NoError(w.t, n.Close())
}

// breakAll resets all connections.
func (w *world) breakAll() {
	for _, a := range w.nodes {
		for _, b := range w.nodes[a.i+1:] {
			w.network.Break(a.Self().Address, b.Self().Address)
		}
	}
}

// ask sends a command to an entity and waits for its reply, for at most d.
func (n *node) ask(id, command string, d time.Duration) (string, error) {
	reply, err := sharding.Ask[text](patience.Expiring(n.w.t, d), n.region, id, say(command))
	return reply.GetValue(), err
}

// asked asks on a goroutine of its own, and returns the channel that will get the error of
// the ask. The message is under way when asked returns.
func (n *node) asked(id, command string) <-chan error {
	result := make(chan error, 1)
	go func() {
		_, err := n.ask(id, command, limit)
		result <- err
	}()
	synctest.Wait()
	return result
}

// must asks, expects a reply, and returns it.
func (n *node) must(id, command string) string {
	n.w.t.Helper()
	reply, err := n.ask(id, command, limit)
	require.NoError(n.w.t, err, "%s to %s", command, id)
	return reply
}

// insist asks until it has a reply: again after an unknown outcome, and after a message
// that was not delivered, as a caller does whose message may be handled twice.
func (n *node) insist(id, command string) string {
	n.w.t.Helper()
	for {
		reply, err := n.ask(id, command, limit)
		if err == nil {
			return reply
		}
		require.True(n.w.t, errors.Is(err, sharding.ErrUnknownOutcome) || errors.Is(err, sharding.ErrNotDelivered), "%v", err)
	}
}

// tell sends a command to an entity, and expects that it is accepted.
func (n *node) tell(id, command string) {
	n.w.t.Helper()
	require.NoError(n.w.t, n.region.Tell(patience.Context(n.w.t), id, say(command)))
}

// hosted returns the ids of count entities that live on host, each of another shard. It
// finds their shards by asking other entities; a shard always has the same id.
func (n *node) hosted(host *node, count int) []string {
	n.w.t.Helper()
	var ids []string
	seen := map[protocol.ShardID]bool{}
	for i := 0; len(ids) < count; i++ {
		require.Less(n.w.t, i, 1000, "too few shards live on the node")
		probe := fmt.Sprintf("p-%d", i)
		if !seen[shardOf(probe)] && n.must(probe, "where") == host.Self().String() {
			ids = append(ids, sibling(probe))
		}
		seen[shardOf(probe)] = true
	}
	return ids
}

// on returns the first id that hosted finds: the same in every call, unless the shard
// moves.
func (n *node) on(host *node) string {
	n.w.t.Helper()
	return n.hosted(host, 1)[0]
}

// sibling returns the first of the ids id-0, id-1, ... whose entity has the same shard.
func sibling(id string) string {
	for i := 0; ; i++ {
		if s := fmt.Sprintf("id-%d", i); shardOf(s) == shardOf(id) {
			return s
		}
	}
}
