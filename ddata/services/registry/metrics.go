// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"github.com/quorate/quorate/machine/meter"
)

// observe registers the metrics of a Registry until stop is called.
func (r *Registry) observe() (stop func()) {
	m := meter.New(r.meters, "github.com/quorate/quorate/ddata/services/registry", r.node.Self())
	return meter.ObserveOrLog(m, metricsTable(), func(context.Context) Stats { return r.Stats() }, r.log)
}

// metricsTable declares what is measured, each metric by a row that reads it.
func metricsTable() []meter.Row[Stats] {
	whole := func(of func(Stats) int) func(Stats, meter.Observer) {
		return func(s Stats, observe meter.Observer) { observe(int64(of(s))) }
	}
	return []meter.Row[Stats]{
		meter.UpDown("quorate.registry.registrations", "{entry}", "Entries that this node has registered.",
			whole(func(s Stats) int { return s.Registrations })),
		meter.UpDown("quorate.registry.subscribers", "{subscriber}", "Subscriptions to names on this node.",
			whole(func(s Stats) int { return s.Subscribers })),
		meter.Gauge("quorate.registry.names", "{name}", "Names with entries, now or once, that this node holds.",
			whole(func(s Stats) int { return s.Names })),
		meter.Total("quorate.registry.entries.restored", "{entry}", "Entries that were lost or removed although they are registered, and that this node has put back.",
			func(s Stats) uint64 { return s.Restored }),
		meter.Total("quorate.registry.entries.removed", "{entry}", "Entries of nodes that are gone, and entries left over, that this node has removed.",
			func(s Stats) uint64 { return s.Removed }),
		meter.Total("quorate.registry.entries.malformed", "{entry}", "Times that this node has found an entry that means nothing, and passed it over.",
			func(s Stats) uint64 { return s.Malformed }),
	}
}

// Stats are numbers of a [Registry]. Restored, Removed and Malformed only grow, from 0 when
// the registry was made.
type Stats struct {
	Registrations int    // Entries that this node has registered.
	Subscribers   int    // Subscriptions on this node.
	Names         int    // Names that this node holds.
	Restored      uint64 // Entries that this node has put back.
	Removed       uint64 // Entries that this node has removed: of nodes that are gone, or left over.
	Malformed     uint64 // Entries that were found and mean nothing, each time that they were.
}

// Stats returns the numbers.
func (r *Registry) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{
		Registrations: len(r.own), Names: r.reconciler.Held(),
		Restored: r.counters.restored.Load(), Removed: r.counters.removed.Load(), Malformed: r.counters.malformed.Load(),
	}
	for _, all := range r.subs {
		s.Subscribers += len(all)
	}
	return s
}
