// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"
	"runtime/debug"

	"github.com/quorate/quorate/sharding/protocol"
)

// work runs an entity on a goroutine of its own until it has nothing more to
// do. The cell's machine sees to it that an entity has one such goroutine at a
// time. The caller holds the cell.
func (r *region) work(c *cell, e *protocol.Entity, op protocol.Op) {
	r.system.workers.Add(1)
	// Owned by the system: ends when the entity is idle or stopped; AwaitEnd
	// waits for it.
	go func() {
		defer r.system.workers.Done()
		for op != 0 {
			op = r.perform(c, e, op)
		}
	}()
}

// perform does one thing to an entity and returns the next.
func (r *region) perform(c *cell, e *protocol.Entity, op protocol.Op) protocol.Op {
	ctx := &Context{region: r, cell: c, entity: e, id: e.ID()}
	switch op {
	case protocol.OpStart:
		err := r.startEntity(ctx, e)
		return r.after(c, e, func(out *protocol.Actions) { c.shard.Started(r.system.clock.Instant(), e, err == nil, out) })
	case protocol.OpStop:
		r.stopEntity(ctx, e)
		return r.after(c, e, func(out *protocol.Actions) { c.shard.Stopped(r.system.clock.Instant(), e, out) })
	default:
		return r.runEntity(ctx, c, e)
	}
}

// after tells the cell what was done.
func (r *region) after(c *cell, e *protocol.Entity, f func(out *protocol.Actions)) protocol.Op {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.out)
	return r.carry(c, e)
}

// runEntity lets an entity handle its message, unless the node's clock shows
// no standing.
func (r *region) runEntity(ctx *Context, c *cell, e *protocol.Entity) protocol.Op {
	if !r.system.standing.Held() {
		return r.after(c, e, func(out *protocol.Actions) { c.shard.Postpone(r.system.clock.Instant(), e, out) })
	}
	err := r.receive(ctx, e)
	result := protocol.Result{Failed: err != nil, Withhold: !r.system.standing.Held()}
	switch {
	case err != nil:
		r.system.log.Warn("entity failed", "kind", r.name, "entity", e.ID(), "error", err)
		result.Reply = &protocol.Reply{Code: protocol.CodeEntityFailed, Detail: err.Error()}
	case ctx.reply != nil && e.Message().Correlation != 0:
		result.Reply = &protocol.Reply{Value: ctx.reply}
	}
	return r.after(c, e, func(out *protocol.Actions) { c.shard.Done(r.system.clock.Instant(), e, result, out) })
}

// receive decodes the message, if it came from another node, and hands it over.
// A message that cannot be decoded is the sender's fault: the entity does not
// see it, and stays.
func (r *region) receive(ctx *Context, e *protocol.Entity) (err error) {
	defer r.recovered(e, &err)
	m := e.Message()
	if m.Value == nil {
		value := r.entity.blank()
		if m.Flags&flagUnencodable != 0 {
			return fmt.Errorf("sharding: the sender could not encode the message")
		}
		if err := r.codec.Decode(m.Payload, value); err != nil {
			return fmt.Errorf("sharding: the message cannot be decoded: %w", err)
		}
		m.Value = value
	}
	return r.entity.receive(ctx, e.Value, m.Value)
}

// startEntity creates an entity and starts it.
func (r *region) startEntity(ctx *Context, e *protocol.Entity) (err error) {
	defer func() {
		if err != nil {
			e.Value = nil
			r.system.log.Warn("entity did not start", "kind", r.name, "entity", e.ID(), "error", err)
		}
	}()
	defer r.recovered(e, &err)
	e.Value = r.entity.create(ctx)
	if e.Value == nil {
		return fmt.Errorf("sharding: New returned nil")
	}
	if s, ok := e.Value.(Starter); ok {
		return s.Start(ctx)
	}
	return nil
}

// stopEntity stops an entity.
func (r *region) stopEntity(ctx *Context, e *protocol.Entity) {
	var err error
	defer r.recovered(e, &err)
	if s, ok := e.Value.(Stopper); ok {
		s.Stop(ctx)
	}
}

// recovered turns a panic of an entity into an error: it ends the entity, never
// the process.
func (r *region) recovered(e *protocol.Entity, err *error) {
	if v := recover(); v != nil {
		r.system.counters.panics.Add(1)
		r.system.log.Error("entity panicked", "kind", r.name, "entity", e.ID(), "panic", v, "stack", string(debug.Stack()))
		*err = fmt.Errorf("sharding: panic: %v", v)
	}
}
