// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

// From top to bottom: Take, which reads the key and then renews the lease of etcd under it or
// creates both; Give, which deletes the key.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/discovery/etcd/etcdapi"
	"github.com/quorate/quorate/downing/lease"
)

var (
	// ErrForbidden is wrapped by an error if etcd refuses the user, or the request of the user.
	ErrForbidden = etcdapi.ErrForbidden
	// ErrMalformed is wrapped by the error of Take if the key of the lease is not one that this
	// store has written.
	ErrMalformed = errors.New("the key is not that of a lease")

	errLost = errors.New("the lease changed while it was taken")
)

// maxOwnerBytes is more than any owner of a keeper has.
const maxOwnerBytes = 1 << 10

// Kind is the name of this store in a configuration.
const Kind = "etcd"

// Store keeps leases in etcd. Use [New]. It is safe for concurrent use.
type Store struct {
	config Config
}

var _ lease.Store = (*Store)(nil)

// New returns the store of a configuration, which it validates. It connects to nothing.
func New(config Config) (*Store, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	return &Store{config: config}, nil
}

// Take implements [lease.Store]. The error wraps [ErrForbidden] if etcd refuses the user.
func (s *Store) Take(ctx context.Context, c lease.Claim) (lease.Answer, error) {
	var answer lease.Answer
	err := s.with(ctx, c.Name, func(ctx context.Context, client *clientv3.Client) (err error) {
		answer, err = s.take(ctx, client, c)
		return err
	})
	return answer, err
}

// Give implements [lease.Store].
func (s *Store) Give(ctx context.Context, c lease.Claim) error {
	return s.with(ctx, c.Name, func(ctx context.Context, client *clientv3.Client) error {
		key := s.config.Prefix + c.Name
		_, err := client.Txn(ctx).If(clientv3.Compare(clientv3.Value(key), "=", c.Owner)).Then(clientv3.OpDelete(key)).Commit()
		return err
	})
}

// with connects for one call, and explains what went wrong in it.
func (s *Store) with(ctx context.Context, name string, do func(context.Context, *clientv3.Client) error) error {
	if err := lease.CheckName("name", name); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, s.config.RequestTimeout)
	defer cancel()
	client, err := s.config.Connect(limited, maxAnswerBytes)
	if err == nil {
		err = do(limited, client)
		_ = client.Close() // The answer has been read already.
	}
	if err != nil {
		key := s.config.Prefix + name
		return fmt.Errorf("etcd: %w", s.config.Explain(ctx, err, fmt.Sprintf("read and write %q", key), "readwrite "+key))
	}
	return nil
}

func (s *Store) take(ctx context.Context, client *clientv3.Client, c lease.Claim) (lease.Answer, error) {
	key := s.config.Prefix + c.Name
	read, err := client.Get(ctx, key)
	if err != nil {
		return lease.Answer{}, err
	}
	if len(read.Kvs) == 0 {
		return s.create(ctx, client, key, c)
	}
	owner, id := string(read.Kvs[0].Value), clientv3.LeaseID(read.Kvs[0].Lease)
	switch {
	case owner == "" || len(owner) > maxOwnerBytes:
		return lease.Answer{}, fmt.Errorf("%w: its value has %d bytes", ErrMalformed, len(owner))
	case id == clientv3.NoLease:
		return lease.Answer{}, fmt.Errorf("%w: it has no lease of etcd, and would stay for ever: delete it", ErrMalformed)
	case owner != c.Owner:
		return lease.Answer{Owner: owner}, nil
	}
	return s.renew(ctx, client, key, id, c)
}

// create gets a lease of etcd and puts the key under it, unless somebody else was faster. The
// time of the lease begins with its grant, which is before the key is there.
func (s *Store) create(ctx context.Context, client *clientv3.Client, key string, c lease.Claim) (lease.Answer, error) {
	given, err := client.Grant(ctx, int64(math.Ceil(c.TTL.Seconds())))
	if err != nil {
		return lease.Answer{}, err
	}
	put, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, c.Owner, clientv3.WithLease(given.ID))).Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return lease.Answer{}, err // The lease of etcd ends by itself, and the key with it.
	}
	if put.Succeeded {
		return granted(c, put.Header.Revision, given.TTL), nil
	}
	_, err = client.Revoke(ctx, given.ID)
	return lease.Answer{}, errors.Join(errLost, err)
}

// renew keeps the lease of etcd alive, and then reads that the key is still the owner's under
// that lease.
func (s *Store) renew(ctx context.Context, client *clientv3.Client, key string, id clientv3.LeaseID, c lease.Claim) (lease.Answer, error) {
	kept, err := client.KeepAliveOnce(ctx, id)
	if err != nil {
		return lease.Answer{}, err
	}
	read, err := client.Get(ctx, key)
	if err != nil {
		return lease.Answer{}, err
	}
	if len(read.Kvs) == 0 || string(read.Kvs[0].Value) != c.Owner || clientv3.LeaseID(read.Kvs[0].Lease) != id {
		return lease.Answer{}, errLost
	}
	return granted(c, read.Kvs[0].CreateRevision, kept.TTL), nil
}

func granted(c lease.Claim, revision, seconds int64) lease.Answer {
	return lease.Answer{
		Granted: true, Owner: c.Owner, Token: uint64(max(revision, 0)), // Revisions begin at 1.
		TTL: min(time.Duration(seconds)*time.Second, c.TTL),
	}
}

// Close does nothing: no connection outlives a call.
func (s *Store) Close() error { return nil }
