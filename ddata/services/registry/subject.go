// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"maps"
	"slices"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
)

// What the reconciler asks of the registry: it wakes subscribers (Changed, Members), looks after
// the registrations of this node (Repair), and removes entries of nodes that are gone (Nodes,
// Remove).

// subject implements [reconciler.Subject] for a [Registry].
type subject struct{ *Registry }

// Changed wakes the subscribers of a name.
func (r subject) Changed(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.subs[name] {
		s.notify()
	}
}

// Members wakes all subscribers, since other entries may be hidden now.
func (r subject) Members() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, all := range r.subs {
		for _, s := range all {
			s.notify()
		}
	}
}

// Tick does nothing: what is to be done regularly is done by the reconciler.
func (subject) Tick() {}

// Names returns the names with registrations or subscribers on this node.
func (r subject) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]struct{}{}
	for _, g := range r.own {
		names[g.name] = struct{}{}
	}
	for name := range r.subs {
		names[name] = struct{}{}
	}
	return slices.Collect(maps.Keys(names))
}

// Repair compares the entries of this node under a name with its registrations, and puts
// right what differs.
func (r subject) Repair(ctx context.Context, name string) (ok bool) {
	c, err := r.content(ctx, name)
	if err != nil {
		return false
	}
	// The value is older than the list: an entry in it that is not in the list was forgotten.
	own := r.registrations(name)
	ok = true
	all, _ := roll(name, c)
	for _, e := range all {
		if e.Node != r.node.Self() {
			continue
		}
		if _, known := own[e.ID]; !known && r.remove(ctx, name, e.entryID().place()) != nil {
			ok = false
		}
	}
	for _, g := range own {
		ok = g.repair(ctx, c) && ok
	}
	return ok
}

// registrations returns the registrations of this node under a name.
func (r *Registry) registrations(name string) map[uint64]*Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := map[uint64]*Registration{}
	for id, g := range r.own {
		if g.name == name {
			own[id] = g
		}
	}
	return own
}

// remove removes entries.
func (r *Registry) remove(ctx context.Context, name string, places ...string) error {
	err := r.change(ctx, name, ddata.Local(), func(_ crdt.Origin, c content) content {
		for _, place := range places {
			c = c.Remove(place)
		}
		return c
	})
	if err == nil {
		r.counters.removed.Add(uint64(len(places)))
	}
	return err
}

// Nodes returns the nodes with entries in a value.
func (r subject) Nodes(name string, c content) (nodes []gossip.NodeID) {
	all, _ := roll(name, c)
	for _, e := range all {
		nodes = append(nodes, e.Node) // In order, so that equal ones are neighbours.
	}
	return slices.Compact(nodes)
}

// Remove removes the entries of a node that is gone.
func (r subject) Remove(ctx context.Context, name string, node gossip.NodeID) error {
	all, err := r.all(ctx, name)
	if err != nil {
		return err
	}
	var places []string
	for _, e := range all {
		if e.Node == node {
			places = append(places, e.entryID().place())
		}
	}
	if err := r.remove(ctx, name, places...); err != nil {
		return err
	}
	r.log.InfoContext(ctx, "service entries removed, their node is gone", "name", name, "entries", len(places), "node", node.String())
	return nil
}
