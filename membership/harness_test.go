// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a network of nodes in one bubble. A bubble that ends with a goroutine left
// fails the test, so every test here looks for leaks.
type place struct {
	t       *testing.T
	network *memory.Network
	uids    gossip.UID
	log     *lines
}

// lines keeps what was logged.
type lines = logtest.Buffer

// bubble runs f in virtual time.
func bubble(t *testing.T, f func(*testing.T, *place)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t, &place{t: t, network: memory.NewNetwork(), log: new(lines)})
	})
}

// at is the address of the i-th node.
func at(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i) }

// address is the parsed address of the i-th node.
func address(i int) gossip.Address {
	return gossip.Address{Host: fmt.Sprintf("10.0.0.%d", i), Port: 7946}
}

// config is the configuration of the i-th node, with nodes 1 and 2 as seed nodes.
func config(i int) membership.Config {
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "test", at(i)
	cfg.Membership.SeedNodes = []string{at(1)}
	return cfg
}

// options are the options of every node of the place.
func (p *place) options() []membership.Option {
	p.uids++
	return []membership.Option{
		membership.WithUID(p.uids), membership.WithRand(rand.New(rand.NewPCG(uint64(p.uids), 1))),
		membership.WithLogger(slog.New(slog.NewTextHandler(p.log, &slog.HandlerOptions{Level: slog.LevelInfo}))),
		membership.WithTransport(p.network.Transport),
	}
}

// start starts a node that ends with the test.
func (p *place) start(cfg membership.Config, opts ...membership.Option) *membership.Node {
	p.t.Helper()
	n, err := membership.Start(p.t.Context(), cfg, append(p.options(), opts...)...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = n.Close() })
	return n
}

// cluster starts n nodes and waits until all of them see all of them up, and the last change
// of the voters is complete: before that a cut that leaves the majority of the voters to one side
// may leave it none of those of before, and both sides end.
func (p *place) cluster(n int, opts ...membership.Option) []*membership.Node {
	p.t.Helper()
	var nodes []*membership.Node
	for i := range n {
		nodes = append(nodes, p.start(config(i+1), opts...))
	}
	p.awaitUp(nodes...)
	p.awaitVotes(nodes...)
	return nodes
}

// awaitVotes waits until every node sees that all of them vote. No event tells of that.
func (p *place) awaitVotes(nodes ...*membership.Node) {
	p.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(10 * time.Millisecond) {
		require.True(p.t, time.Now().Before(end), "not all vote\n%s", p.log)
		if !slices.ContainsFunc(nodes, func(n *membership.Node) bool {
			base := n.View().Base
			return len(base) != 1 || len(base[0]) != len(nodes)
		}) {
			return
		}
	}
}

// awaitUp waits until every node sees exactly these nodes, all up.
func (p *place) awaitUp(nodes ...*membership.Node) {
	p.t.Helper()
	for _, n := range nodes {
		p.await(n, "all are up", func(v membership.View) bool {
			up := 0
			for _, m := range v.State.Members() {
				if m.Status == gossip.Up {
					up++
				}
			}
			return up == len(nodes) && len(v.State.Members()) == up
		})
	}
}

// await waits until the view of a node satisfies ok, for at most two minutes of
// the bubble's time.
func (p *place) await(n *membership.Node, what string, ok func(membership.View) bool) {
	p.t.Helper()
	//quorate:realtime Two minutes of a bubble.
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	sub := n.Subscribe()
	defer sub.Close()
	for !ok(n.View()) {
		_, err := sub.Next(ctx)
		require.NoError(p.t, err, "%s: waiting until %s\n%s", n.Self(), what, p.log)
	}
}

// ended waits for the end of a node and returns its error.
func (p *place) ended(n *membership.Node) error {
	p.t.Helper()
	select {
	case <-n.Done():
		return n.Err()
	case <-time.After(2 * time.Minute):
		require.FailNow(p.t, "the node did not end", "%s\n%s", n.Self(), p.log)
		return nil
	}
}
