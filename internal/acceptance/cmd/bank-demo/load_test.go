// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/examples/bank"
	"github.com/quorate/quorate/internal/patience"
)

// The load of the demo against HTTP servers in place of nodes, of which one is dead and one
// fails now and then: transfers, sweeps, and a load that is abandoned. Then come rates and
// figures, and how the time of a transfer is split among its accounts; last single requests.

// fakeNode answers transfers; every third request fails.
type fakeNode struct {
	mu       sync.Mutex
	requests int
	seen     map[string]int // Transfer id to how often it came.
}

// ServeHTTP counts a transfer, and answers unless the request is the third in turn.
func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	var t bank.Transfer
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&t) // Without an id the test would miss the transfer.
		f.seen[t.ID]++
	}
	if f.requests%3 == 0 {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(bank.Receipt{ID: t.ID, Paid: "1", Got: "1"}) // Without an answer the load asks again.
}

// newFakes returns a load on two nodes of which one is dead, and the node that lives.
func newFakes(t *testing.T) (*load, *fakeNode) {
	t.Helper()
	fake := &fakeNode{seen: map[string]int{}}
	alive, dead := httptest.NewServer(fake), httptest.NewServer(fake)
	t.Cleanup(alive.Close)
	dead.Close()
	f := &nodeProcesses{client: alive.Client()}
	for _, s := range []*httptest.Server{alive, dead} {
		p := newProcess("n", "x:1")
		p.HTTP, p.admitted = strings.TrimPrefix(s.URL, "http://"), true
		f.alive = append(f.alive, p)
	}
	f.printer = &printer{out: io.Discard, begun: time.Now(), last: map[string]string{}}
	return newLoad(1, 10, 200, f), fake
}

// TestEveryTransferIsRepeatedUntilItIsAnswered runs the load against a node that
// fails now and then beside one that is dead: each transfer is answered exactly
// once, under the id with which it was sent.
func TestEveryTransferIsRepeatedUntilItIsAnswered(t *testing.T) {
	l, fake := newFakes(t)
	l.start(t.Context(), l.processes.printer)
	patience.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.told) >= 100
	}, "a hundred answers")
	require.NoError(t, l.finish(t.Context()))
	require.Zero(t, l.unanswered)
	require.NotEmpty(t, l.retried)
	require.Len(t, l.told, len(l.asked))
	answered := map[string]bool{}
	for _, told := range l.told {
		require.False(t, answered[told.ID], "%s was answered twice", told.ID)
		answered[told.ID] = true
		require.True(t, l.asked[told.ID])
		require.Equal(t, told.ID, told.receipt.ID)
		require.Positive(t, fake.seen[told.ID])
		require.NotEqual(t, told.From, told.To)
		require.Positive(t, told.Cents)
	}
}

// TestASweepAsksEveryAccount shows that a sweep ends when all have answered.
func TestASweepAsksEveryAccount(t *testing.T) {
	l, fake := newFakes(t)
	took, err := l.sweep(t.Context())
	require.NoError(t, err)
	require.Positive(t, took)
	require.GreaterOrEqual(t, fake.requests, l.accounts)
}

// TestAnAbandonedLoadCountsWhatWasNotAnswered ends the load with no node to
// answer it: nothing hangs, and every transfer counts as unanswered.
func TestAnAbandonedLoadCountsWhatWasNotAnswered(t *testing.T) {
	l := newLoad(1, 10, 200, &nodeProcesses{printer: &printer{out: io.Discard, begun: time.Now(), last: map[string]string{}}})
	require.False(t, l.abandon(), "it had not started")
	l = newLoad(1, 10, 200, l.processes)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.start(ctx, l.processes.printer)
	patience.Eventually(t, func() bool { return len(l.slots) > 10 }, "ten transfers are under way")
	require.True(t, l.abandon())
	require.Empty(t, l.told)
	require.Equal(t, len(l.asked), l.unanswered)
	require.Empty(t, l.slots)
}

// TestTheRateIsKeptOverTime shows that the operations which are due follow from the time
// that has passed, so that late ticks are made up for.
func TestTheRateIsKeptOverTime(t *testing.T) {
	require.Zero(t, due(0, 300))
	require.Equal(t, 300, due(time.Second, 300))
	require.Equal(t, 36_000, due(2*time.Minute, 300))
}

// TestALookTakesWhatItSaw shows that a look has the figures since the look before it.
func TestALookTakesWhatItSaw(t *testing.T) {
	l := newLoad(1, 10, 300, &nodeProcesses{})
	require.Equal(t, pace{}, l.look())
	for i := range 100 {
		l.waits = append(l.waits, time.Duration(i)*time.Millisecond)
	}
	p := l.look()
	require.Equal(t, 100, p.operations)
	require.Equal(t, 50*time.Millisecond, p.p50)
	require.Equal(t, 99*time.Millisecond, p.p99)
	require.Equal(t, pace{}, l.look())
}

// TestTheTimeOfATransferIsSplitAmongItsAccounts shows which account is held to
// have taken how long.
func TestTheTimeOfATransferIsSplitAmongItsAccounts(t *testing.T) {
	const second = time.Second
	transfer := bank.Transfer{From: "a", To: "b"}
	measured := func(receipt bank.Receipt, first, last time.Duration) []span {
		l := newLoad(1, 10, 300, &nodeProcesses{})
		l.begun = l.begun.Add(-10 * second) // The load began a little more than 10 s ago.
		l.measure(transfer, receipt, attemptSpan{first, last})
		for i := range l.spans {
			l.spans[i].from, l.spans[i].to = l.spans[i].from.Truncate(second), l.spans[i].to.Truncate(second)
		}
		return l.spans
	}
	paid := bank.Receipt{PaidAfter: 2 * second}
	require.Equal(t, []span{{"a", 5 * second, 7 * second}, {"b", 7 * second, 10 * second}}, measured(paid, 5*second, 5*second))
	require.Equal(t, []span{{"a", 5 * second, 8 * second}, {"b", 5 * second, 10 * second}}, measured(paid, 5*second, 6*second),
		"after a try that broke off")
	paid.Refused = true
	require.Equal(t, []span{{"a", 5 * second, 7 * second}}, measured(paid, 5*second, 5*second), "the other one was not asked")
	paid = bank.Receipt{PaidAfter: time.Hour}
	require.Equal(t, []span{{"a", 5 * second, 10 * second}, {"b", 10 * second, 10 * second}}, measured(paid, 5*second, 5*second),
		"a node cannot have taken longer than its client waited")
}

// TestAFailedAskIsNotABrokenRequest counts the two apart: one of three requests
// to the node that lives is answered with an error, and all to the dead one
// break.
func TestAFailedAskIsNotABrokenRequest(t *testing.T) {
	l, fake := newFakes(t)
	for i := range l.accounts {
		l.read(t.Context(), account(i), i)
	}
	require.Len(t, l.failed, fake.requests/3)
	for _, f := range l.failed {
		require.Contains(t, f.what, "503 Service Unavailable: try again")
	}
	require.GreaterOrEqual(t, len(l.retried), 5, "half of them began at the dead node")
	require.Len(t, l.spans, l.accounts)
}

// TestAbortEndsTheRequestsToOneNode aborts the requests to a node that does not answer.
func TestAbortEndsTheRequestsToOneNode(t *testing.T) {
	arrived := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Before the body is read, a server does not see that its client has gone.
		close(arrived)
		<-r.Context().Done()
	}))
	defer silent.Close()
	p := newProcess("n1", "x:1")
	p.HTTP, p.admitted = strings.TrimPrefix(silent.URL, "http://"), true
	l := newLoad(1, 10, 200, &nodeProcesses{client: silent.Client(), alive: []*process{p}})
	go func() {
		<-arrived
		p.abort()
	}()
	require.ErrorIs(t, l.ask(t.Context(), 0, http.MethodPost, "/transfers", nil, nil), context.Canceled)
	require.Empty(t, l.failed)
	require.Empty(t, p.requests)
}

// TestTheReceivingAccountIsAskedSecond makes a transfer that is answered at
// once: the receiving account is not held to have been asked before the paying
// one had answered.
func TestTheReceivingAccountIsAskedSecond(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(bank.Receipt{ID: "x", PaidAfter: time.Hour}) // Without an answer the test fails.
	}))
	defer server.Close()
	p := newProcess("n1", "x:1")
	p.HTTP, p.admitted = strings.TrimPrefix(server.URL, "http://"), true
	l := newLoad(1, 10, 200, &nodeProcesses{client: server.Client(), alive: []*process{p}})
	l.transfer(t.Context(), bank.Transfer{ID: "x", From: "a", To: "b", Cents: 1}, 0)
	require.Len(t, l.spans, 2)
	require.Less(t, l.spans[0].from, l.spans[0].to)
	require.Equal(t, l.spans[0].to, l.spans[1].from)
	require.Zero(t, l.again)
	require.Empty(t, l.retried)
}
