// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/singleton/daemon"
	network "github.com/quorate/quorate/transport/memory"
)

// Instances on a cluster of a few nodes in one process, in virtual time: first the cluster and what it
// notes of each run, then where the instances run and what follows a failure, then what a start refuses.

// instances is how many there are.
const instances = 12

// world is a cluster whose nodes run instances.
type world struct {
	t       *testing.T
	network *network.Network
	nodes   []*membership.Node
	systems []*sharding.System
	role    string // That of the nodes but the first, to which the instances are limited; empty: all run them.

	mu    sync.Mutex
	at    map[int]run            // The runs under way, by number.
	last  map[int]run            // The last run of each.
	wrong []string               // What was found that must not be.
	fails func(number int) error // What a run does at once; nil: it waits for its end.
}

// run is one run of an instance.
type run struct {
	node  int
	ctx   context.Context //nolint:containedctx // For the next run to look at.
	epoch sharding.Epoch
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, network: network.NewNetwork(), at: map[int]run{}, last: map[int]run{}}
		defer func() {
			for i := range w.nodes {
				w.close(i)
			}
		}()
		f(t, w)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Empty(t, w.wrong)
	})
}

// node starts a node.
func (w *world) node() *sharding.System {
	i := len(w.nodes)
	cfg, quiet := membership.Default(), slog.New(slog.DiscardHandler)
	cfg.Cluster.Name, cfg.Node.Address = "test", fmt.Sprintf("10.0.0.%d:7946", i+1)
	cfg.Membership.SeedNodes = []string{"10.0.0.1:7946"}
	if w.role != "" && i > 0 {
		cfg.Node.Roles = []string{w.role}
	}
	node, err := membership.Start(w.t.Context(), cfg, membership.WithLogger(quiet), membership.WithTransport(w.network.Transport))
	require.NoError(w.t, err)
	system, err := sharding.New(node, sharding.Default(), sharding.WithLogger(quiet))
	require.NoError(w.t, err)
	w.nodes, w.systems = append(w.nodes, node), append(w.systems, system)
	return system
}

// start starts a node with instances.
func (w *world) start(number int) {
	i, quiet := len(w.nodes), slog.New(slog.DiscardHandler)
	system := w.node()
	require.NoError(w.t, daemon.Start(system, daemon.Config{
		Name: "workers", Role: w.role, Instances: number, Log: quiet,
		Run: func(ctx context.Context, n int, epoch sharding.Epoch) error { return w.run(run{i, ctx, epoch}, n) },
	}))
}

// run is the work: it notes that it runs, where no other run of the instance may.
func (w *world) run(r run, n int) error {
	w.mu.Lock()
	if other, runs := w.at[n]; runs && other.ctx.Err() == nil {
		w.wrong = append(w.wrong, fmt.Sprintf("instance %d runs at %d and at %d", n, other.node, r.node))
	}
	if last, ran := w.last[n]; ran {
		if c := r.epoch.Compare(last.epoch); c < 0 || c == 0 && r.node != last.node {
			w.wrong = append(w.wrong, fmt.Sprintf("the epoch of instance %d is %v at %d, after %v at %d", n, r.epoch, r.node, last.epoch, last.node))
		}
	}
	w.at[n], w.last[n] = r, r
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.at[n] == r {
			delete(w.at, n)
		}
	}()
	if w.fails != nil {
		if err := w.fails(n); err != nil {
			return err
		}
	}
	<-r.ctx.Done()
	return context.Cause(r.ctx)
}

// close ends a node without a word.
func (w *world) close(i int) {
	require.NoError(w.t, w.nodes[i].Close())
	require.NoError(w.t, w.systems[i].AwaitEnd(patience.Context(w.t)))
}

func (w *world) pass(d time.Duration) {
	<-time.After(d) //quorate:realtime It is virtual.
	synctest.Wait()
}

// spread returns how many instances run on each node.
func (w *world) spread() map[int]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	spread := map[int]int{}
	for _, r := range w.at {
		spread[r.node]++
	}
	return spread
}

// All instances run, once each, and evenly; also after a node has joined, left, and gone.
// covers I3.
func TestInstancesAreSpread(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(instances)
		w.start(instances)
		w.pass(20 * time.Second)
		require.Equal(t, map[int]int{0: 6, 1: 6}, w.spread())
		w.start(instances)
		w.start(instances)
		w.pass(time.Minute)
		require.Equal(t, map[int]int{0: 3, 1: 3, 2: 3, 3: 3}, w.spread())
		require.NoError(t, w.nodes[1].Leave(t.Context()))
		w.pass(5 * time.Second)
		require.Equal(t, map[int]int{0: 4, 2: 4, 3: 4}, w.spread())
		w.close(0)
		w.pass(20 * time.Second)
		require.Equal(t, map[int]int{2: 6, 3: 6}, w.spread())
	})
}

// With a role all instances run on nodes that have it.
func TestInstancesRunOnNodesWithTheRole(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.role = "worker"
		for range 3 {
			w.start(instances)
		}
		w.pass(time.Minute)
		require.Equal(t, map[int]int{1: 6, 2: 6}, w.spread())
	})
}

// An instance that fails is run again, and the others go on.
func TestAnInstanceThatFailsIsRunAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		left := 3
		w.fails = func(n int) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if n != 5 || left == 0 {
				return nil
			}
			left--
			return errors.New("not yet")
		}
		w.start(instances)
		w.pass(11 * time.Second) // A node whose list is itself alone waits for 6 s before it founds a cluster.
		require.Equal(t, map[int]int{0: 11}, w.spread())
		w.pass(10 * time.Second)
		require.Equal(t, map[int]int{0: 12}, w.spread())
	})
}

// A node with another number of instances is refused, and the others go on.
func TestANodeWithAnotherNumberIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(instances)
		w.pass(10 * time.Second)
		w.start(instances + 1)
		w.pass(20 * time.Second)
		require.Equal(t, map[int]int{0: 12}, w.spread())
		refused := w.systems[1].Refused()
		require.Len(t, refused, 1)
		require.Equal(t, "number-of-shards", refused[0].Setting)
	})
}

func TestWhatAStartRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) { requireRefused(t, w.node()) })
}

// requireRefused requires that a host refuses what is wrong.
func requireRefused(t *testing.T, host sharding.Host) {
	t.Helper()
	work := func(context.Context, int, sharding.Epoch) error { return nil }
	for want, c := range map[string]daemon.Config{
		`"w" has no Run`:                      {Name: "w", Instances: 1},
		`"w" has 0 instances, want 1 to 1000`: {Name: "w", Run: work},
		`"w" has 1001 instances`:              {Name: "w", Instances: 1001, Run: work},
		`up to 1001 instances`:                {Name: "w", Instances: 4, Max: 1001, Run: work},
		`up to 3 instances, want 4 to 1000`:   {Name: "w", Instances: 4, Max: 3, Run: work},
		`"w" has Run and Work`: {
			Name: "w", Instances: 4, Run: work, Work: func(context.Context, daemon.Instance) error { return nil },
		},
	} {
		err := daemon.Start(host, c)
		require.ErrorIs(t, err, daemon.ErrConfig)
		require.ErrorContains(t, err, want)
	}
}
