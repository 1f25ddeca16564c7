// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package hosting has the contexts that entities see: they end when their node may not host any more, and when their
// shard is hosted here no more.
//
//	the system's context ──> one while the node has standing ──> one for each hosting of a shard
//
// [Contexts] is safe for concurrent use. It starts no goroutine; everything ends with the context that it was given.
package hosting

import (
	"context"
	"sync/atomic"

	"github.com/quorate/quorate/sharding/bound"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/runtime"
)

// Contexts makes the contexts of the entities of a node.
type Contexts struct {
	within   context.Context //nolint:containedctx // What all others are derived from.
	held     func() bool     // Whether the node has standing, by the clock.
	canceled context.Context //nolint:containedctx // Canceled from the start, for entities that their shard has left behind.

	// node is the parent of the contexts of shards. It is replaced when the node regains its standing.
	node atomic.Pointer[bounded]
}

// bounded is a context and the function that ends it.
type bounded struct {
	ctx context.Context //nolint:containedctx // Handed out to entities.
	end context.CancelCauseFunc
}

// newBounded returns a context that ends with its parent, and as soon as holds says no.
func newBounded(parent context.Context, holds func() bool) *bounded {
	ctx, end := bound.New(parent, holds, context.Canceled)
	return &bounded{ctx, end}
}

// shard is the context of the entities of a shard for as long as it is hosted.
type shard struct {
	*bounded

	of *bounded // The context of the node from which this one was derived.
}

// New returns the contexts of a node which has standing while held says so; all end with ctx.
func New(ctx context.Context, held func() bool) *Contexts {
	over, end := context.WithCancel(context.Background())
	end()
	c := &Contexts{within: ctx, held: held, canceled: over}
	c.node.Store(newBounded(ctx, held))
	return c
}

// Apply ends the contexts of all entities when the node loses its standing or has ended, and has entities get others
// when the node regains the standing. Other inputs mean nothing here.
func (c *Contexts) Apply(in protocol.CellInput) {
	switch in.(type) {
	case protocol.SuspendHosting:
		c.node.Load().end(nil)
	case protocol.AbandonHosting:
		c.End()
	case protocol.UnsuspendHosting:
		c.renew(c.node.Load())
	}
}

// End ends the contexts of all entities for good.
func (c *Contexts) End() {
	c.node.Swap(&bounded{c.canceled, func(error) {}}).end(nil)
}

// present returns the parent of the contexts of shards. One that a look has ended, in a moment without
// standing of which the control machine has not heard, is replaced: nobody else would.
func (c *Contexts) present() *bounded {
	node := c.node.Load()
	if node.ctx.Err() != nil && c.held() {
		c.renew(node)
	}
	return c.node.Load()
}

// renew puts a fresh context in place of the old one, unless the node has ended or another caller has done so.
func (c *Contexts) renew(old *bounded) {
	if old.ctx == c.canceled {
		return
	}
	fresh := newBounded(c.within, c.held)
	if c.node.CompareAndSwap(old, fresh) {
		old.end(nil)
	} else {
		fresh.end(nil)
	}
}

// Of returns the context of an entity of a slot. The entities of a shard share one context,
// made when the first of them asks for it: most never do.
func (c *Contexts) Of(region *runtime.Region, sl *runtime.Slot, e *cell.Entity) context.Context {
	node := c.present()
	permitted := func() bool { return region.Permits(sl) }
	var s *shard
	sl.Do(func(*cell.Cell) {
		if e.Ended() {
			return
		}
		if s, _ = (*region.HostingValue(sl)).(*shard); s == nil || s.of != node || s.ctx.Err() != nil && permitted() {
			EndShard(region, sl)
			s = &shard{newBounded(context.WithValue(node.ctx, entityKey{}, true), permitted), node}
			*region.HostingValue(sl) = s
		}
	})
	if s == nil {
		return c.canceled
	}
	return s.ctx
}

// EndShard ends the context that the entities of a slot share; the caller holds the slot.
func EndShard(region *runtime.Region, sl *runtime.Slot) {
	if s, there := (*region.HostingValue(sl)).(*shard); there {
		s.end(nil)
		*region.HostingValue(sl) = nil
	}
}

// entityKey is the key that marks the contexts of entities.
type entityKey struct{}

// IsEntity reports whether ctx is that of an entity, or derived from one.
func IsEntity(ctx context.Context) bool { return ctx.Value(entityKey{}) != nil }
