// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/file"
	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
)

// The strategy lease-majority and the leases of shards: a program links the stores that its files may name
// ([WithLeases]). The one that downing.lease-majority.store names is opened with its section
// ([strategies.openLease]), given to the membership with the strategy, and closed after it; that of
// sharding.leases.store ([builder.openShardLeases]) is closed when sharding has ended.

// WithLeases adds a store of leases, such as one of the modules below downing/lease, for the downing strategy
// lease-majority and for shards. Downing.lease-majority.store and sharding.leases.store select the store by its name.
// Each opens it for itself. The settings of the store are the section "lease-NAME" of the files, as [WithDiscovery] has
// it. A store that is an [io.Closer] is closed when it is not needed any more.
// The store "file" need not be added.
//
//	cluster.WithLeases(etcd.Kind, etcd.Default(), func(c etcd.Config) (lease.Store, error) { return etcd.New(c) })
func WithLeases[T any](name string, defaults T, open func(T) (lease.Store, error)) Option {
	return func(o *options) {
		o.stores = append(o.stores, newChoice(o, leaseSection, name, defaults, open, "downing.lease-majority.store", "sharding.leases.store"))
	}
}

// leaseSection begins the name of the section of a store.
const leaseSection = "lease-"

// withFileLeases adds the store that every node has, unless the program has one of that name.
func (o *options) withFileLeases() {
	if !slices.Contains(namesOf(o.stores), file.Kind) {
		WithLeases(file.Kind, file.Default(), func(c file.Config) (lease.Store, error) { return file.Open(c) })(o)
	}
}

// chooseStores tells each store whether a configuration selects it, or the file that will be
// laid over that configuration.
func (o *options) chooseStores(f *config.File, c Config) {
	strategy, store, ofShards := c.Downing.Strategy, c.Downing.LeaseMajority.Store, c.Sharding.Leases.Store
	read := map[string]any{}
	if err := f.Decode("downing", &read); err == nil { // What is wrong is reported when all is read.
		take(read, "strategy", &strategy)
		section, _ := read[downing.LeaseMajorityName].(map[string]any)
		take(section, "store", &store)
	}
	read = map[string]any{}
	if err := f.Decode("sharding", &read); err == nil {
		section, _ := read["leases"].(map[string]any)
		take(section, "store", &ofShards)
	}
	chosen := []string{ofShards}
	if strategy == downing.LeaseMajorityName {
		chosen = append(chosen, store)
	}
	for _, s := range o.stores {
		s.choose(chosen)
	}
}

// take sets a text to what a section of a file says.
func take(section map[string]any, key string, into *string) {
	if given, ok := section[key].(string); ok {
		*into = given
	}
}

// linkedLeases reports a store that the configuration names for downing and the program did not link.
func (o *options) linkedLeases(c Config) error {
	if c.Downing.Strategy != downing.LeaseMajorityName {
		return nil
	}
	return o.linkedStore(c.Downing.LeaseMajority.Store, "downing.lease-majority.store")
}

// linkedShardLeases is linkedLeases for shards.
func (o *options) linkedShardLeases(c Config) error {
	return o.linkedStore(c.Sharding.Leases.Store, "sharding.leases.store")
}

// linkedStore reports a store that a setting names and the program did not link. Empty is no fault here: the section of
// the strategy reports it.
func (o *options) linkedStore(name, key string) error {
	linked := namesOf(o.stores)
	if name == "" || slices.Contains(linked, name) || slices.Contains(o.own.Strategies, name) {
		return nil
	}
	return o.unknown(linkedStores(key), name, linked)
}

// linkedStores are the stores of leases, which are chosen by a setting.
func linkedStores(key string) linkedKind {
	return linkedKind{
		what: "store", folder: "downing/lease", key: key,
		call: "cluster.WithLeases(%[1]s.Kind, %[1]s.Default(), func(c %[1]s.Config) (lease.Store, error) { return %[1]s.New(c) })",
	}
}

// openLease opens the store of the strategy lease-majority, and makes the strategy. The store is
// not asked: one that is down does not keep a node from starting.
func (s *strategies) openLease(cfg configuration) (membership.Downing, error) {
	section := cfg.Downing.LeaseMajority
	d := membership.Downing{Name: downing.LeaseMajorityName, Config: cfg.Downing, Parameters: section.Parameters()}
	store, err := openLeases(s.stores, section.Store, "downing.lease-majority.store", cfg, s.resolve)
	if err != nil {
		return d, err
	}
	closing := newGiven("the lease store "+section.Store, store)
	settings := majority.Default()
	settings.LeaseMajorityConfig, settings.Owner = section, cfg.Node.Address
	strategy, err := majority.New(store, settings)
	if err != nil {
		return d, errors.Join(err, closing.drop())
	}
	d.Provider = strategy
	d.Release = func() {
		s.leases.remove(strategy)
		if err := errors.Join(strategy.Close(), closing.drop()); err != nil {
			s.log.Warn("the lease store is left", "store", section.Store, "error", err)
		}
	}
	s.leases.add(strategy)
	return d, nil
}

// openLeases opens the store that a setting names.
func openLeases(stores []linkedChoice[lease.Store], name, key string, cfg configuration, resolve func(string) string) (lease.Store, error) {
	i := slices.IndexFunc(stores, func(c linkedChoice[lease.Store]) bool { return c.called() == name })
	if i < 0 { // It was checked, but for stores that config check was told of.
		return nil, fmt.Errorf("cluster: %s: the store %q is %w", key, name, config.ErrNotLinked)
	}
	store, err := stores[i].make(cfg, resolve)
	if err != nil {
		return nil, fmt.Errorf("cluster: %s%s: %w", leaseSection, name, err)
	}
	return store, nil
}

// openShardLeases opens the store of the leases of shards, if the configuration names one.
func (b *builder) openShardLeases() ([]sharding.Option, error) {
	section := b.cfg.Sharding.Leases
	if section.Store == "" {
		return nil, nil
	}
	store, err := openLeases(b.options.stores, section.Store, "sharding.leases.store", b.cfg, b.resolve())
	if err != nil {
		return nil, err
	}
	b.shardLeases = newGiven("the lease store "+section.Store, store)
	return []sharding.Option{sharding.WithLeases(store, section.Config)}, nil
}
