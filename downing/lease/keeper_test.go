// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease_test

// Keepers in virtual time over a store that can be made to misbehave. First that store; then
// the life of a holding, stores that answer badly or never, and what people are told.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
)

// crooked is a store whose answers a test can bend.
type crooked struct {
	lease.Store

	mu   sync.Mutex // guards what follows
	take func(context.Context, lease.Claim, lease.Answer) (lease.Answer, error)
}

func (s *crooked) bend(take func(context.Context, lease.Claim, lease.Answer) (lease.Answer, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take = take
}

func (s *crooked) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	s.mu.Lock()
	take := s.take
	s.mu.Unlock()
	a, err := s.Store.Take(ctx, c)
	if take == nil || err != nil {
		return a, err
	}
	return take(ctx, c, a)
}

func hangs(ctx context.Context, _ lease.Claim, _ lease.Answer) (lease.Answer, error) {
	<-ctx.Done()
	return lease.Answer{}, ctx.Err()
}

func keeper(t testing.TB, s lease.Store, owner string) *lease.Keeper {
	t.Helper()
	k, err := lease.NewKeeper(s, lease.Default(), "bank", owner)
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.Close() }) // What it says is the matter of single tests.
	return k
}

func TestAHoldingIsRenewedUntilItIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		one, two := keeper(t, leases, "a"), keeper(t, leases, "b")
		held, err := one.Acquire(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 1, held.Token)
		for range 60 {
			<-time.After(time.Minute)
			_, ok := one.Check()
			require.True(t, ok)
			_, err = two.Acquire(t.Context())
			refused, ok := errors.AsType[*lease.RefusedError](err)
			require.True(t, ok)
			require.Equal(t, one.Owner(), refused.Holder)
		}
		require.NoError(t, one.Release(t.Context()))
		<-held.Lost()
		held, err = two.Acquire(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, held.Token)
		require.NoError(t, two.Close())
		<-held.Lost()
		require.NoError(t, two.Close(), "twice")
		_, err = two.Acquire(t.Context())
		require.ErrorIs(t, err, lease.ErrClosed)
		require.ErrorIs(t, two.Release(t.Context()), lease.ErrClosed)
	})
}

// The store is down for an hour: the holding ends 5 % before the lease, and whoever waits
// knows for what and since when; then somebody has it again.
func TestAStoreThatIsDownForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		k := keeper(t, leases, "a")
		held, err := k.Acquire(t.Context())
		require.NoError(t, err)
		leases.Fail(errors.New("the store is down"))
		began := time.Now()
		<-held.Lost()
		require.Equal(t, 19*time.Second, time.Since(began))
		_, ok := k.Check()
		require.False(t, ok)
		require.Contains(t, k.State().String(), `without the lease "bank" since `)
		require.Contains(t, k.State().Reason, "lost: no answer before the end of the lease: the store is down")

		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var waiting lease.State
		time.AfterFunc(30*time.Minute, func() { waiting = k.State() })
		_, err = k.Acquire(ctx)
		require.ErrorIs(t, err, lease.ErrUnknown)
		require.ErrorContains(t, err, `waiting for the lease "bank" since `+began.UTC().Format(time.RFC3339)+": the store is down")
		require.Equal(t, time.Hour, time.Since(began))
		synctest.Wait()
		require.Equal(t, began, waiting.Since)
		require.Equal(t, lease.Waiting, waiting.Phase)
		require.Equal(t, lease.Idle, k.State().Phase)
		leases.Fail(nil)
		held, err = k.Acquire(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, 2, held.Token)
	})
}

func TestAnswersThatEndAHolding(t *testing.T) {
	for name, tc := range map[string]struct {
		take   func(context.Context, lease.Claim, lease.Answer) (lease.Answer, error)
		within time.Duration
		reason string
	}{
		"another owner": {func(_ context.Context, _ lease.Claim, a lease.Answer) (lease.Answer, error) {
			a.Owner = "b"
			return a, nil
		}, 4 * time.Second, `granted the lease to another owner, "b"`},
		"lost": {func(context.Context, lease.Claim, lease.Answer) (lease.Answer, error) {
			return lease.Answer{Owner: "b"}, nil
		}, 4 * time.Second, `held by "b"`},
		"no token": {func(_ context.Context, _ lease.Claim, a lease.Answer) (lease.Answer, error) {
			a.Token--
			return a, nil
		}, 4 * time.Second, "gave the token 0, after 1"},
		"hangs": {hangs, 20 * time.Second, "no answer within 3s"},
		"late": {func(ctx context.Context, _ lease.Claim, a lease.Answer) (lease.Answer, error) {
			<-ctx.Done()
			return a, nil
		}, 20 * time.Second, "no answer within 3s"},
		"late by minutes": {func(_ context.Context, _ lease.Claim, a lease.Answer) (lease.Answer, error) {
			<-time.After(5 * time.Minute) //quorate:realtime The store answers late, in the bubble of the test below.
			return a, nil
		}, 20 * time.Second, "no answer within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &crooked{Store: memory.New()}
				k := keeper(t, store, "a")
				held, err := k.Acquire(t.Context())
				require.NoError(t, err)
				store.bend(tc.take)
				began := time.Now()
				<-held.Lost()
				require.LessOrEqual(t, time.Since(began), tc.within)
				_, ok := k.Check()
				require.False(t, ok)
				require.Contains(t, k.State().Reason, tc.reason)
				require.Contains(t, k.State().Reason, "lost: ")

				began = time.Now()
				_, err = k.Acquire(t.Context())
				require.Error(t, err)
				require.LessOrEqual(t, time.Since(began), 2*lease.Default().TTL, "the wait has an end without one of the caller's")
				_, ok = k.Check()
				require.False(t, ok)
				_ = k.Close()
				<-time.After(5 * time.Minute) // Until the slowest answer has come.
				_, ok = k.Check()
				require.False(t, ok)
			})
		})
	}
}

// A store that never returns, whatever its context says, costs one goroutine; Close says so.
func TestAStoreThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &crooked{Store: memory.New()}
		forever := make(chan struct{})
		var calls atomic.Int32
		store.bend(func(context.Context, lease.Claim, lease.Answer) (lease.Answer, error) {
			calls.Add(1)
			<-forever
			return lease.Answer{}, nil
		})
		k := keeper(t, store, "a")
		_, err := k.Acquire(t.Context())
		require.ErrorIs(t, err, lease.ErrUnknown)
		_, err = k.Acquire(t.Context())
		require.ErrorContains(t, err, "no answer within 3s")
		began := time.Now()
		require.ErrorIs(t, k.Close(), lease.ErrStuck)
		require.LessOrEqual(t, time.Since(began), 3*lease.Default().RequestTimeout)
		require.EqualValues(t, 1, calls.Load())
		close(forever)
	})
}

// What an Acquire that ended too early may have got is given back.
func TestALeaseThatNobodyWaitsForIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		store := &crooked{Store: leases}
		store.bend(func(_ context.Context, _ lease.Claim, a lease.Answer) (lease.Answer, error) {
			<-time.After(2 * time.Second)
			return a, nil
		})
		one, two := keeper(t, store, "a"), keeper(t, leases, "b")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := one.Acquire(ctx)
		require.ErrorIs(t, err, lease.ErrUnknown)
		_, err = two.Acquire(t.Context())
		_, refused := errors.AsType[*lease.RefusedError](err)
		require.True(t, refused)
		<-time.After(2 * time.Second)
		synctest.Wait()
		_, err = two.Acquire(t.Context())
		require.NoError(t, err)
	})
}

// One Acquire that ends does not take the lease from another one that waits.
func TestTwoWhoWaitGetOneHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		leases.Fail(errors.New("down"))
		k := keeper(t, leases, "a")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var patient lease.Holding
		var got error
		var all sync.WaitGroup
		all.Go(func() { patient, got = k.Acquire(t.Context()) })
		_, err := k.Acquire(ctx)
		require.ErrorIs(t, err, lease.ErrUnknown)
		leases.Fail(nil)
		all.Wait()
		require.NoError(t, got)
		require.EqualValues(t, 1, patient.Token)
		again, err := k.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, patient, again)
	})
}

func TestAReleaseThatTheStoreDoesNotHearOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		k := keeper(t, leases, "a")
		require.NoError(t, k.Release(t.Context()), "nothing is held")
		_, err := k.Acquire(t.Context())
		require.NoError(t, err)
		leases.Fail(errors.New("the store is down"))
		err = k.Release(t.Context())
		require.ErrorIs(t, err, lease.ErrNotTold)
		require.ErrorContains(t, err, "the store is down")
		_, ok := k.Check()
		require.False(t, ok)
		leases.Fail(nil)
		began := time.Now()
		held, err := k.Acquire(t.Context())
		require.NoError(t, err, "its own former holding keeps it out until that ends, and it waits for that")
		require.EqualValues(t, 2, held.Token)
		require.LessOrEqual(t, time.Since(began), lease.Default().TTL+lease.Default().RetryInterval)
	})
}

func TestWhatAKeeperTellsPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &crooked{Store: memory.New()}
		k := keeper(t, store, "a")
		require.Contains(t, k.State().String(), `without the lease "bank" since 2000-01-01T00:00:00Z: never asked for`)
		_, err := k.Acquire(t.Context())
		require.NoError(t, err)
		require.Equal(t, `holding the lease "bank" since 2000-01-01T00:00:00Z with the token 1: granted`, k.State().String())
	})
}

func TestFaultsAreFoundAtTheStart(t *testing.T) {
	_, err := lease.NewKeeper(memory.New(), lease.Config{}, "Bank", "")
	for _, key := range []string{"ttl", "request-timeout", "retry-interval", "renew-interval", "name", "owner"} {
		require.ErrorContains(t, err, key)
	}
	slow := lease.Default()
	slow.RenewInterval = 12 * time.Second
	require.ErrorContains(t, slow.Validate(), "with two more attempts of request-timeout and retry-interval it makes 20s, and a holder uses 19s of a ttl of 20s")
	require.NoError(t, lease.Default().Validate())
	for _, name := range []string{"", "-a", "a-", "A", "a/b", "a.b", "é", string(make([]byte, 64))} {
		require.Error(t, lease.CheckName("name", name), name)
	}
	require.NoError(t, lease.CheckName("name", "bank-2"))
}
