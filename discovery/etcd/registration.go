// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

// A registration has a goroutine that holds one lease after the other: it asks for a
// lease, puts the entry under the lease, and keeps the lease alive until it is lost, or Close
// revokes it. After a failure the goroutine begins again, after a pause that grows.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/discovery"
)

// errStarting is the state of a registration before its first attempt has ended.
var errStarting = errors.New("not registered yet")

// Registration keeps an entry in etcd until Close. It is safe for concurrent use.
type Registration struct {
	owner  *Discovery
	entry  Entry
	cancel context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex // guards what follows
	err     error      // why the entry may not be there; nil while it is
	changed chan struct{}
	revoked error // why the lease could not be revoked by Close; nil if it was
}

// Register puts an entry for this node into etcd and keeps it there: while etcd cannot be
// reached the registration tries again, and after the loss of its lease it registers the node
// anew. Register returns at once; [Registration.Wait] waits until the entry is there. The
// entry is withdrawn by Close of the registration or of d, and vanishes [Config.TTL] after the
// program has died. The error is about an entry that is not valid, more than 16 registrations,
// or wraps [discovery.ErrClosed].
func (d *Discovery) Register(entry Entry) (*Registration, error) {
	if err := entry.Validate(); err != nil {
		return nil, fmt.Errorf("etcd: register: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("etcd: register: %w", discovery.ErrClosed)
	}
	if len(d.registrations) == maxRegistrations {
		return nil, fmt.Errorf("etcd: register: there are %d registrations already", maxRegistrations)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Registration{
		owner: d, entry: entry, cancel: cancel, done: make(chan struct{}), err: errStarting, changed: make(chan struct{}),
	}
	d.registrations[r] = true
	// The registration owns this goroutine: Close ends it by the cancel, and waits.
	go r.run(ctx)
	return r, nil
}

var _ discovery.Announcer = (*Discovery)(nil)

// Announce implements [discovery.Announcer]: it registers the node, see [Discovery.Register].
func (d *Discovery) Announce(service string, self discovery.Target) error {
	_, err := d.Register(Entry{Service: service, Host: self.Host, Port: self.Port})
	return err
}

// Err returns nil while the entry is in etcd, and otherwise why it may not be.
func (r *Registration) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Wait waits until the entry is in etcd. When ctx ends before, the error wraps the error of
// ctx and says why the last attempt failed.
func (r *Registration) Wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		err, changed := r.err, r.changed
		r.mu.Unlock()
		if err == nil || errors.Is(err, discovery.ErrClosed) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// Close withdraws the entry and waits for the goroutine. It may be called more than
// once. If the entry could not be withdrawn, the error says so; the entry vanishes with its
// lease.
func (r *Registration) Close() error {
	r.cancel()
	<-r.done
	r.owner.mu.Lock()
	delete(r.owner.registrations, r)
	r.owner.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.revoked
}

func (r *Registration) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	close(r.changed)
	r.changed = make(chan struct{})
}

// run holds one lease after the other until ctx ends. After a lease that lasted longer than
// the longest pause, the pauses are short again.
func (r *Registration) run(ctx context.Context) {
	defer close(r.done)
	defer func() { r.set(fmt.Errorf("etcd: register: %w", discovery.ErrClosed)) }()
	var pause time.Duration
	limits := r.owner.limits
	for {
		began := time.Now()
		err := r.hold(ctx)
		if ctx.Err() != nil {
			return
		}
		prefix := servicePrefix(r.owner.config.Prefix, r.entry.Service)
		r.set(fmt.Errorf("etcd: register: %w", r.owner.explain(ctx, err, "write", prefix)))
		if pause == 0 || time.Since(began) > limits.PauseMax {
			pause = limits.PauseMin
		} else {
			pause = min(2*pause, limits.PauseMax)
		}
		if wait(ctx, pause+rand.N(pause/5+1)) != nil {
			return
		}
	}
}

// hold registers under one lease and keeps it alive. It returns when the lease is or may
// be lost, or ctx ends.
func (r *Registration) hold(ctx context.Context) error {
	// The client outlives ctx, at whose end the lease is revoked.
	client, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // The lease is revoked, or lost.
	config := r.owner.config
	asked := time.Now()
	granted, cancel := context.WithTimeout(ctx, config.RequestTimeout)
	lease, err := client.Grant(granted, int64(config.TTL/time.Second))
	cancel()
	if err != nil {
		return err
	}
	defer r.revokeAtTheEnd(ctx, client, lease.ID)
	if err := r.put(ctx, client, lease.ID); err != nil {
		return err
	}
	r.set(nil)
	alive := asked // The lease cannot have begun before.
	for {
		if err := wait(ctx, config.TTL/6); err != nil {
			return err
		}
		asked := time.Now()
		err := r.keep(ctx, client, lease.ID)
		switch {
		case err == nil:
			alive = asked
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			return fmt.Errorf("%w: etcd was away for longer than %v, or this program stood still", errLost, config.TTL)
		case time.Since(alive) > config.TTL:
			return err
		}
	}
}

// connect returns a client that outlives ctx, so that it can still revoke a lease. While the
// client connects, the end of ctx ends that.
func (r *Registration) connect(ctx context.Context) (*clientv3.Client, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	client, err := r.owner.config.Connect(own, maxAnswerBytes)
	if !stop() || err != nil {
		cancel()
	}
	return client, err
}

// put writes the entry under a lease. An entry that an earlier process of the node has left at
// the key is replaced.
func (r *Registration) put(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) error {
	value, err := r.entry.value()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.owner.config.RequestTimeout)
	defer cancel()
	_, err = client.Put(ctx, r.entry.key(r.owner.config.Prefix), value, clientv3.WithLease(lease))
	return err
}

// keep renews the lease, and puts the entry again if it was deleted. An entry under another
// lease is left alone: it has the same key, and so the same address.
func (r *Registration) keep(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) error {
	limited, cancel := context.WithTimeout(ctx, r.owner.config.RequestTimeout)
	defer cancel()
	if _, err := client.KeepAliveOnce(limited, lease); err != nil {
		return err
	}
	there, err := client.Get(limited, r.entry.key(r.owner.config.Prefix), clientv3.WithCountOnly())
	if err != nil || there.Count > 0 {
		return err
	}
	return r.put(ctx, client, lease)
}

// revokeAtTheEnd withdraws the entry with its lease if the registration is closed.
func (r *Registration) revokeAtTheEnd(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) {
	if ctx.Err() == nil {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.owner.config.RequestTimeout)
	defer cancel()
	if _, err := client.Revoke(limited, lease); err != nil && !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.revoked = fmt.Errorf("etcd: the entry stays for up to %v: %w", r.owner.config.TTL, err)
	}
}
