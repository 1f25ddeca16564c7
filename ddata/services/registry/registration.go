// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
)

// The registry knows a registration before the entry is written, and forgets it before the entry
// is removed: the reconciler removes entries of this node that belong to no known registration.

// Registration is an entry that this node has registered. Its methods are safe for
// concurrent use, and wait for each other.
type Registration struct {
	r       *Registry
	name    string
	entryID entryID
	busy    chan struct{} // Holds a token while somebody changes what follows.

	entry  Entry
	set    []byte // The content that was written last; nil while there is none.
	closed bool
}

// Register registers an entry. Its Node, ID and Version are set by the registry.
//
// Errors: [ErrEntry], with a [field.Error] for each fault; [ErrClosed]; those of
// [ddata.Update], after which nothing stays registered: what is stored is removed again.
func (r *Registry) Register(ctx context.Context, e Entry) (*Registration, error) {
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	g := &Registration{r: r, name: e.Name, busy: make(chan struct{}, 1)}
	g.busy <- struct{}{}
	defer g.free()
	if err := r.know(g); err != nil {
		return nil, err
	}
	g.entry = e.clone()
	g.entry.Node, g.entry.ID, g.entry.Version = g.entryID.node, g.entryID.id, 0
	if err := g.write(ctx, g.entry, r.consistency); err != nil {
		g.closed = true
		r.forget(g)
		return nil, err
	}
	return g, nil
}

// know numbers a registration and adds it to those of this node.
func (r *Registry) know(g *Registration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return fmt.Errorf("%w: the node", ErrClosed)
	}
	r.last++
	g.entryID = entryID{r.node.Self(), r.last}
	r.own[g.entryID.id] = g
	return nil
}

// forget drops a registration of this node, so that the reconciler removes its entry.
func (r *Registry) forget(g *Registration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, g.entryID.id)
	r.reconciler.RepairLater(g.name) // Until the entry is seen to be gone.
}

// Entry returns what is registered.
func (g *Registration) Entry() Entry {
	g.busy <- struct{}{}
	defer g.free()
	return g.entry.clone()
}

// Update changes address and metadata; the name stays. Errors: as those of
// [Registry.Register]; after those of [ddata.Update] the entry may have changed for some.
func (g *Registration) Update(ctx context.Context, address string, metadata map[string]string) error {
	if err := g.take(ctx); err != nil {
		return err
	}
	defer g.free()
	e := g.entry
	e.Address, e.Metadata = address, metadata
	if err := e.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrEntry, err)
	}
	return g.write(ctx, e.clone(), g.r.consistency)
}

// Close takes the entry back. Its node does not find it any more, at the latest a second
// after, whatever the error says: the node goes on trying. Calling Close again does nothing.
func (g *Registration) Close(ctx context.Context) error {
	switch err := g.take(ctx); {
	case errors.Is(err, ErrClosed):
		return nil
	case err != nil:
		return err
	}
	defer g.free()
	g.closed = true
	g.r.forget(g)
	place := g.entryID.place()
	return g.r.change(ctx, g.name, g.r.consistency, func(_ crdt.Origin, c content) content { return c.Remove(place) })
}

// take waits until nobody else changes the registration.
func (g *Registration) take(ctx context.Context) error {
	select {
	case g.busy <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !g.closed {
		return nil
	}
	g.free()
	return fmt.Errorf("%w: the registration", ErrClosed)
}

func (g *Registration) free() { <-g.busy }

// write writes another version of the entry. The caller has taken the registration.
func (g *Registration) write(ctx context.Context, e Entry, c ddata.Consistency) error {
	e.Version = g.entry.Version + 1
	g.entry, g.set = e, e.encode()
	return g.put(ctx, c)
}

// put writes the entry as it is. The version is the time of the write: nobody else writes
// at this place.
func (g *Registration) put(ctx context.Context, c ddata.Consistency) error {
	place, now, set := g.entryID.place(), int64(g.entry.Version), g.set
	return g.r.change(ctx, g.name, c, func(at crdt.Origin, v content) content { return v.Put(at, now, place, set) })
}

// repair puts the entry back if it is not as it was set, and reports whether it was, or was
// put back.
func (g *Registration) repair(ctx context.Context, c content) (ok bool) {
	select {
	case g.busy <- struct{}{}:
		defer g.free()
	default:
		return false // Somebody changes it at this moment.
	}
	if g.closed {
		return true
	}
	if have, _ := c.Get(g.entryID.place()); bytes.Equal(have, g.set) {
		return true
	}
	// What was read may be older than the last update: look again, now that none is made.
	c, err := g.r.content(ctx, g.name)
	if err != nil {
		return false
	}
	if have, _ := c.Get(g.entryID.place()); bytes.Equal(have, g.set) {
		return true
	}
	if g.put(ctx, ddata.Local()) != nil {
		return false
	}
	g.r.counters.restored.Add(1)
	return true
}
