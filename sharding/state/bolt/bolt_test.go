// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/statetest"
	"github.com/quorate/quorate/sharding/state/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store that ends with the test.
func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestTheStoreKeepsTheContract(t *testing.T) {
	statetest.Test(t, statetest.Place{New: func(t testing.TB) statetest.Server {
		path := filepath.Join(t.TempDir(), "states")
		s := open(t, path)
		return statetest.Server{Store: s, Restart: func(t testing.TB) store.Store {
			require.NoError(t, s.Close())
			return open(t, path)
		}}
	}})
}

var (
	account = store.Key{Kind: "account", ID: "a"}
	other   = store.Key{Kind: "account", ID: "b"}
	owner   = store.Owner{Epoch: epoch.Epoch{Born: 1, N: 1}, Instance: 1}
)

// filled returns a store with a snapshot and two events of an account, and the other one.
func filled(t *testing.T) *Store {
	s := open(t, filepath.Join(t.TempDir(), "states"))
	_, err := s.Load(t.Context(), []store.Claim{{Key: account, Owner: owner}, {Key: other, Owner: owner}})
	require.NoError(t, err)
	one := store.Value{Form: 1, Bytes: []byte("one")}
	_, err = s.Save(t.Context(), []store.Write{{Key: account, Owner: owner, Version: 1, Snapshot: one}, {Key: other, Owner: owner, Version: 1, Snapshot: one}})
	require.NoError(t, err)
	_, err = s.Save(t.Context(), []store.Write{{Key: account, Owner: owner, Expected: 1, Version: 3, Events: []store.Value{one, one}}})
	require.NoError(t, err)
	return s
}

// Every byte of a record that changes is noticed, and harms no other record.
func TestDamageIsNoticed(t *testing.T) {
	s := filled(t)
	claims := []store.Claim{{Key: account, Owner: owner}}
	for bucket, key := range map[string][]byte{records: keyOf(account), events: eventKey(keyOf(account), 3)} {
		var whole []byte
		require.NoError(t, s.db.View(func(tx *bbolt.Tx) error {
			whole = bytes.Clone(tx.Bucket([]byte(bucket)).Get(key))
			return nil
		}))
		put := func(value []byte) {
			require.NoError(t, s.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put(key, value) }))
		}
		for i := range whole {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 0x40
			put(damaged)
			_, err := s.Load(t.Context(), claims)
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, `account "a"`)
			put(whole[:i])
			_, err = s.Load(t.Context(), claims)
			require.ErrorIs(t, err, ErrDamaged)
		}
		put(whole)
		_, err := s.Load(t.Context(), claims)
		require.NoError(t, err)
		_, err = s.Load(t.Context(), []store.Claim{{Key: other, Owner: owner}})
		require.NoError(t, err)
	}
}

// A snapshot takes the place of the events: their memory is free again.
func TestASnapshotDeletesItsEvents(t *testing.T) {
	s := filled(t)
	_, err := s.Save(t.Context(), []store.Write{{Key: account, Owner: owner, Expected: 3, Version: 4, Snapshot: store.Value{Form: 1}}})
	require.NoError(t, err)
	require.NoError(t, s.db.View(func(tx *bbolt.Tx) error {
		require.Zero(t, tx.Bucket([]byte(events)).Stats().KeyN)
		return nil
	}))
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(filepath.Join(dir, "missing", "states"), Options{})
	require.ErrorContains(t, err, "missing")

	path := filepath.Join(dir, "later")
	s, err := Open(path, Options{})
	require.NoError(t, err)
	require.NoError(t, s.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte(about)).Put([]byte(formKey), []byte("quorate states 2"))
	}))
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, s.Close())
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, ErrFormat)
	require.ErrorContains(t, err, "quorate states 2")

	path = filepath.Join(dir, "foreign")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }))
	require.NoError(t, db.Close())
	_, err = Open(path, Options{})
	require.ErrorIs(t, err, ErrFormat)
}

func TestKeysThatAreTooLong(t *testing.T) {
	s := filled(t)
	_, err := s.Load(t.Context(), []store.Claim{{Key: store.Key{Kind: "k", ID: string(make([]byte, maxID+1))}, Owner: owner}})
	require.ErrorContains(t, err, "an id 1024")
}

func FuzzDecodeRow(f *testing.F) {
	key := keyOf(account)
	f.Add(encodeRow(key, row{Head: store.Head{Owner: owner, Version: 3}, base: 1, snapshot: store.Value{Form: 1, Bytes: []byte("x")}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, value []byte) {
		if r, ok := decodeRow(key, value); ok {
			require.Equal(t, value, encodeRow(key, r), "one encoding for one record")
		}
	})
}
