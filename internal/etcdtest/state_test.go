// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcdtest_test

// The store of states against a real etcd: the suite, with an etcd that is restarted, and keys that
// others write or delete.

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/sharding/epoch"
	states "github.com/quorate/quorate/sharding/state/etcd"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

func stateStore(t testing.TB, address string) *states.Store {
	t.Helper()
	s, err := states.New(client(t, address), states.Options{})
	require.NoError(t, err)
	return s
}

func TestTheStoreOfStatesKeepsTheContract(t *testing.T) {
	statetest.Test(t, statetest.Place{New: func(t testing.TB) statetest.Server {
		config := settings(t)
		server, address := start(t, config)
		return statetest.Server{
			Store: stateStore(t, address),
			Restart: func(t testing.TB) store.Store {
				server.Close()
				_, address := start(t, config)
				return stateStore(t, address)
			},
		}
	}})
}

var stateOwner = store.Owner{Epoch: epoch.Epoch{Born: 1, N: 1}, Instance: 1}

// A call with more than one transaction takes, in number or in bytes, is as good as any.
func TestACallOfManyStates(t *testing.T) {
	_, address := start(t, settings(t))
	s := stateStore(t, address)
	var claims []store.Claim
	var writes []store.Write
	for i := range 300 {
		k := store.Key{Kind: "account", ID: fmt.Sprint(i)}
		claims = append(claims, store.Claim{Key: k, Owner: stateOwner})
		writes = append(writes, store.Write{Key: k, Owner: stateOwner, Version: 1, Snapshot: store.Value{Form: 1, Bytes: bytes.Repeat([]byte(k.ID), 5000)}})
	}
	_, err := s.Load(t.Context(), claims)
	require.NoError(t, err)
	heads, err := s.Save(t.Context(), writes)
	require.NoError(t, err)
	for i, w := range writes {
		require.Equal(t, w.After(), heads[i])
	}
	var events []store.Value
	for i := range 1000 { // More than a transaction has operations.
		events = append(events, store.Value{Form: 2, Bytes: fmt.Append(nil, i)})
	}
	for n := range uint64(3) {
		_, err = s.Save(t.Context(), []store.Write{{Key: claims[7].Key, Owner: stateOwner, Expected: 1 + 1000*n, Version: 1001 + 1000*n, Events: events}})
		require.NoError(t, err)
	}
	records, err := s.Load(t.Context(), claims)
	require.NoError(t, err)
	require.Equal(t, store.Head{Owner: stateOwner, Version: 3001}, records[7].Head)
	require.Equal(t, append(append(events, events...), events...), records[7].Events)
	require.Equal(t, writes[299].Snapshot, records[299].Snapshot)
}

// What others have written is an error that names the key, and a record whose keys are deleted begins
// anew: then nobody is locked out, as nobody knows of it.
func TestStatesThatOthersTouch(t *testing.T) {
	_, address := start(t, settings(t))
	s, c := stateStore(t, address), client(t, address)
	claim := []store.Claim{{Key: store.Key{Kind: "account", ID: "a/b"}, Owner: stateOwner}}
	_, err := s.Load(t.Context(), claim)
	require.NoError(t, err)
	_, err = c.Put(t.Context(), "/quorate/states/versions/account/a%2Fb", "x")
	require.NoError(t, err)
	_, err = s.Load(t.Context(), claim)
	require.ErrorIs(t, err, states.ErrMalformed)
	require.ErrorContains(t, err, "/quorate/states/versions/account/a%2Fb")
	_, err = c.Delete(t.Context(), "/quorate/states/", clientv3.WithPrefix())
	require.NoError(t, err)
	records, err := s.Load(t.Context(), claim)
	require.NoError(t, err)
	require.Equal(t, store.Head{Owner: stateOwner}, records[0].Head)
	large := store.Write{Key: claim[0].Key, Owner: stateOwner, Version: 1, Snapshot: store.Value{Form: 1, Bytes: []byte(strings.Repeat("x", 1900<<10))}}
	_, err = s.Save(t.Context(), []store.Write{large})
	require.ErrorContains(t, err, "too large")
}
