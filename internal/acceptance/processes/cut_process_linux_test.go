// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process

package processes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank/journal"
	"github.com/quorate/quorate/internal/acceptance/auditor"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

// One cluster through cuts of the network and nodes that stand still, with a supervisor for
// each node. After the cases come what they check: that a side is in no cluster, that in
// the end there is one, and what the journals say of their owners. The last test is of that
// audit.

// TestOneClusterThoughSeedsAreRestarted has supervisors start the first seed node again
// while no other node answers it: inside a cut that made it end, and while the others stand
// still. It forms no cluster but waits, and joins the others afterwards: there is one
// cluster all the time. Clients ask all nodes, on both sides.
//
// covers F3, F9, F24, F25, F33, I1, I2, I5, I7, I20, I22.
func TestOneClusterThoughSeedsAreRestarted(t *testing.T) {
	t.Parallel() // Tests of clusters mostly wait.
	tests := map[string]func(*testing.T){
		"the first of three is cut off": func(t *testing.T) {
			t.Helper()
			cutOff(t, newRelays(t, 3), 3, 0)
		},
		"the first and the fourth of five are cut off": func(t *testing.T) {
			t.Helper()
			cutOff(t, newNetwork(t, 5), 5, 0, 3)
		},
		"the first of three is killed while the others are frozen": killAmongFrozen,
	}
	var cases sync.WaitGroup // The cases run at the same time, since they mostly wait.
	for name, test := range tests {
		cases.Go(func() { t.Run(name, test) }) // Owned by the test, which waits for it below.
	}
	cases.Wait()
}

// cutOff cuts a side off that has no majority, for so long that its nodes end and are
// started again inside the cut, with their data.
func cutOff(t *testing.T, net network, n int, side ...int) {
	t.Helper()
	const cut = 20 * time.Second
	c, load := newTown(t, net, n)
	net.cut(side...)
	<-time.After(cut) //quorate:realtime So long the network is cut.
	for i, p := range c.posts {
		inside := slices.Contains(side, i)
		require.Equal(t, inside, p.restarts(3) > 0, "%s was started again", net.address(i))
		if inside {
			p.requireAlone()
		}
	}
	net.heal()
	c.checkOneCluster(load)
}

// killAmongFrozen kills the first seed node while the other two stand still. When it is
// started again it gets no answer, and must not form a cluster beside that of the two.
func killAmongFrozen(t *testing.T) {
	t.Helper()
	const pause = 7 * time.Second
	c, load := newTown(t, newNetwork(t, 3), 3)
	nodes, err := c.nodes()
	require.NoError(t, err)
	for _, n := range nodes[1:] {
		n.freeze()
	}
	nodes[0].signal(syscall.SIGKILL)
	<-time.After(pause) //quorate:realtime So long they stand still.
	require.Equal(t, 1, c.posts[0].restarts(-1))
	c.posts[0].requireAlone()
	for _, n := range nodes[1:] {
		n.signal(syscall.SIGCONT)
	}
	c.checkOneCluster(load)
	require.Len(t, c.all(), 4, "somebody has ended")
}

// requireAlone checks that a node is in no cluster.
func (p *post) requireAlone() {
	t := p.town.t
	t.Helper()
	n, err := p.now()
	require.NoError(t, err)
	var v view
	require.NoError(t, n.get(t.Context(), "/members", &v))
	require.Empty(t, v.Members, "%s", n.log)
}

// checkOneCluster waits until all nodes are up in one cluster and clients are served,
// and looks at what came of the fault.
func (c *town) checkOneCluster(load *clerks) {
	c.t.Helper()
	began := time.Now()
	nodes, err := c.one()
	if err != nil {
		faults, _ := auditOwners(c.t, c.journal)
		require.NoError(c.t, err, "%s", strings.Join(faults, "\n"))
	}
	c.t.Logf("all nodes were up in one cluster %v after the fault had ended", time.Since(began).Round(time.Millisecond))
	load.awaitMore()
	c.checkBooks(load.close(), load.ids, nodes)
	c.awaitMembers(nodes...) // No node has ended again.

	formed := 0
	for _, n := range c.all() {
		log := n.log.String()
		require.NotContains(c.t, log, "panic:")
		for line := range strings.Lines(log) {
			if strings.Contains(line, "formed cluster") {
				formed++
			}
		}
	}
	require.Equal(c.t, 1, formed, "clusters were formed")
	faults, owners := auditOwners(c.t, c.journal)
	require.Empty(c.t, faults)
	require.Greater(c.t, owners, len(load.ids), "no account has moved")
	c.t.Logf("%d transfers, %d owners of %d accounts", len(load.kept), owners, len(load.ids))
}

// auditOwners reads all journals: all owners belong to one cluster, each has a higher
// epoch than those before it, and booked nothing after the next had begun. It returns the
// faults, and how many owners there were. All processes run on one machine and read one
// clock.
func auditOwners(t *testing.T, dir string) (faults []string, owners int) {
	t.Helper()
	births := map[string]bool{}
	accounts, err := auditor.ReadAccounts(dir)
	require.NoError(t, err)
	for _, account := range accounts {
		history, err := auditor.ReadHistory(dir, account)
		require.NoError(t, err)
		owners += len(history.Owners)
		for _, e := range history.Refused {
			births[birthOf(e)] = true
			faults = append(faults, fmt.Sprintf("%s: somebody came with epoch %s when there was a higher one", account, e))
		}
		for i, now := range history.Owners {
			births[birthOf(now.Epoch)] = true
			if i == 0 {
				continue
			}
			before := history.Owners[i-1]
			if n := bookedLate(before, now); n > 0 {
				faults = append(faults, fmt.Sprintf("%s: active twice: %s wrote %d times in %s while %s had it in %s",
					account, before.Node, n, before.Epoch, now.Node, now.Epoch))
			}
		}
	}
	if len(births) != 1 {
		faults = append(faults, fmt.Sprintf("the clusters of the owners were born %v", slices.Sorted(maps.Keys(births))))
	}
	return faults, owners
}

// birthOf returns the part of an epoch that says when its cluster was born.
func birthOf(epoch string) string {
	birth, _, _ := strings.Cut(epoch, "-")
	return birth
}

// bookedLate counts what an owner booked after the next one had begun.
func bookedLate(t, next auditor.AccountOwner) int {
	late := 0
	for _, b := range slices.Concat(t.Booked, t.Late) {
		if b.At > next.Began {
			late++
		}
	}
	return late
}

// TestTheAuditOfOwnersFindsPlantedFaults plants one fault after the other.
func TestTheAuditOfOwnersFindsPlantedFaults(t *testing.T) {
	dir := t.TempDir()
	acct := store.Key{Kind: "account", ID: "acct"}
	at := func(born int64, n uint64) store.Owner {
		return store.Owner{Epoch: epoch.Epoch{Born: born, N: n}, Instance: 1}
	}
	claim := func(node string, owner store.Owner) store.Owner {
		s, err := journal.Open(dir, node)
		require.NoError(t, err)
		records, err := s.Load(t.Context(), []store.Claim{{Key: acct, Owner: owner}})
		require.NoError(t, err)
		return records[0].Owner
	}
	book := func(node string, owner store.Owner, expected uint64) store.Owner {
		s, err := journal.Open(dir, node)
		require.NoError(t, err)
		booking := fmt.Appendf(nil, `{"transfer":"t","at":%d}`, time.Now().UnixNano())
		heads, err := s.Save(t.Context(), []store.Write{{
			Key: acct, Owner: owner, Expected: expected, Version: expected + 1, Events: []store.Value{{Form: 1, Bytes: booking}},
		}})
		require.NoError(t, err)
		return heads[0].Owner
	}
	first, second := at(1, 1), at(1, 3)
	require.Equal(t, first, claim("a", first))
	require.Equal(t, first, book("a", first, 0))
	require.Equal(t, second, claim("b", second))
	require.Equal(t, second, book("b", second, 1))
	faults, owners := auditOwners(t, dir)
	require.Empty(t, faults)
	require.Equal(t, 2, owners)

	require.Equal(t, second, book("a", first, 1), "it is told who has the account")
	want := []string{"acct: active twice: a wrote 1 times in a1-a0-a0-a0-a1 while b had it in a1-a0-a0-a0-a3"}
	faults, _ = auditOwners(t, dir)
	require.Equal(t, want, faults)

	require.Equal(t, second, claim("c", at(1, 2)))
	want = slices.Insert(want, 0, "acct: somebody came with epoch a1-a0-a0-a0-a2 when there was a higher one")
	faults, _ = auditOwners(t, dir)
	require.Equal(t, want, faults)

	require.Equal(t, at(2, 1), claim("d", at(2, 1)))
	want = append(want, "the clusters of the owners were born [a1 a2]")
	faults, _ = auditOwners(t, dir)
	require.Equal(t, want, faults)
}
