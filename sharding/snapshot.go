// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"errors"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Snapshotter is an optional interface of an entity: it takes its memory along when its shard moves
// to another node in order, without any storage.
//
//	old home:  ... last message ──> Stop ──> Snapshot ──┐
//	                                                    │ with the shard
//	new home:                New ──> Restore ──> Start <┘ ──> first message
//
// Snapshot runs after Stop, if the reason of the stop was [StopMoved] or [StopLeaving], and returns the
// memory as bytes, which the entity does not use afterwards; nil: there is nothing to take along. It
// should read the memory of the entity and nothing else: it may go on when a successor runs, if it
// takes longer than half of sharding.handoff-timeout. Restore runs before Start, in a new instance on
// any node that runs the kind, with those bytes, which it may keep. If the move is called off, the
// next instance on the old home is restored.
//
// The memory is that of the latest instance, and is restored once, or not at all: when Snapshot or
// Restore returns an error or panics, when there are more bytes than sharding.snapshot-bytes or
// sharding.snapshot-shard-bytes permit, when the node, the coordinator or the next home dies on the
// way, after every stop for another reason, and when a node on the way has a version of the program
// that does not know of snapshots. Then the entity starts as if it had no Snapshotter; after a Restore
// that failed, with another instance of New. So an entity that implements Snapshotter can always begin
// without: what must not be lost belongs into a storage.
//
// The memory of an entity to which no message has come yet waits as bytes, for
// sharding.passivate-after at most; then it is dropped, as the entity would have been stopped.
type Snapshotter interface {
	Snapshot(c *Context) ([]byte, error)
	Restore(c *Context, snapshot []byte) error
}

// snapshots reports whether an entity can give a snapshot, and may.
func (p *program) snapshots(e *cell.Entity) bool {
	_, can := instanceOf(e).(Snapshotter)
	return can && p.system.cfg.SnapshotBytes > 0 && p.system.cfg.SnapshotShardBytes > 0
}

// snapshot asks an entity, which has stopped, for its memory.
func (p *program) snapshot(ctx *Context) (data []byte, lost protocol.Loss) {
	e := ctx.job.Entity()
	data, err := p.takeSnapshot(ctx, e)
	switch most := p.system.cfg.SnapshotBytes; {
	case err != nil:
		p.system.log.Warn("entity gave no snapshot", "kind", p.kind, "entity", e.ID(), "error", err)
		return nil, protocol.LossFailed
	case len(data) > most:
		p.system.log.Warn("snapshot of an entity is too large", "kind", p.kind, "entity", e.ID(), "bytes", len(data), "sharding.snapshot-bytes", most)
		return nil, protocol.LossTooLarge
	default:
		return data, protocol.LossNone
	}
}

func (p *program) takeSnapshot(ctx *Context, e *cell.Entity) (data []byte, err error) {
	defer ctx.returned()
	defer p.recovered(e.ID(), &err)
	data, err = instanceOf(e).(Snapshotter).Snapshot(ctx)
	return data, frozen(err)
}

// revive returns an entity that has the memory of the last instance: the given one, which is new, or
// another one without memory if that cannot be.
func (p *program) revive(ctx *Context, entity any, memory []byte) any {
	err := p.restore(ctx, entity, memory)
	if err == nil {
		ctx.job.Restored()
		return entity
	}
	p.system.log.Warn("entity starts without its memory", "kind", p.kind, "entity", ctx.ID(), "error", err)
	ctx.settle(false) // What the one that is given up has ordered.
	ctx.job.Entity().Value = nil
	return p.created(ctx)
}

var errNoSnapshotter = errors.New("sharding: the entity has no method Restore")

func (p *program) restore(ctx *Context, entity any, memory []byte) (err error) {
	s, ok := entity.(Snapshotter)
	if !ok {
		return errNoSnapshotter
	}
	defer p.recovered(ctx.ID(), &err)
	return frozen(s.Restore(ctx, memory))
}
