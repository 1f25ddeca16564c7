// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package leasetest

// Test runs the parts of the suite, each on a server of its own. First what a single store must
// do; then keepers over two stores of one server, as two processes would have them.

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/internal/patience"
)

// Server is what keeps the leases, as the test of a store has set it up.
type Server struct {
	// Open returns a store of this server, as another process would make it.
	Open func(t testing.TB) lease.Store

	// Cut makes the server unreachable for all stores, or reachable again. Nil: there is
	// nothing that could be cut.
	Cut func(cut bool)
}

// Place is where the suite runs.
type Place struct {
	// New starts a server without leases, which ends with the test.
	New func(t testing.TB) Server

	// TTL is the life of leases in the suite, as short as the store allows.
	TTL time.Duration

	// Lasting says that a lease does not end with its time, but with the process of its
	// holder. The parts that wait for the end are left out.
	Lasting bool

	// Run runs one part; nil: as a subtest. A store whose time may be virtual has each part run
	// in a bubble of testing/synctest; [Parallel] is for one that needs real time.
	Run func(t *testing.T, name string, part func(t *testing.T))
}

// Parallel is a [Place.Run] that runs each part as a subtest at the same time as the others, for
// stores whose time is real: the parts wait for leases to end for most of theirs.
func Parallel(t *testing.T, name string, part func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		part(t)
	})
}

// maxAnswer bounds how long a store may take in the suite to see that a context has ended.
const maxAnswer = 5 * time.Second

// Test checks a store against the contract of [lease.Store], and keepers over it.
func Test(t *testing.T, p Place) {
	t.Helper()
	run := p.Run
	if run == nil {
		run = func(t *testing.T, name string, part func(t *testing.T)) {
			t.Helper()
			t.Run(name, part)
		}
	}
	parts := []struct {
		name string
		part func(*testing.T, Place)
		when bool
	}{
		{"two takers", twoTakers, true},
		{"the owner takes again", ownerTakesAgain, true},
		{"give of a stranger", giveOfAStranger, true},
		{"leases apart", leasesApart, true},
		{"a context that has ended", endedContext, true},
		{"a keeper after the other", keepers, true},
		{"the end of a lease", endOfALease, !p.Lasting},
		{"a holder that vanishes", vanishedHolder, !p.Lasting},
		{"a server that is away", serverAway, true},
	}
	for _, part := range parts {
		if part.when {
			run(t, part.name, func(t *testing.T) {
				t.Helper()
				part.part(t, p)
			})
		}
	}
}

func (p Place) claim(owner string) lease.Claim {
	return lease.Claim{Name: "suite", Owner: owner, TTL: p.TTL}
}

// pause is the time between two questions of a part that waits.
const pause = 20 * time.Millisecond

// decide asks until the store says something, for at most three lives of a lease: a store that
// has to watch a lease for a while before it can tell answers with errors until then.
func decide(t testing.TB, s lease.Store, c lease.Claim) lease.Answer {
	t.Helper()
	return until(t, s, c, func(lease.Answer) bool { return true })
}

// until asks until the answer is as it should be.
func until(t testing.TB, s lease.Store, c lease.Claim, good func(lease.Answer) bool) lease.Answer {
	t.Helper()
	var last error
	next := time.NewTicker(pause)
	defer next.Stop()
	for watch := patience.Start(t); watch.Elapsed() < 3*c.TTL+maxAnswer; <-next.C {
		var a lease.Answer
		a, last = s.Take(t.Context(), c)
		if last == nil && good(a) {
			check(t, c, a)
			return a
		}
	}
	require.FailNow(t, "no such answer", "the last error: %v", last)
	return lease.Answer{}
}

// check checks what every answer must be.
func check(t testing.TB, c lease.Claim, a lease.Answer) {
	t.Helper()
	require.NotEmpty(t, a.Owner)
	if a.Granted {
		require.Equal(t, c.Owner, a.Owner)
		require.NotZero(t, a.Token)
		require.Positive(t, a.TTL)
		return
	}
	require.Zero(t, a.Token)
}

func granted(a lease.Answer) bool { return a.Granted }

// hold renews a lease in another goroutine until the test or the returned function ends it.
func hold(t testing.TB, s lease.Store, c lease.Claim) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // Ends with stop, which waits for it.
		defer close(done)
		ticks := time.NewTicker(c.TTL / 6)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				_, _ = s.Take(ctx, c) // What comes of it is seen by the other taker.
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func twoTakers(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	one, two := server.Open(t), server.Open(t)
	first := until(t, one, p.claim("a"), granted)
	stop := hold(t, one, p.claim("a"))
	refused := decide(t, two, p.claim("b"))
	require.False(t, refused.Granted)
	require.Equal(t, "a", refused.Owner)
	stop()
	require.NoError(t, one.Give(t.Context(), p.claim("a")))
	second := until(t, two, p.claim("b"), granted)
	require.Greater(t, second.Token, first.Token, "tokens grow")
	require.NoError(t, two.Give(t.Context(), p.claim("b")))
	third := until(t, one, p.claim("c"), granted)
	require.Greater(t, third.Token, second.Token)
}

func ownerTakesAgain(t *testing.T, p Place) {
	t.Helper()
	store := p.New(t).Open(t)
	first := until(t, store, p.claim("a"), granted)
	for range 3 {
		again, err := store.Take(t.Context(), p.claim("a"))
		require.NoError(t, err)
		check(t, p.claim("a"), again)
		require.True(t, again.Granted)
		require.Equal(t, first.Token, again.Token, "one holding has one token")
	}
}

func giveOfAStranger(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	one, two := server.Open(t), server.Open(t)
	require.NoError(t, two.Give(t.Context(), p.claim("b")), "nobody has it")
	first := until(t, one, p.claim("a"), granted)
	require.NoError(t, two.Give(t.Context(), p.claim("b")))
	require.NoError(t, one.Give(t.Context(), p.claim("c")))
	again := until(t, one, p.claim("a"), granted)
	require.Equal(t, first.Token, again.Token)
	require.NoError(t, one.Give(t.Context(), p.claim("a")))
	require.NoError(t, one.Give(t.Context(), p.claim("a")), "a second time")
}

func leasesApart(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	one, two := server.Open(t), server.Open(t)
	until(t, one, p.claim("a"), granted)
	other := p.claim("b")
	other.Name = "suite-2"
	until(t, two, other, granted)
}

func endedContext(t *testing.T, p Place) {
	t.Helper()
	store := p.New(t).Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	watch := patience.Start(t)
	_, err := store.Take(ctx, p.claim("a"))
	require.Error(t, err)
	require.Error(t, store.Give(ctx, p.claim("a")))
	require.Less(t, watch.Elapsed(), maxAnswer)
}

func endOfALease(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	one, two := server.Open(t), server.Open(t)
	called := time.Now()
	first := until(t, one, p.claim("a"), granted)
	second := until(t, two, p.claim("b"), granted)
	require.GreaterOrEqual(t, time.Since(called), p.TTL-p.TTL/50, "no sooner than the lease can have ended")
	require.Greater(t, second.Token, first.Token)
	refused := until(t, one, p.claim("a"), func(a lease.Answer) bool { return !a.Granted || a.Token > second.Token })
	if refused.Granted { // The second holder does not renew either.
		require.Greater(t, refused.Token, second.Token)
	}
}

func serverAway(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	if server.Cut == nil {
		return
	}
	store := server.Open(t)
	first := until(t, store, p.claim("a"), granted)
	server.Cut(true)
	ctx := patience.Expiring(t, 300*time.Millisecond)
	watch := patience.Start(t)
	_, err := store.Take(ctx, p.claim("a"))
	require.Error(t, err, "what is unknown is no answer")
	require.Error(t, store.Give(ctx, p.claim("a")))
	require.Less(t, watch.Elapsed(), maxAnswer)
	server.Cut(false)
	again := until(t, store, p.claim("a"), granted)
	require.GreaterOrEqual(t, again.Token, first.Token)
}

// keeper returns a keeper with the fastest settings that the life of leases allows.
func (p Place) keeper(t testing.TB, s lease.Store, owner string) *lease.Keeper {
	t.Helper()
	k, err := lease.NewKeeper(s, lease.Config{TTL: p.TTL, RenewInterval: p.TTL / 6, RequestTimeout: p.TTL / 6, RetryInterval: p.TTL / 30}, "suite", owner)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			require.ErrorIs(t, err, lease.ErrNotTold)
		}
	})
	return k
}

// acquire waits for the lease, whoever has it meanwhile.
func (p Place) acquire(t testing.TB, k *lease.Keeper) lease.Holding {
	t.Helper()
	var last error
	next := time.NewTicker(pause)
	defer next.Stop()
	for watch := patience.Start(t); watch.Elapsed() < 3*p.TTL+maxAnswer; <-next.C {
		var h lease.Holding
		if h, last = k.Acquire(t.Context()); last == nil {
			return h
		}
	}
	require.NoError(t, last)
	return lease.Holding{}
}

func keepers(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	one, two := p.keeper(t, server.Open(t), "a"), p.keeper(t, server.Open(t), "b")
	first := p.acquire(t, one)
	_, err := two.Acquire(t.Context())
	refused, ok := errors.AsType[*lease.RefusedError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, one.Owner(), refused.Holder)
	now, held := one.Check()
	require.True(t, held)
	require.Equal(t, first.Token, now.Token)
	require.NoError(t, one.Release(t.Context()))
	_, held = one.Check()
	require.False(t, held)
	<-first.Lost()
	second := p.acquire(t, two)
	require.Greater(t, second.Token, first.Token)
	require.NoError(t, two.Close())
	third := p.acquire(t, one)
	require.Greater(t, third.Token, second.Token)
}

// vanishedHolder has a holder whose server is cut off for ever, as far as it can see.
func vanishedHolder(t *testing.T, p Place) {
	t.Helper()
	server := p.New(t)
	gone := &severedStore{Store: server.Open(t), cut: make(chan struct{})}
	one, two := p.keeper(t, gone, "a"), p.keeper(t, server.Open(t), "b")
	first := p.acquire(t, one)
	close(gone.cut)
	second := p.acquire(t, two)
	_, held := one.Check()
	require.False(t, held, "the first holder knew before the second one began")
	<-first.Lost()
	require.Greater(t, second.Token, first.Token)
	require.Contains(t, one.State().Reason, "lost: ")
}

// severedStore is a store that does not answer any more once cut is closed.
type severedStore struct {
	lease.Store
	cut chan struct{}
}

// Take implements [lease.Store].
func (s *severedStore) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	select {
	case <-s.cut:
		<-ctx.Done()
		return lease.Answer{}, ctx.Err()
	default:
		return s.Store.Take(ctx, c)
	}
}

// Give implements [lease.Store].
func (s *severedStore) Give(ctx context.Context, c lease.Claim) error {
	select {
	case <-s.cut:
		<-ctx.Done()
		return ctx.Err()
	default:
		return s.Store.Give(ctx, c)
	}
}
