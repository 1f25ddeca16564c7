// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdtest_test

// The store of leases against a real etcd: first the suite, then an etcd that is stopped while
// a lease is held, leases of etcd and keys that others take away, and keys that others write.

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/downing/lease"
	leases "github.com/quorate/quorate/downing/lease/etcd"
	"github.com/quorate/quorate/downing/lease/leasetest"
	"github.com/quorate/quorate/internal/patience"
)

const leaseKey = "/quorate/leases/bank"

func leaseStore(t testing.TB, url string) *leases.Store {
	t.Helper()
	config := leases.Default()
	config.Endpoints = []string{url}
	s, err := leases.New(config)
	require.NoError(t, err)
	return s
}

func leaseClaim(owner string) lease.Claim {
	return lease.Claim{Name: "bank", Owner: owner, TTL: 3 * time.Second}
}

func TestTheStoreOfLeasesKeepsTheContract(t *testing.T) {
	t.Parallel()
	leasetest.Test(t, leasetest.Place{
		TTL: 3 * time.Second,
		New: func(t testing.TB) leasetest.Server {
			_, address := start(t, settings(t))
			wire := newCable(t, address)
			return leasetest.Server{
				Open: func(t testing.TB) lease.Store { return leaseStore(t, wire.url()) },
				Cut:  wire.set,
			}
		},
		Run: leasetest.Parallel,
	})
}

// Etcd is stopped while a lease is held: the holding ends, and after the restart, in which etcd
// gives its leases their whole time again, the same keeper gets it back.
func TestAHoldingEndsWithoutEtcd(t *testing.T) {
	t.Parallel()
	config := settings(t)
	server, address := start(t, config)
	k, err := lease.NewKeeper(leaseStore(t, "http://"+address), lease.Config{
		TTL: 3 * time.Second, RenewInterval: 500 * time.Millisecond, RequestTimeout: 500 * time.Millisecond, RetryInterval: 100 * time.Millisecond,
	}, "bank", "a")
	require.NoError(t, err)
	first, err := k.Acquire(t.Context())
	require.NoError(t, err)
	peer := server.Peers[0].Addr().String()
	watch := patience.Start(t)
	server.Close()
	<-first.Lost()
	require.Less(t, watch.Elapsed(), 3*time.Second+5*time.Second)
	require.Contains(t, k.State().Reason, "lost: no answer before the end of the lease")
	same, err := url.Parse("http://" + address)
	require.NoError(t, err)
	config.ListenClientUrls = []url.URL{*same}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: peer}}
	_, _ = start(t, config)
	var second lease.Holding
	patience.Eventually(t, func() bool {
		second, err = k.Acquire(t.Context())
		return err == nil
	}, "the lease comes back")
	require.GreaterOrEqual(t, second.Token, first.Token)
	require.NoError(t, k.Close())
}

// The lease of etcd is revoked, and another takes the key: the next renewal is refused.
func TestALeaseThatOthersTakeAwayIsNoticed(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	one, two, operator := leaseStore(t, "http://"+address), leaseStore(t, "http://"+address), client(t, address)
	first, err := one.Take(t.Context(), leaseClaim("a"))
	require.NoError(t, err)
	require.True(t, first.Granted)
	held, err := operator.Leases(t.Context())
	require.NoError(t, err)
	require.Len(t, held.Leases, 1)
	_, err = operator.Revoke(t.Context(), held.Leases[0].ID)
	require.NoError(t, err)
	second, err := two.Take(t.Context(), leaseClaim("b"))
	require.NoError(t, err)
	require.Greater(t, second.Token, first.Token)
	again, err := one.Take(t.Context(), leaseClaim("a"))
	require.NoError(t, err)
	require.Equal(t, lease.Answer{Owner: "b"}, again)
	_, err = operator.Delete(t.Context(), leaseKey)
	require.NoError(t, err)
	third, err := two.Take(t.Context(), leaseClaim("b"))
	require.NoError(t, err)
	require.Greater(t, third.Token, second.Token, "another holding, for somebody may have had it between")
}

func TestKeysThatAreNoLeases(t *testing.T) {
	t.Parallel()
	_, address := start(t, settings(t))
	store, operator := leaseStore(t, "http://"+address), client(t, address)
	_, err := operator.Put(t.Context(), leaseKey, "z")
	require.NoError(t, err)
	_, err = store.Take(t.Context(), leaseClaim("a"))
	require.ErrorIs(t, err, leases.ErrMalformed)
	require.ErrorContains(t, err, "would stay for ever: delete it")
	granted, err := operator.Grant(t.Context(), 60)
	require.NoError(t, err)
	_, err = operator.Put(t.Context(), leaseKey, "", clientv3.WithLease(granted.ID))
	require.NoError(t, err)
	_, err = store.Take(t.Context(), leaseClaim("a"))
	require.ErrorIs(t, err, leases.ErrMalformed)
}
