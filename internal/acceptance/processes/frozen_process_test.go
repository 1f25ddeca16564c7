// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package processes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/acceptance/auditor"
	"github.com/quorate/quorate/internal/patience"
)

// Nodes that are stopped for a while under load. A case (frost) freezes one node, sends
// transfers to it meanwhile, and checks what became of them when the node runs again. The
// load comes from clerks, which keep the receipts; at the end the receipts and all journals
// are compared.

// The nodes of which one is frozen in each case.
const (
	plainNode   = "plain"   // A node that neither leads nor leaves.
	oldestNode  = "oldest"  // The node that is leader and coordinator.
	leavingNode = "leaving" // A node that is handing its accounts over.
)

// removedAfter separates the pauses: after shorter ones the others still wait
// for the node, after longer ones they have gone on without it. With default
// settings they wait for 6 s at least and 10 s at most.
const removedAfter = 6 * time.Second

// TestFrozenNodes stops a node for a time, under load, in a cluster of its own for each
// case. After a short pause its accounts go on where they were, under the same epochs.
// After a long pause they have new owners: the node acknowledges nothing that was sent to
// it meanwhile, carries none of it out, and ends by itself with status 3. In no case does
// an owner acknowledge anything after another owner has taken over.
//
// covers F24, F25, F37, I1, I7, I14.
func TestFrozenNodes(t *testing.T) {
	t.Parallel()       // Tests of clusters mostly wait.
	const clusters = 6 // How many run at the same time; they mostly wait.
	room := make(chan struct{}, clusters)
	var cases sync.WaitGroup
	for _, pause := range []time.Duration{time.Minute, 15 * time.Second, 4 * time.Second, time.Second} {
		for _, who := range []string{plainNode, oldestNode, leavingNode} {
			room <- struct{}{}
			// Owned by the test, which waits for it below.
			cases.Go(func() {
				defer func() { <-room }()
				t.Run(fmt.Sprintf("%s for %v", who, pause), func(t *testing.T) { freezeOne(t, who, pause) })
			})
		}
	}
	cases.Wait()
}

// frost is one case: a cluster, the node that is frozen in it, and what was
// sent to it meanwhile.
type frost struct {
	*city

	ids    []string
	victim *node
	rest   []*node
	own    []string          // Accounts that the victim owned when it was frozen.
	epochs map[string]string // The epochs of these accounts at that time.
	clerks *clerks
	late   []bank.Transfer
	empty  bool // The victim had handed everything over when it was frozen.
	thawed time.Time
}

// freezeOne plays one case.
func freezeOne(t *testing.T, who string, pause time.Duration) {
	t.Helper()
	f := &frost{city: newCity(t), ids: accounts(45)}
	nodes := f.settle(3)
	f.readAll(f.ids, nodes...)
	at := map[string]int{plainNode: 2, oldestNode: 0, leavingNode: 2}[who]
	f.victim, f.rest = nodes[at], slices.Delete(slices.Clone(nodes), at, at+1)
	f.clerks = f.openDesks(f.ids, f.rest)
	own := f.ownedBy(f.victim, f.ids)
	require.GreaterOrEqual(t, len(own), 4, "the victim hosts too little")
	if who == leavingNode {
		f.awaitFirstMove(own)
	}
	f.victim.freeze()
	end := time.NewTimer(pause) //quorate:realtime So long it stands still.
	f.own = f.ownedBy(f.victim, own)
	f.epochs = f.epochsOf(f.own)
	f.empty = strings.Contains(f.victim.log.String(), "verdict=confirmed")
	t.Logf("%d of %d accounts had new owners when the node froze; everything handed over: %t", len(own)-len(f.own), len(own), f.empty)
	answers := f.sendLate()
	if pause > removedAfter {
		f.checkReplaced()
	}
	<-end.C
	f.thawed = time.Now()
	f.victim.signal(syscall.SIGCONT)

	faults := answers()
	switch {
	case pause > removedAfter:
		f.checkNothingBegun()
	case who == leavingNode:
		require.Zero(t, f.victim.status(), "it had time to leave in order")
	default:
		f.checkResumed(faults)
	}
	f.settleUp()
}

// awaitFirstMove asks the victim to leave, and waits until one of its accounts
// has answered from another node: the others are on their way.
func (f *frost) awaitFirstMove(own []string) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(patience.Context(f.t))
	defer cancel()
	before := f.epochsOf(own)
	var asking sync.WaitGroup
	var moved atomic.Bool
	for i, id := range own {
		// Owned by this wait; ends with ctx, which ends when one account has moved.
		asking.Go(func() {
			for b := (balance{}); ctx.Err() == nil; {
				if f.rest[i%len(f.rest)].get(ctx, "/accounts/"+id, &b) == nil && b.Epoch != before[id] {
					moved.Store(true)
					cancel()
				}
			}
		})
	}
	f.victim.signal(syscall.SIGTERM)
	asking.Wait()
	require.True(f.t, moved.Load(), "no account moves")
}

// epochsOf returns the epochs in which the accounts are owned.
func (f *frost) epochsOf(ids []string) map[string]string {
	f.t.Helper()
	epochs := map[string]string{}
	for _, id := range ids {
		owners := f.owners(id)
		epochs[id] = owners[len(owners)-1].Epoch
	}
	return epochs
}

// owners reads the journal of an account.
func (c *city) owners(id string) []auditor.AccountOwner {
	c.t.Helper()
	history, err := auditor.ReadHistory(c.journal, id)
	require.NoError(c.t, err)
	require.NotEmpty(c.t, history.Owners)
	return history.Owners
}

// sendLate sends a transfer from each account of the frozen node to that node,
// once. The function that it returns waits for the answers.
func (f *frost) sendLate() func() []error {
	answers := make([]error, len(f.own))
	var sending sync.WaitGroup
	client := *f.client
	client.Timeout = 0 // The pause may be longer.
	for i, id := range f.own {
		t := bank.Transfer{ID: "late-" + id, From: id, To: f.own[(i+1)%len(f.own)], Cents: 7}
		f.late = append(f.late, t)
		// Owned by the case, which waits for it; ends when the node answers or ends.
		sending.Go(func() {
			answers[i] = f.victim.transferBy(context.WithoutCancel(f.t.Context()), &client, t)
		})
	}
	return func() []error {
		sending.Wait()
		return answers
	}
}

// checkReplaced waits until the others have gone on without the frozen node, and each of its
// accounts has a new owner that has written.
func (f *frost) checkReplaced() {
	f.t.Helper()
	f.awaitMembers(f.rest...)
	for _, id := range f.own {
		f.clerks.transfer(f.rest[0], bank.Transfer{ID: "new-" + id, From: id, To: "elsewhere", Cents: 1})
		require.NotEqual(f.t, f.victim.Node, f.owner(id))
	}
}

// checkNothingBegun looks at a node that was replaced: it has ended by itself,
// and carried nothing out that was sent to it.
func (f *frost) checkNothingBegun() {
	f.t.Helper()
	status := f.victim.status()
	if !f.empty || status != 0 { // A node that had handed everything over may have left in order.
		require.Equal(f.t, 3, status, "%s", f.victim.log)
	}
	f.t.Logf("the node ended with status %d, %v after it thawed", status, time.Since(f.thawed).Round(time.Millisecond))
	for _, t := range f.late {
		// An account that moved before the pause answers from its new node, and the frozen
		// node passes the answer on. The frozen node itself has begun none of the transfers.
		for _, id := range []string{t.From, t.To} {
			for _, s := range f.owners(id) {
				for _, b := range slices.Concat(s.Booked, s.Late) {
					require.False(f.t, s.Node == f.victim.Node && b.Transfer == t.ID, "%s was begun in epoch %s", t.ID, s.Epoch)
				}
			}
		}
	}
}

// checkResumed looks at a node that came back in time: it has answered what was
// sent to it, and owns what it owned in the same epochs.
func (f *frost) checkResumed(faults []error) {
	f.t.Helper()
	for i, fault := range faults {
		require.NoError(f.t, fault, "%s", f.late[i].ID)
	}
	f.t.Logf("the last answer came %v after the thaw", time.Since(f.thawed).Round(time.Millisecond))
	f.awaitMembers(append(slices.Clone(f.rest), f.victim)...)
	require.Equal(f.t, f.epochs, f.epochsOf(f.own))
	require.Len(f.t, f.ownedBy(f.victim, f.own), len(f.own))
}

// settleUp sends what the frozen node did not answer once more, to the others,
// and compares the books with the receipts.
func (f *frost) settleUp() {
	f.t.Helper()
	for _, t := range f.late {
		f.clerks.transfer(f.rest[0], t)
	}
	f.checkBooks(f.clerks.close(), f.ids, f.rest)
	for _, n := range append(slices.Clone(f.rest), f.victim) {
		require.NotContains(f.t, n.log.String(), "panic:")
	}
}

// receipted is a transfer that was acknowledged.
type receipted struct {
	bank.Transfer

	receipt bank.Receipt
}

// clerks make transfers all the time, each at a desk of its own, and keep the receipts.
type clerks struct {
	city *city
	ids  []string
	over counter
	stop chan struct{}
	work sync.WaitGroup

	mu     sync.Mutex
	kept   []receipted
	faults []error
}

// counter asks for the n-th transfer of a desk; an attempt that fails is repeated.
type counter func(ctx context.Context, n, attempt int, t bank.Transfer) (bank.Receipt, error)

// openDesks starts clerks that ask the nodes in turn. A transfer that fails is asked for
// again at the same node.
func (c *city) openDesks(ids []string, nodes []*node) *clerks {
	return c.openDesksOver(4, ids, func(ctx context.Context, n, _ int, t bank.Transfer) (bank.Receipt, error) {
		return nodes[n%len(nodes)].receipt(ctx, t)
	})
}

// receipt asks a node for a transfer once, and returns the receipt.
func (n *node) receipt(ctx context.Context, t bank.Transfer) (bank.Receipt, error) {
	var r bank.Receipt
	err := n.do(ctx, http.MethodPost, "/transfers", t, &r)
	return r, err
}

// openDesksOver starts a clerk at each of some desks. The clerks ask by the function over.
func (c *city) openDesksOver(desks int, ids []string, over counter) *clerks {
	k := &clerks{city: c, ids: ids, over: over, stop: make(chan struct{})}
	for i := range desks {
		// Owned by the clerks, ends with stop; close waits for it.
		k.work.Go(func() { k.serve(i) })
	}
	c.t.Cleanup(func() { // A test that failed may not have closed the clerks.
		select {
		case <-k.stop:
		default:
			close(k.stop)
			k.work.Wait()
		}
	})
	return k
}

// serve makes one transfer after the other at a desk.
func (k *clerks) serve(desk int) {
	rnd := rand.New(rand.NewPCG(1, uint64(desk)))
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-k.stop:
			return
		case <-tick.C:
		}
		from := rnd.IntN(len(k.ids))
		to := (from + 1 + rnd.IntN(len(k.ids)-1)) % len(k.ids)
		k.send(n, k.over, bank.Transfer{
			ID: fmt.Sprintf("d%d-%d", desk, n), From: k.ids[from], To: k.ids[to], Cents: 1 + rnd.Int64N(50),
		})
	}
}

// send makes a transfer, repeated until it is answered, and keeps the receipt.
func (k *clerks) send(n int, over counter, t bank.Transfer) {
	var r bank.Receipt
	attempt := -1
	err := k.city.poll(func(ctx context.Context) (err error) {
		attempt++
		r, err = over(ctx, n, attempt, t)
		return err
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.faults = append(k.faults, fmt.Errorf("%s: %w", t.ID, err))
		return
	}
	k.kept = append(k.kept, receipted{t, r})
}

// transfer makes a transfer over one node, for the goroutine of the test: a transfer that is
// never answered ends the test.
func (k *clerks) transfer(over *node, t bank.Transfer) {
	k.city.t.Helper()
	k.send(0, func(ctx context.Context, _, _ int, t bank.Transfer) (bank.Receipt, error) {
		return over.receipt(ctx, t)
	}, t)
	k.mu.Lock()
	defer k.mu.Unlock()
	require.Empty(k.city.t, k.faults)
}

// close ends the work of the clerks, checks every receipt, and returns the balances that
// follow from the receipts.
func (k *clerks) close() map[string]int64 {
	k.city.t.Helper()
	close(k.stop)
	k.work.Wait()
	require.Empty(k.city.t, k.faults)
	require.NotEmpty(k.city.t, k.kept)
	want := map[string]int64{}
	for _, id := range k.ids {
		want[id] = bank.OpeningCents
	}
	for _, r := range k.kept {
		require.False(k.city.t, r.receipt.Refused, "%s", r.ID)
		want[r.From] -= r.Cents
		want[r.To] += r.Cents
	}
	delete(want, "elsewhere")
	k.checkReceipts()
	return want
}

// booking is one leg of a transfer.
type booking struct{ account, transfer string }

// checkReceipts reads all journals. Each leg that was acknowledged is there once, and not
// in a later epoch than the one that acknowledged it: otherwise another owner had taken
// over before the acknowledgement.
func (k *clerks) checkReceipts() {
	k.city.t.Helper()
	epochs := map[booking][]string{}
	for _, id := range append([]string{"elsewhere"}, k.ids...) {
		if _, err := auditor.ReadHistory(k.city.journal, id); err != nil {
			continue // Nobody asked that account.
		}
		for _, s := range k.city.owners(id) {
			for _, b := range s.Booked {
				epochs[booking{id, b.Transfer}] = append(epochs[booking{id, b.Transfer}], s.Epoch)
			}
		}
	}
	for _, r := range k.kept {
		for leg, epoch := range map[booking]string{{r.From, r.ID}: r.receipt.Paid, {r.To, r.ID}: r.receipt.Got} {
			require.Len(k.city.t, epochs[leg], 1, "%s of %s", leg.transfer, leg.account)
			require.LessOrEqual(k.city.t, epochs[leg][0], epoch, "%s of %s", leg.transfer, leg.account)
		}
	}
}
