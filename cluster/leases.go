// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/file"
	"github.com/quorate/quorate/downing/lease/majority"
	"github.com/quorate/quorate/membership"
)

// The strategy lease-majority: a program links the stores that its files may name
// ([WithLeases]); the one that downing.lease-majority.store names is opened with its section
// ([strategies.openLease]), given to the membership with the strategy, and closed after it.

// WithLeases adds a store of leases for the downing strategy lease-majority, such as one of the
// modules below downing/lease. Downing.lease-majority.store selects the store by its name. The
// settings of the store are the section "lease-NAME" of the files, as [WithDiscovery] has
// it. A store that is an [io.Closer] is closed when the membership does not need it any more.
// The store "file" need not be added.
//
//	cluster.WithLeases(etcd.Kind, etcd.Default(), func(c etcd.Config) (lease.Store, error) { return etcd.New(c) })
func WithLeases[T any](name string, defaults T, open func(T) (lease.Store, error)) Option {
	return func(o *options) { o.stores = append(o.stores, newChoice(o, leaseSection, name, defaults, open)) }
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
	strategy, store := c.Downing.Strategy, c.Downing.LeaseMajority.Store
	read := map[string]any{}
	if err := f.Decode("downing", &read); err == nil { // What is wrong is reported when all is read.
		if name, ok := read["strategy"].(string); ok {
			strategy = name
		}
		section, _ := read[downing.LeaseMajorityName].(map[string]any)
		if name, ok := section["store"].(string); ok {
			store = name
		}
	}
	var chosen []string
	if strategy == downing.LeaseMajorityName {
		chosen = []string{store}
	}
	for _, s := range o.stores {
		s.choose(chosen)
	}
}

// linkedLeases reports a store that the configuration names and the program did not link.
func (o *options) linkedLeases(c Config) error {
	name := c.Downing.LeaseMajority.Store
	linked := namesOf(o.stores)
	if c.Downing.Strategy != downing.LeaseMajorityName || name == "" || slices.Contains(linked, name) || slices.Contains(o.own.Strategies, name) {
		return nil // The section reports an empty name.
	}
	return o.unknown(linkedStores(), name, linked)
}

// linkedStores are the stores of leases, which are chosen by downing.lease-majority.store.
func linkedStores() linkedKind {
	return linkedKind{
		what: "store", folder: "downing/lease", key: "downing.lease-majority.store",
		call: "cluster.WithLeases(%[1]s.Kind, %[1]s.Default(), func(c %[1]s.Config) (lease.Store, error) { return %[1]s.New(c) })",
	}
}

// openLease opens the store of the strategy lease-majority, and makes the strategy. The store is
// not asked: one that is down does not keep a node from starting.
func (s *strategies) openLease(cfg configuration) (membership.Downing, error) {
	section := cfg.Downing.LeaseMajority
	d := membership.Downing{Name: downing.LeaseMajorityName, Config: cfg.Downing, Parameters: section.Parameters()}
	i := slices.IndexFunc(s.stores, func(c linkedChoice[lease.Store]) bool { return c.called() == section.Store })
	if i < 0 { // It was checked, but for stores that config check was told of.
		return d, fmt.Errorf("cluster: downing.lease-majority.store: the store %q is %w", section.Store, config.ErrNotLinked)
	}
	store, err := s.stores[i].make(cfg, s.resolve)
	if err != nil {
		return d, fmt.Errorf("cluster: %s%s: %w", leaseSection, section.Store, err)
	}
	settings := majority.Default()
	settings.LeaseMajorityConfig, settings.Owner = section, cfg.Node.Address
	strategy, err := majority.New(store, settings)
	if err != nil {
		return d, errors.Join(err, closeStore(store))
	}
	d.Provider = strategy
	d.Release = func() {
		s.leases.remove(strategy)
		if err := errors.Join(strategy.Close(), closeStore(store)); err != nil {
			s.log.Warn("the lease store is left", "store", section.Store, "error", err)
		}
	}
	s.leases.add(strategy)
	return d, nil
}

func closeStore(s lease.Store) error {
	if c, ok := s.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
