// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/transport/memory"
)

// Nodes in one process and in virtual time, on a network in memory. Their seen keys are in
// memory too: what the disk is for is in the test with processes.

// limit is how long anything may take, in virtual time.
const limit = 2 * time.Minute

// world has the nodes of a test.
type world struct {
	t       *testing.T
	network *memory.Network
	nodes   []*presence
}

// inWorld runs a test on three nodes that are up. At the end no goroutine may be left.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: memory.NewNetwork()}
		for i := range 3 {
			w.nodes = append(w.nodes, w.start(i))
		}
		defer func() {
			for _, p := range w.nodes {
				w.end(p)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		for _, p := range w.nodes {
			require.NoError(t, p.host.Data().AwaitReady(ctx))
			w.voting(ctx, p)
		}
		f(t, w)
	})
}

func address(i int) string { return fmt.Sprintf("10.0.0.%d:7946", i+1) }

// start starts the i-th node.
func (w *world) start(i int) *presence {
	w.t.Helper()
	quiet := slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	cfg := membership.Default()
	cfg.Cluster.Name, cfg.Node.Address = "presence", address(i)
	cfg.Membership.SeedNodes = []string{address(0)}
	node, err := membership.Start(w.t.Context(), cfg, membership.WithLogger(quiet), membership.WithUID(gossip.UID(i+1)),
		membership.WithRand(rand.New(rand.NewPCG(1, uint64(i)))),
		membership.WithTransport(w.network.Transport))
	require.NoError(w.t, err)
	data, err := ddata.New(node, ddata.Default(), ddata.WithLogger(quiet), ddata.WithTypes(crdt.TypeOf[crdt.LWWRegister[seen]]()))
	require.NoError(w.t, err)
	return open(data, quiet)
}

// voting waits until a node sees that all vote: while the voters change, a crash may take the
// majority of those of before.
func (w *world) voting(ctx context.Context, p *presence) {
	w.t.Helper()
	for ctx.Err() == nil {
		if base := p.node.View().Base; len(base) == 1 && len(base[0]) == len(w.nodes) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	require.NoError(w.t, ctx.Err())
}

// end ends a node and its presence.
func (w *world) end(p *presence) {
	w.t.Helper()
	require.NoError(w.t, p.node.Close())
	p.close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	require.NoError(w.t, p.host.Data().AwaitEnd(ctx))
}

// crash ends a node without a word to the others.
func (w *world) crash(p *presence) {
	w.t.Helper()
	for _, other := range w.nodes {
		if other != p {
			w.network.Cut(p.node.Self().Address, other.node.Self().Address)
		}
	}
	w.end(p)
}

// await waits until the boards of nodes hold what they should.
func (w *world) await(what string, nodes []*presence, holds func(pageContent) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	for _, p := range nodes {
		for {
			b, news := p.look()
			if holds(b) {
				break
			}
			select {
			case <-news:
			case <-ctx.Done():
				require.Fail(w.t, "never: "+what, "%s shows %+v", b.Node, b)
			}
		}
	}
}

// onlineAt returns at how many nodes a name is online, and at how many lost ones.
func onlineAt(b pageContent, name string) (online, lost int) {
	for _, p := range b.People {
		if p.Name == name {
			return len(p.Online), len(p.Lost)
		}
	}
	return 0, 0
}

// places returns how many places the online key has on a node.
func (w *world) places(p *presence) int {
	w.t.Helper()
	m, err := ddata.Get(w.t.Context(), p.host, onlineKey(), ddata.Local())
	require.NoError(w.t, err)
	return m.Len()
}

// A name is online until its last connection ends, on whatever node, and seen afterwards.
func TestANameIsOnlineUntilItsLastConnectionEnds(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		first, second, third := w.nodes[0].join("alice"), w.nodes[0].join("alice"), w.nodes[2].join("alice")
		w.await("alice is at two nodes", w.nodes, func(b pageContent) bool { n, _ := onlineAt(b, "alice"); return n == 2 })
		first()
		third()
		w.await("alice is at one node", w.nodes, func(b pageContent) bool { n, _ := onlineAt(b, "alice"); return n == 1 })
		second()
		w.await("alice has left", w.nodes, func(b pageContent) bool {
			n, _ := onlineAt(b, "alice")
			return n == 0 && len(b.People) == 1 && !b.People[0].Seen.IsZero()
		})
	})
}

// Entries of a node that dies are shown as lost first, vanish with the member, and are taken
// out of the data by the leader, also if it was the leader that died.
func TestEntriesOfADeadNodeVanish(t *testing.T) {
	for _, i := range []int{0, 2} {
		t.Run(address(i), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				victim, names := w.nodes[i], []string{"alice", "bob", "carol"}
				for j, p := range w.nodes {
					p.join(names[j])
				}
				w.await("all are online", w.nodes, func(b pageContent) bool {
					for _, name := range names {
						if n, _ := onlineAt(b, name); n != 1 {
							return false
						}
					}
					return true
				})
				w.crash(victim)
				w.nodes = append(w.nodes[:i:i], w.nodes[i+1:]...)
				w.await("the node is lost", w.nodes, func(b pageContent) bool { n, lost := onlineAt(b, names[i]); return n == 0 && lost == 1 })
				w.await("the node is removed", w.nodes, func(b pageContent) bool {
					n, lost := onlineAt(b, names[i])
					return n+lost == 0 && len(b.Members) == 2
				})
				<-time.After(limit)
				for _, p := range w.nodes {
					require.Equal(t, 2, w.places(p), "nothing is left of the node in the data")
				}
			})
		})
	}
}

// What is left in the data of a node that is no member is not shown before it is taken out.
func TestEntriesOfNodesThatAreNoMembersAreNotShown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		view := w.nodes[0].node.View()
		online := crdt.ORMultiMap[string, string]{}.Add(1, "alice", view.Self.String()).
			Add(1, "alice", view.Self.Address.String()+"#99").Add(1, "bob", "10.0.0.9:7946#9")
		require.Equal(t, []person{{Name: "alice", Online: []string{address(0)}}}, people(view, online, nil))
	})
}

// An entry that another node has taken away, as one does that believed this node gone, is
// back at once.
func TestANodeSaysAgainWhatOthersTookAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.nodes[0].join("alice")
		w.await("alice is online", w.nodes, func(b pageContent) bool { n, _ := onlineAt(b, "alice"); return n == 1 })
		self := w.nodes[0].node.Self().String()
		require.NoError(t, writeOnline(t.Context(), w.nodes[1].host, nil, []place{{"alice", self}}))
		require.Zero(t, w.places(w.nodes[1]))
		<-time.After(limit)
		for _, p := range w.nodes {
			require.Equal(t, 1, w.places(p))
		}
	})
}
