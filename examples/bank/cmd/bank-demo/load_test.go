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
)

// fakeNode answers transfers; every third request fails.
type fakeNode struct {
	mu       sync.Mutex
	requests int
	seen     map[string]int // Transfer id to how often it came.
}

// ServeHTTP answers.
func (f *fakeNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	var t bank.Transfer
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&t) // The test looks at the id.
		f.seen[t.ID]++
	}
	if f.requests%3 == 0 {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(bank.Receipt{ID: t.ID, Paid: "1", Got: "1"}) // The client is a test.
}

// newFakes returns a load on two nodes of which one is dead.
func newFakes(t *testing.T) (*load, *fakeNode) {
	t.Helper()
	fake := &fakeNode{seen: map[string]int{}}
	alive, dead := httptest.NewServer(fake), httptest.NewServer(fake)
	t.Cleanup(alive.Close)
	dead.Close()
	f := &fleet{client: alive.Client()}
	for _, s := range []*httptest.Server{alive, dead} {
		f.alive = append(f.alive, &process{http: strings.TrimPrefix(s.URL, "http://")})
	}
	f.screen = &screen{out: io.Discard, begun: time.Now(), last: map[string]string{}}
	return newLoad(1, 10, 200, f), fake
}

// TestEveryTransferIsRepeatedUntilItIsAnswered runs the load against a node that
// fails now and then beside one that is dead: each transfer is answered exactly
// once, under the id with which it was sent.
func TestEveryTransferIsRepeatedUntilItIsAnswered(t *testing.T) {
	l, fake := newFakes(t)
	l.start(t.Context(), l.fleet.screen)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.told) >= 100
	}, 10*time.Second, 10*time.Millisecond)
	require.NoError(t, l.finish(t.Context()))
	require.Zero(t, l.unanswered)
	require.Positive(t, l.retried)
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
	l := newLoad(1, 10, 200, &fleet{screen: &screen{out: io.Discard, begun: time.Now(), last: map[string]string{}}})
	require.False(t, l.abandon(), "it had not started")
	l = newLoad(1, 10, 200, l.fleet)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l.start(ctx, l.fleet.screen)
	require.Eventually(t, func() bool { return len(l.slots) > 10 }, 10*time.Second, 10*time.Millisecond)
	require.True(t, l.abandon())
	require.Empty(t, l.told)
	require.Equal(t, len(l.asked), l.unanswered)
	require.Empty(t, l.slots)
}

// TestTheRateIsKeptOverTime shows that late ticks are made up for.
func TestTheRateIsKeptOverTime(t *testing.T) {
	require.Zero(t, due(0, 300))
	require.Equal(t, 300, due(time.Second, 300))
	require.Equal(t, 36_000, due(2*time.Minute, 300))
	l := newLoad(1, 10, 300, &fleet{})
	p := l.look()
	require.Equal(t, pace{}, p)
	for i := range 100 {
		l.note(told{}, time.Duration(i)*time.Millisecond, i)
	}
	p = l.look()
	require.Equal(t, 100, p.operations)
	require.Equal(t, 50*time.Millisecond, p.p50)
	require.Equal(t, 99*time.Millisecond, p.p99)
	require.Equal(t, pace{}, l.look(), "a look takes what it saw")
	require.Equal(t, 99*time.Millisecond, l.longest)
	require.Equal(t, 99, l.retried)
}
