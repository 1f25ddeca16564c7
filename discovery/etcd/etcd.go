// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package etcd

// Lookups: a conversation connects, reads all entries of a service, and then asks in an
// interval whether there is anything new. Registrations are in registration.go; a
// Discovery keeps a list of them only to close them.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/follow"

	"github.com/quorate/quorate/config/field"
)

// Method is the name by which a configuration selects this method, by convention.
const Method = "etcd"

// maxRegistrations bounds how many registrations one Discovery holds at a time.
const maxRegistrations = 16

// Discovery finds the nodes that are registered in etcd, and registers this node. Use
// [New]; Close it in the end. It is safe for concurrent use.
type Discovery struct {
	config Config
	limits follow.Limits
	set    *follow.Set[string, serviceEntries]

	mu            sync.Mutex // guards what follows
	registrations map[*Registration]bool
	closed        bool
}

var _ discovery.Discovery = (*Discovery)(nil)

// New returns the method for a configuration, which it validates. It connects to
// nothing before the first lookup or registration.
func New(config Config) (*Discovery, error) {
	return newDiscovery(config, follow.DefaultLimits())
}

func newDiscovery(config Config, limits follow.Limits) (*Discovery, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	d := &Discovery{config: config, limits: limits, registrations: make(map[*Registration]bool)}
	d.set = follow.New(limits, d.follow)
	return d, nil
}

// Lookup returns the address of each node that is registered for a service. If the port of
// the query is a number, that is the port of all contact points; if it is a name, the port
// that the node registered under that name. In all other cases the port of the entry is taken.
// The protocol has no meaning.
//
// The first lookup of a service reads the entries and waits for them. Later lookups are
// answered from what was read last, which is as old as [Config.Interval] at most and, while a
// request hangs, as [Config.RequestTimeout]. The error wraps [ErrForbidden] if etcd
// refuses the user.
func (d *Discovery) Lookup(ctx context.Context, q discovery.Query) (discovery.Targets, error) {
	if !isName(q.Service) {
		return discovery.Targets{}, fmt.Errorf("etcd: %q is no name of a service", field.Clip(q.Service))
	}
	got, err := d.set.Latest(ctx, q.Service)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("etcd: %w", err)
	}
	list := make([]discovery.Target, len(got.entries))
	for i, e := range got.entries {
		list[i] = e.target(q.Port)
	}
	list, err = discovery.Distinct(list)
	if err != nil {
		return discovery.Targets{}, fmt.Errorf("etcd: %w", err)
	}
	reason := fmt.Sprintf("etcd: %d keys below %q", len(got.entries)+got.bad, servicePrefix(d.config.Prefix, q.Service))
	if got.bad > 0 {
		reason += fmt.Sprintf(", %d of them no entries of nodes", got.bad)
	}
	return discovery.Targets{List: list, Reason: reason}, nil
}

// serviceEntries holds what was read of a service.
type serviceEntries struct {
	entries []Entry
	bad     int // keys whose value is no entry
	mark    mark
}

// mark tells one state of the keys of a service from every other: their number, and the
// revision of the newest key. If that revision is the same, no key was written, and if the
// number is the same too, none was deleted.
type mark struct {
	count    int64
	revision int64
}

// follow is a [follow.Source]: it reads and tells the entries, and looks in an interval for
// changes. A watch would tell of changes sooner, but the client renews a watch by itself and
// is silent while etcd cannot be reached, and a lookup has to be an error then.
func (d *Discovery) follow(ctx context.Context, service string, tell func(serviceEntries)) error {
	prefix := servicePrefix(d.config.Prefix, service)
	err := d.converse(ctx, prefix, tell)
	return d.explain(ctx, err, "read", prefix)
}

func (d *Discovery) converse(ctx context.Context, prefix string, tell func(serviceEntries)) (err error) {
	client, err := d.config.Connect(ctx, maxAnswerBytes)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // The entries have been read already.
	var last mark
	for first := true; ; first = false {
		now, err := d.newest(ctx, client, prefix)
		if err != nil {
			return err
		}
		if first || now != last {
			got, err := d.read(ctx, client, prefix)
			if err != nil {
				return err
			}
			tell(got)
			last = got.mark
		}
		if err := wait(ctx, d.config.Interval); err != nil {
			return err
		}
	}
}

// newest returns the mark of the keys of a service.
func (d *Discovery) newest(ctx context.Context, client *clientv3.Client, prefix string) (mark, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.RequestTimeout)
	defer cancel()
	answer, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(1),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortDescend))
	if err != nil {
		return mark{}, err
	}
	m := mark{count: answer.Count}
	for _, pair := range answer.Kvs {
		m.revision = max(m.revision, pair.ModRevision)
	}
	return m, nil
}

// read returns all entries of a service.
func (d *Discovery) read(ctx context.Context, client *clientv3.Client, prefix string) (serviceEntries, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.RequestTimeout)
	defer cancel()
	answer, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(discovery.MaxTargets+1))
	if err != nil {
		return serviceEntries{}, err
	}
	if len(answer.Kvs) > discovery.MaxTargets {
		return serviceEntries{}, errTooMany
	}
	got := serviceEntries{entries: make([]Entry, 0, len(answer.Kvs)), mark: mark{count: answer.Count}}
	for _, pair := range answer.Kvs {
		got.mark.revision = max(got.mark.revision, pair.ModRevision)
		if e, err := decode(pair.Value); err != nil {
			got.bad++
		} else {
			got.entries = append(got.entries, e)
		}
	}
	return got, nil
}

// wait waits for a time, and returns the error of ctx if ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Close withdraws all registrations, ends all conversations and waits for their
// goroutines. It may be called more than once. The error tells of each registration that
// could not be withdrawn, and vanishes with its lease.
func (d *Discovery) Close() error {
	d.mu.Lock()
	d.closed = true
	var open []*Registration
	for r := range d.registrations {
		open = append(open, r)
	}
	d.mu.Unlock()
	faults := make([]error, len(open))
	for i, r := range open {
		faults[i] = r.Close()
	}
	return errors.Join(append(faults, d.set.Close())...)
}
