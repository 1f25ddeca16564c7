// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/membership/shutdown"
	"github.com/quorate/quorate/sharding"
)

// stuck is what may keep a node from ending: an entity that does not return, a task, a store that does not close. All
// are let go when the test is over.
type stuck struct {
	let                 chan struct{}
	entity, task, store bool
}

// Receive returns at once, unless the entity is stuck.
func (s stuck) Receive(c *sharding.Context, n number) error {
	if s.entity {
		<-s.let
	}
	return c.Reply(n)
}

// pool is a store of leases that closes late.
type pool struct {
	*memory.Store
	stuck
}

// Close returns when it is let go.
func (p pool) Close() error {
	if p.store {
		<-p.let
	}
	return nil
}

// fate is how a node ended.
type fate struct {
	err    error
	took   time.Duration
	closed bool          // The task of the last phase ran.
	after  bool          // It ran when the node was done.
	again  time.Duration // How long Close took after that.
}

// A node that is told to end does so within its deadline, goes through all phases, and says with its status how that
// went, whatever happens to it and to the others before, meanwhile and after that.
func TestANodeEndsWhateverHappens(t *testing.T) {
	const deadline = 25 * time.Second
	statuses := map[int]int{}
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 17))
				s := stuck{let: make(chan struct{}), entity: rng.IntN(5) == 0, task: rng.IntN(5) == 0, store: rng.IntN(5) == 0}
				f := endsAmid(t, rng, s)
				status := cluster.ExitStatus(f.err)
				statuses[status]++
				require.LessOrEqual(t, f.took, deadline+time.Second, "%v", f.err)
				require.LessOrEqual(t, f.again, 3*time.Second, "nothing is left to wait for")
				require.True(t, f.closed, "the last phase has its turn")
				require.Contains(t, []int{cluster.ExitLeft, cluster.ExitFailed, cluster.ExitDown, cluster.ExitLate}, status, "%v", f.err)
				if status == cluster.ExitLeft {
					require.True(t, f.after, "a node that has left is done")
				}
			})
		})
	}
	require.Greater(t, statuses[cluster.ExitLeft], 4, "%v", statuses)
	for _, status := range []int{cluster.ExitDown, cluster.ExitLate} {
		require.NotZero(t, statuses[status], "%v", statuses)
	}
}

// endsAmid starts a cluster, has one node end, and something happen before, meanwhile or after that.
func endsAmid(t *testing.T, rng *rand.Rand, s stuck) fate {
	leases := cluster.WithLeases("pool", struct{}{}, func(struct{}) (lease.Store, error) { return pool{memory.New(), s}, nil })
	c := clustertest.Start(t, 1+rng.IntN(5), clustertest.WithOptions(leases), clustertest.WithConfig("sharding: {leases: {store: pool}}"))
	defer close(s.let) // Before the cluster ends.
	regions := clustertest.StartKind(c, sharding.Kind[number]{
		Name: "stuck", Shards: 8, New: func(*sharding.Context) sharding.Entity[number] { return s },
	})
	for i := range 8 {
		_ = regions.Any().Tell(t.Context(), fmt.Sprint("entity-", i), wrapperspb.Int64(1)) // None is lost in a cluster that has just converged.
	}
	c.Advance(time.Second)
	node := c.Nodes()[rng.IntN(len(c.Nodes()))]
	f := fate{}
	_, err := node.OnShutdown(shutdown.Close, "last", func(context.Context) error {
		f.closed = true
		select {
		case <-node.Done():
			f.after = true
		default:
		}
		return nil
	})
	require.NoError(t, err)
	_, err = node.OnShutdown(shutdown.Serve, "server", func(context.Context) error {
		if s.task {
			<-s.let
		}
		return nil
	})
	require.NoError(t, err)

	ctx, signal := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	// Owner: this test, which waits.
	go func() { done <- node.Run(ctx) }()
	at := time.Duration(rng.Int64N(int64(20 * time.Second)))
	disturb := time.AfterFunc(time.Duration(rng.Int64N(int64(30*time.Second))), func() { disturbed(rng, c, node) })
	defer disturb.Stop()
	<-time.After(at)
	began := time.Now()
	signal(errors.New("a signal"))
	f.err = <-done
	f.took = time.Since(began)
	began = time.Now()
	_ = node.Close() // What could not be closed before is not closed now.
	f.again = time.Since(began)
	return f
}

// disturbed has one thing happen to a node and to the others.
func disturbed(rng *rand.Rand, c *clustertest.Cluster, node *clustertest.Node) {
	others := c.Except(node)
	kind := rng.IntN(7)
	if len(others) == 0 || !node.Running() {
		kind = 5 * (kind & 1) // There is nothing to cut.
	}
	switch kind {
	case 0: // Nothing.
	case 1:
		c.Isolate(node)
	case 2:
		c.CutOneWay([]*clustertest.Node{node}, others)
	case 3:
		c.CutOneWay(others, []*clustertest.Node{node})
	case 4:
		if len(others) > 1 {
			c.Cut(others[:1], others[1:])
		}
	case 5:
		_ = node.Membership().Down(context.Background(), node.Address()) // It may have left.
	case 6:
		for _, other := range others[:len(others)/2+len(others)%2] {
			_ = other.Membership().Close() // It returns nil.
		}
	}
}
