// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package majority_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/downingtest"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/downing/lease/memory"
	"github.com/quorate/quorate/gossip"
)

// Strategies in virtual time over one store: the sides of a split, stores that are down or
// hang, a holding that ends, and the suite of all providers.

// limit is how long a node waits for a decision.
const limit = 5 * time.Second

func strategy(t testing.TB, store lease.Store, node int) *majority.Strategy {
	t.Helper()
	s, err := majority.New(store, settings(node))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // What it says is the matter of single tests.
	return s
}

// decide asks as a node does.
func decide(t testing.TB, s *majority.Strategy, v downing.View) (downing.Decision, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return s.Decide(ctx, v)
}

// The majority goes on although the other side is asked at the same moment; where it does not
// ask the minority goes on.
func TestOneSideOfASplitIsKept(t *testing.T) {
	for _, majorityAsks := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			leases := memory.New()
			large, small := strategy(t, leases, 0), strategy(t, leases, 2)
			answers := make(chan error, 1)
			if majorityAsks {
				go func() { // Ends with its answer, for which the test waits.
					d, err := decide(t, large, viewOf(0, 3, 2))
					if err == nil && d.Verdict != downing.KeepSide {
						err = errors.New(d.Reason)
					}
					answers <- err
				}()
			}
			d, err := decide(t, small, viewOf(2, 3, 0, 1))
			if !majorityAsks {
				require.NoError(t, err)
				require.Equal(t, downing.KeepSide, d.Verdict)
				return
			}
			require.NoError(t, <-answers)
			waiting, ok := errors.AsType[*majority.WaitingError](err)
			require.True(t, ok)
			require.Contains(t, waiting.Reason, `the lease "bank" at etcd is held by n0:7946/`)
			require.Contains(t, waiting.Error(), `waiting for the lease "bank" at etcd since 2000-01-01T00:00:02Z: `)
			require.Contains(t, small.State().String(), `waiting for the lease "bank" at etcd since 2000-01-01T00:00:02Z`)
			require.Contains(t, large.State().String(), `holding the lease "bank" at etcd with the token 1`)
		})
	}
}

// A store that is down does not keep a node from starting. While it is down, or hangs, each
// question ends in its time and says since when the lease is waited for.
func TestAStoreThatIsDownIsWaitedForInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		leases.Fail(errors.New("no route to host"))
		s := strategy(t, leases, 0)
		begin := time.Now()
		for range 3 {
			asked := time.Now()
			_, err := decide(t, s, viewOf(0, 3, 2))
			require.LessOrEqual(t, time.Since(asked), limit)
			waiting, ok := errors.AsType[*majority.WaitingError](err)
			require.True(t, ok)
			require.Equal(t, "no route to host", waiting.Reason)
			require.Equal(t, begin.Add(limit), waiting.Since)
		}
		leases.Fail(nil)
		d, err := decide(t, s, viewOf(0, 3, 2))
		require.NoError(t, err)
		require.Equal(t, downing.KeepSide, d.Verdict)
		require.True(t, s.State().Waiting.IsZero())
	})
}

// stuck is a store that ignores the end of its contexts.
type stuck struct{ let chan struct{} }

func (s stuck) Take(context.Context, lease.Claim) (lease.Answer, error) {
	<-s.let
	return lease.Answer{}, nil
}

func (s stuck) Give(context.Context, lease.Claim) error { return nil }

func TestAStoreThatNeverReturnsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := stuck{let: make(chan struct{})}
		s := strategy(t, store, 0)
		asked := time.Now()
		_, err := decide(t, s, viewOf(0, 3, 2))
		require.ErrorContains(t, err, "no answer within 2s")
		require.Equal(t, limit, time.Since(asked))
		require.ErrorIs(t, s.Close(), lease.ErrStuck)
		_, err = decide(t, s, viewOf(0, 3, 2))
		require.ErrorIs(t, err, majority.ErrClosed)
		close(store.let)
	})
}

// The lease is kept until the decision is settled and has lasted, and is free then; a node that
// ends earlier leaves it to the store to end the lease.
func TestOthersGetTheLeaseWhenItHasLasted(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			leases := memory.New()
			one, two := strategy(t, leases, 0), strategy(t, leases, 2)
			_, err := decide(t, one, viewOf(0, 3, 2))
			require.NoError(t, err)
			if ends {
				require.NoError(t, one.Close())
			} else {
				<-time.After(time.Minute)
				one.Settled()
			}
			settled := time.Now()
			for {
				_, err := decide(t, two, viewOf(2, 3, 0, 1))
				if err == nil {
					break
				}
				<-time.After(time.Second)
			}
			free := time.Since(settled)
			require.Greater(t, free, downing.HeardWithin(40*time.Second, limit)+limit)
			require.LessOrEqual(t, free, 46*time.Second)
		})
	}
}

func TestWhatNoDecisionNeedsIsFreeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := memory.New()
		leases.Steal("bank", "n1:7946/V/0", 7*time.Second)
		one, two := strategy(t, leases, 0), strategy(t, leases, 2)
		_, err := decide(t, one, viewOf(0, 3, 1))
		require.Error(t, err)
		require.NoError(t, one.Close())
		<-time.After(7 * time.Second)
		d, err := decide(t, two, viewOf(2, 3, 0, 1))
		require.NoError(t, err)
		require.Equal(t, downing.KeepSide, d.Verdict)
		require.Equal(t, 40*time.Second, two.Keeps())
	})
}

// arbiter has each side of a split ask with a strategy of its own.
type arbiter struct {
	t      testing.TB
	leases *memory.Store
	of     map[gossip.NodeID]*majority.Strategy
	seen   *atomic.Int64
}

func (a arbiter) Class() downing.Class { return downing.Class{} }

func (a arbiter) Decide(ctx context.Context, v downing.View) (downing.Decision, error) {
	if err := v.Validate(); err != nil {
		return downing.Decision{}, err
	}
	s := a.of[v.Self]
	if s == nil {
		cfg := settings(0)
		cfg.MinorityDelay, cfg.Owner = 0, v.Self.String()
		var err error
		if s, err = majority.New(a.leases, cfg); err != nil {
			return downing.Decision{}, err
		}
		a.of[v.Self] = s
		a.t.Cleanup(func() { _ = s.Close() }) // It may hold a lease, which is left.
	}
	a.seen.Add(1)
	d, err := s.Decide(ctx, v)
	if _, waits := errors.AsType[*majority.WaitingError](err); waits {
		return downing.Decision{Reason: err.Error()}, nil
	}
	return d, err
}

// Of the sides of every split one at most gets the lease, in whatever order they ask.
func TestOneSideOfEverySplitIsKept(t *testing.T) {
	var asked atomic.Int64
	downingtest.TestSplits(t, func(tb testing.TB) downing.Provider {
		return arbiter{tb, memory.New(), map[gossip.NodeID]*majority.Strategy{}, &asked}
	})
	require.Positive(t, asked.Load())
}

func TestSettingsThatAreWrongAreNamed(t *testing.T) {
	_, err := majority.New(memory.New(), majority.Settings{})
	require.ErrorContains(t, err, "store: must be set for lease-majority: file, etcd or kubernetes")
	require.ErrorContains(t, err, "lease-name: must be set for lease-majority")
	require.ErrorContains(t, err, "owner: is empty")
	s := settings(0)
	s.Lease, s.MinorityDelay, s.ReleaseAfter = "Bank", time.Minute, time.Second
	err = s.Validate()
	require.ErrorContains(t, err, `lease-name: "Bank" is no name of a lease`)
	require.ErrorContains(t, err, "minority-delay: 1m0s is not from 0s to 3s")
	require.ErrorContains(t, err, "release-after: 1s is not from 30s to 5m")
	s = settings(0)
	s.RequestTimeout = 20 * time.Second
	require.ErrorContains(t, s.Validate(), "release-after: 40s is too short for calls of 20s")
}
