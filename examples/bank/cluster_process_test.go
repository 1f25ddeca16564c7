// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package bank_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/examples/bank/journal"
)

// recovery is what the toolkit promises with default settings: so long after a
// node died at most, all of its entities answer again.
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
	at := time.Now()
	victim.signal(syscall.SIGKILL)
	c.checkBooks(want, ids, nodes)
	took := time.Since(at)
	t.Logf("all accounts answered %v after the kill", took.Round(time.Millisecond))
	require.Less(t, took, recovery)
	c.awaitMembers(nodes...)
	for _, id := range orphans {
		require.NotEqual(t, victim.id, c.owner(id))
	}

	nodes = append(nodes, c.start())
	c.awaitMembers(nodes...)
	c.checkBooks(want, ids, nodes)

	leaver := nodes[0]
	own := c.ownedBy(leaver, ids)
	require.NotEmpty(t, own, "the leaver hosts nothing")
	nodes = nodes[1:]
	at = time.Now()
	leaver.signal(syscall.SIGTERM)
	require.Zero(t, leaver.status(), "%s", leaver.log)
	c.checkBooks(want, ids, nodes)
	// Far less than it takes to find out that somebody is dead: handed over.
	require.Less(t, time.Since(at), 5*time.Second)
	c.awaitMembers(nodes...)
	for _, id := range own {
		require.NotEqual(t, leaver.id, c.owner(id))
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

// checkBooks reads every account and compares it.
func (c *city) checkBooks(want map[string]int64, ids []string, nodes []*node) {
	c.t.Helper()
	got := map[string]int64{}
	for id, b := range c.readAll(ids, nodes...) {
		got[id] = b.Cents
	}
	require.Equal(c.t, want, got)
}

// TestAFrozenNodeNeverAcknowledges stops a node for longer than the others wait
// for it. They go on without it and take its accounts over. Transfers that were
// sent to it meanwhile must not be answered when it wakes: somebody else may
// have changed the account. It finds that out by its own clock, before it hears
// a word of the others, and exits with 3.
//
// covers F24, F25, I7, I14.
func TestAFrozenNodeNeverAcknowledges(t *testing.T) {
	c := newCity(t)
	nodes := c.settle(5)
	ids := accounts(60)
	want := c.spend(ids, nodes)
	frozen, rest := nodes[4], nodes[:4]
	own := c.ownedBy(frozen, ids)
	require.GreaterOrEqual(t, len(own), 3, "the node hosts too little")

	frozen.freeze()
	late := c.sendLate(frozen, own)
	c.awaitMembers(rest...)
	for _, id := range own { // Each account gets a new owner, who writes.
		c.move(rest[0], bank.Transfer{ID: "new-" + id, From: id, To: "elsewhere", Cents: 1})
		want[id]--
		require.NotEqual(t, frozen.id, c.owner(id))
	}
	frozen.signal(syscall.SIGCONT)
	require.Equal(t, 3, frozen.status(), "%s", frozen.log)
	for i, answer := range late() {
		require.Error(t, answer, "the frozen node acknowledged late-%s", own[i])
	}
	c.checkBooks(want, ids, rest)
	c.awaitMembers(rest...)
	for _, id := range own {
		c.checkNotBooked(id, "late-"+id)
	}
}

// sendLate sends a transfer from each of the accounts over a node that does not
// run. The function that it returns waits for the answers.
func (c *city) sendLate(over *node, ids []string) func() []error {
	answers := make([]error, len(ids))
	var sending sync.WaitGroup
	for i, id := range ids {
		sending.Go(func() {
			answers[i] = over.transfer(context.WithoutCancel(c.t.Context()), bank.Transfer{ID: "late-" + id, From: id, To: "nobody", Cents: 7})
		})
	}
	return func() []error {
		sending.Wait()
		return answers
	}
}

// checkNotBooked reads a journal: the transfer must not count.
func (c *city) checkNotBooked(id, transfer string) {
	c.t.Helper()
	chain, err := journal.ReadChain(filepath.Join(c.journal, id))
	require.NoError(c.t, err)
	for _, s := range chain {
		for _, r := range s.Records {
			require.NotEqual(c.t, transfer, r.Transfer, "epoch %s", s.Epoch)
		}
	}
}

// TestANodeComesBackAtItsAddress kills a node and starts it anew at once, where
// the others still hold its predecessor for a member. The new incarnation
// becomes one, the old one is removed.
//
// covers F33, I7.
func TestANodeComesBackAtItsAddress(t *testing.T) {
	c := newCity(t)
	nodes := c.settle(3)
	ids := accounts(30)
	want := c.spend(ids, nodes)
	old := nodes[2]
	old.signal(syscall.SIGKILL)
	require.Equal(t, -1, old.status())
	c.started-- // The same address again.
	fresh := c.start()
	require.Equal(t, old.address, fresh.address)
	require.NotEqual(t, old.id, fresh.id)
	nodes[2] = fresh
	c.awaitMembers(nodes...)
	c.checkBooks(want, ids, nodes)
}
