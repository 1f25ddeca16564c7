// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package processes_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/patience"
)

// recovery is the time within which, with default settings, all entities of a node that died
// answer again.
const recovery = 10 * time.Second

// TestFiveProcessesThroughDeathGrowthAndLeave is the life of a cluster: five
// processes form it from one file, one is killed, one is added, one leaves. All
// accounts answer at the end of each part and hold what they should.
//
// covers F1, F34, I1, I9, I10.
func TestFiveProcessesThroughDeathGrowthAndLeave(t *testing.T) {
	c := newCity(t)
	nodes := c.settle(5)
	ids := accounts(60)
	want := c.spend(ids, nodes)

	// The first node forms the cluster and is the oldest: the coordinator.
	victim, nodes := nodes[0], nodes[1:]
	orphans := c.ownedBy(victim, ids)
	require.NotEmpty(t, orphans, "the victim hosts nothing")
	watch := patience.Start(t)
	victim.signal(syscall.SIGKILL)
	c.checkBooks(want, ids, nodes)
	took := watch.Elapsed()
	t.Logf("all accounts answered %v after the kill", took.Round(time.Millisecond))
	require.Less(t, took, recovery)
	c.awaitMembers(nodes...)
	for _, id := range orphans {
		require.NotEqual(t, victim.Node, c.owner(id))
	}

	nodes = append(nodes, c.start())
	c.awaitMembers(nodes...)
	c.checkBooks(want, ids, nodes)

	leaver := nodes[0]
	own := c.ownedBy(leaver, ids)
	require.NotEmpty(t, own, "the leaver hosts nothing")
	nodes = nodes[1:]
	watch = patience.Start(t)
	leaver.signal(syscall.SIGTERM)
	require.Zero(t, leaver.status(), "%s", leaver.log)
	c.checkBooks(want, ids, nodes)
	// It takes longer than that to find a dead node: the accounts were handed over.
	require.Less(t, watch.Elapsed(), 5*time.Second)
	c.awaitMembers(nodes...)
	for _, id := range own {
		require.NotEqual(t, leaver.Node, c.owner(id))
	}
	for _, n := range nodes {
		require.NotContains(t, n.log.String(), "panic")
	}
}

// spend makes one transfer from each account to the next and returns the
// balances that follow.
func (c *city) spend(ids []string, nodes []*node) map[string]int64 {
	c.t.Helper()
	want := map[string]int64{}
	for i, id := range ids {
		to := ids[(i+1)%len(ids)]
		cents := int64(10 * (i + 1))
		c.move(nodes[i%len(nodes)], bank.Transfer{ID: fmt.Sprintf("t-%d", i), From: id, To: to, Cents: cents})
		want[id] -= cents
		want[to] += cents
	}
	for id := range want {
		want[id] += bank.OpeningCents
	}
	return want
}

// checkBooks reads every account, and compares its balance with the one that it should have.
func (c *city) checkBooks(want map[string]int64, ids []string, nodes []*node) {
	c.t.Helper()
	got := map[string]int64{}
	for id, b := range c.readAll(ids, nodes...) {
		got[id] = b.Cents
	}
	require.Equal(c.t, want, got)
}

// TestANodeEndsWithItsParent closes the standard input of a node, as the system
// does when the parent dies.
func TestANodeEndsWithItsParent(t *testing.T) {
	c := newCity(t)
	n := c.start()
	require.NoError(t, n.Orphan())
	require.Equal(t, 1, n.status())
	require.Contains(t, n.log.String(), "the parent has ended")
}

// TestANodeComesBackAtItsAddress kills a node and starts it anew at once, while its former
// incarnation is still a member. The new incarnation becomes a member, and the former one is
// removed.
//
// covers F33, I7.
func TestANodeComesBackAtItsAddress(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	c := newCity(t)
	nodes := c.settle(3)
	ids := accounts(30)
	want := c.spend(ids, nodes)
	old := nodes[2]
	old.signal(syscall.SIGKILL)
	require.Equal(t, -1, old.status())
	c.started-- // The next process gets the same address.
	fresh := c.start()
	require.Equal(t, old.address, fresh.address)
	require.NotEqual(t, old.Node, fresh.Node)
	nodes[2] = fresh
	c.awaitMembers(nodes...)
	c.checkBooks(want, ids, nodes)
}
