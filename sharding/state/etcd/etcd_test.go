// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

// The tests here need no etcd. Those with a real one are in internal/etcdtest, a module of its own, so
// that no user of this module needs the modules of the server.

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/store"
)

func TestPrefixesAreChecked(t *testing.T) {
	for _, p := range []string{"quorate/", "/quorate", "x"} {
		_, err := New(nil, Options{Prefix: p})
		require.ErrorIs(t, err, ErrPrefix)
	}
}

// Names that have slashes in them, or look escaped, have keys of their own, and no key is the beginning
// of another's events.
func TestKeysAreTheirOwn(t *testing.T) {
	s, err := New(nil, Options{})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, k := range []store.Key{{Kind: "a", ID: "b/c"}, {Kind: "a/b", ID: "c"}, {Kind: "a", ID: "b%2Fc"}, {Kind: "a", ID: "b"}, {Kind: "a", ID: "b/"}} {
		events := s.keysOf(k).events
		for other := range seen {
			require.NotContains(t, events, other)
			require.NotContains(t, other, events)
		}
		seen[events] = true
	}
	require.Equal(t, "/quorate/states/events/a/b%2Fc/0000000000000012", s.keysOf(store.Key{Kind: "a", ID: "b/c"}).eventsAt(18))
}

// answer is that of a range with one key, or with none.
func answer(values ...string) *etcdserverpb.ResponseOp {
	r := &etcdserverpb.RangeResponse{}
	for _, v := range values {
		r.Kvs = append(r.Kvs, &mvccpb.KeyValue{Key: []byte("key"), Value: []byte(v)})
	}
	return &etcdserverpb.ResponseOp{Response: &etcdserverpb.ResponseOp_ResponseRange{ResponseRange: r}}
}

func TestValuesThatAreNoRecord(t *testing.T) {
	owner := ownerBytes(store.Owner{Epoch: epoch.Epoch{N: 1}, Instance: 1})
	one, none := versionBytes(1), answer()
	for name, answers := range map[string][]*etcdserverpb.ResponseOp{
		"no version":     {answer(owner), none, none, none},
		"no owner":       {none, answer(one), none, none},
		"short owner":    {answer(owner[1:]), answer(one), none, none},
		"owner unborn":   {answer("\xff" + owner[1:]), answer(one), none, none},
		"long version":   {answer(owner), answer(one + "x"), none, none},
		"short snapshot": {answer(owner), answer(one), answer("abc"), none},
		"short event":    {answer(owner), answer(one), none, answer("abc")},
		"event cut off":  {answer(owner), answer(one), none, answer(eventsBytes([]store.Value{{Form: 1, Bytes: []byte("xyz")}})[:10])},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := keys{}.record(answers)
			require.ErrorIs(t, err, ErrMalformed)
		})
	}
	r, err := keys{}.record([]*etcdserverpb.ResponseOp{none, none, none, none})
	require.NoError(t, err)
	require.Equal(t, store.Record{}, r)
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(eventsBytes([]store.Value{{Form: 1, Bytes: []byte("x")}, {Form: 2}})))
	f.Fuzz(func(t *testing.T, b []byte) {
		if events, ok := appendEvents(nil, b); ok {
			require.Equal(t, string(b), eventsBytes(events))
		}
	})
}
