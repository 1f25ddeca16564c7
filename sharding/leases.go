// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease"
)

// A lease for each shard that this node hosts: how a program asks for them. They are held by internal/leases.

// WithLeases has the entities of each shard run only while this node holds a lease of the shard, in a store outside of
// the cluster, for those who trust the store more than the clocks of nodes. It is off without this option; all nodes
// that host should have it, with the same store and times. A shard whose lease is not to be had waits, with its
// messages; one whose lease is lost gives its entities up, with [StopReplaced], and is given a home anew. A lease is
// given back when its shard has stopped; after the death of a node its shards wait until the time of the lease is over.
// The store is asked for each shard once in [lease.Config.RenewInterval]: with 1,000 shards and the default some 330
// times a second.
//
// The name of a lease has the cluster, the kind and the number of the shard; its owner is the node.
func WithLeases(store lease.Store, cfg lease.Config) Option {
	return func(s *System) { s.leasing = leasing{store, cfg} }
}

// LeasesConfig says which store gives the leases of shards, and how they are held.
type LeasesConfig struct {
	// Store is the kind of the store: "file" for the nodes of one machine, "etcd" or "kubernetes", or the name of another
	// one that the program adds by the option cluster.WithLeases. The settings of the store are the section "lease-NAME"
	// of the file. Empty: shards have no leases, but for those of [WithLeases].
	Store string `koanf:"store" known:"file|etcd|kubernetes"`

	// Config says how long a lease lasts, and when it is renewed.
	lease.Config `koanf:",squash"`
}

// leasing is what [WithLeases] gives. The store may be nil: there are no leases.
type leasing struct {
	store lease.Store
	times lease.Config
}

// validate reports what is wrong with the settings. Named is the store that the configuration names.
func (l leasing) validate(named string) error {
	if l.store == nil && named != "" {
		return field.Errorf("sharding.leases.store", "%q was not opened: cluster.Start does, or give a store by WithLeases", named)
	}
	if l.store == nil {
		return nil
	}
	if err := l.times.Validate(); err != nil {
		return fmt.Errorf("sharding: leases: %w", err)
	}
	return nil
}

// LeaseToken returns the token of the lease under which the shard of the entity is hosted, higher for each holder;
// false without [WithLeases], and when the lease is just lost. A storage that refuses lower tokens than it has seen
// cannot be written by an earlier holder.
func (c *Context) LeaseToken() (uint64, bool) {
	return c.program.system.leases.Token(c.program.kind, c.job.Slot().Shard(), c.Epoch())
}
