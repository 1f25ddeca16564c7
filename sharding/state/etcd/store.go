// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/sharding/state/store"
)

// The two operations as transactions: each claim and each write of a call is a transaction within one,
// followed by what it reads. The keys and the values are in record.go.

var (
	// ErrMalformed says that a key has a value that is none of a record.
	ErrMalformed = errors.New("the value is none of a record")
	// ErrPrefix says that [Options.Prefix] is not of the form "/quorate/states/".
	ErrPrefix = errors.New("a prefix begins and ends with a slash")
)

// Options are what a program may choose.
type Options struct {
	// Prefix begins all keys, and begins and ends with a slash. Clusters that share an etcd need
	// different ones. Empty: "/quorate/states/".
	Prefix string
}

const (
	prefix = "/quorate/states/"

	// most bounds the operations of the outer transaction: etcd takes 128 by default, those of one inner
	// transaction included.
	most = 100
	// mostBytes is after how many bytes of writes another transaction begins.
	mostBytes = 1 << 20
)

// Store is the states below one prefix.
type Store struct {
	client *clientv3.Client
	prefix string
}

var _ store.Store = (*Store)(nil)

// New returns a store over a client. It asks nothing of etcd.
func New(client *clientv3.Client, o Options) (*Store, error) {
	if o.Prefix == "" {
		o.Prefix = prefix
	}
	if !strings.HasPrefix(o.Prefix, "/") || !strings.HasSuffix(o.Prefix, "/") {
		return nil, fmt.Errorf("etcd: %w: %.80q", ErrPrefix, o.Prefix)
	}
	return &Store{client, o.Prefix}, nil
}

// Load implements [store.Store].
func (s *Store) Load(ctx context.Context, claims []store.Claim) ([]store.Record, error) {
	records := make([]store.Record, 0, len(claims))
	for len(claims) > 0 {
		n := min(len(claims), most/(1+readOps))
		var ops []clientv3.Op
		for _, c := range claims[:n] {
			k := s.keysOf(c.Key)
			ops = append(append(ops, claim(k, c.Owner)), k.read()...)
		}
		answers, err := s.commit(ctx, ops)
		if err != nil {
			return nil, err
		}
		for i, c := range claims[:n] {
			r, err := s.keysOf(c.Key).record(answers[i*(1+readOps)+1:])
			if err != nil {
				return nil, fmt.Errorf("etcd: %w", err)
			}
			records = append(records, r)
		}
		claims = claims[n:]
	}
	return records, nil
}

// Save implements [store.Store].
func (s *Store) Save(ctx context.Context, writes []store.Write) ([]store.Head, error) {
	heads := make([]store.Head, 0, len(writes))
	for len(writes) > 0 {
		var ops []clientv3.Op
		n, size := 0, 0
		for n < len(writes) && n < most/(1+headOps) && size < mostBytes {
			k := s.keysOf(writes[n].Key)
			op, bytes := write(k, writes[n])
			if n > 0 && size+bytes > mostBytes {
				break
			}
			ops = append(append(ops, op), k.readHead()...)
			n, size = n+1, size+bytes
		}
		answers, err := s.commit(ctx, ops)
		if err != nil {
			return nil, err
		}
		for i, w := range writes[:n] {
			head, err := s.keysOf(w.Key).head(answers[i*(1+headOps)+1:])
			if err != nil {
				return nil, fmt.Errorf("etcd: %w", err)
			}
			heads = append(heads, head)
		}
		writes = writes[n:]
	}
	return heads, nil
}

// commit makes a transaction of operations, each of which sees what those before it have done.
func (s *Store) commit(ctx context.Context, ops []clientv3.Op) ([]*etcdserverpb.ResponseOp, error) {
	answer, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return answer.Responses, nil
}

// claim makes a record that is not there, and raises the owner of one that has a lower one.
func claim(k keys, o store.Owner) clientv3.Op {
	own := ownerBytes(o)
	raise := clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value(k.owner), "<", own)}, []clientv3.Op{clientv3.OpPut(k.owner, own)}, nil)
	return clientv3.OpTxn(
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(k.owner), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(k.owner, own), clientv3.OpPut(k.version, versionBytes(0))},
		[]clientv3.Op{raise})
}

// write changes a record that has the expected head, and returns how many bytes it sends.
func write(k keys, w store.Write) (op clientv3.Op, size int) {
	then := []clientv3.Op{clientv3.OpPut(k.version, versionBytes(w.Version))}
	switch {
	case len(w.Events) > 0:
		b := eventsBytes(w.Events)
		size = len(b)
		then = append(then, clientv3.OpPut(k.eventsAt(w.Version), b))
	case w.Snapshot.Form > 0:
		b := valueBytes(w.Snapshot)
		size = len(b)
		then = append(then, clientv3.OpPut(k.snapshot, b), k.deleteEvents())
	default:
		then = append(then, clientv3.OpDelete(k.snapshot), k.deleteEvents())
	}
	return clientv3.OpTxn([]clientv3.Cmp{
		clientv3.Compare(clientv3.Value(k.owner), "=", ownerBytes(w.Owner)),
		clientv3.Compare(clientv3.Value(k.version), "=", versionBytes(w.Expected)),
	}, then, nil), size
}
