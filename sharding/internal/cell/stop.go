// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"fmt"

	"github.com/quorate/quorate/machine"
)

// In a stop an entity may write to its storage or release a lock. So a stop begins only
// while no other instance of the entity can run: like a message it needs the node's
// standing. Without standing the stop is deferred. Either the standing returns, and the stop
// begins with the reason that it had; or the hosting has ended, and the stop begins at once,
// with a reason that says that a successor may run.
//
//	stop ──> standing? ──yes──> begins: passivated, failed, moved, leaving
//	             │ no
//	             v
//	         deferred ──hosting has ended──> begins: replaced, lost
//
// Stops that begin for these last two reasons do so whatever the standing.

// StopReason says why an instance is stopped, and with that whether another instance of
// the entity can run already.
type StopReason uint8

// The reasons.
const (
	// StopNone: the instance is not being stopped.
	StopNone StopReason = iota
	// StopPassivated: the entity was idle, made room, or asked to be stopped. It stays on this node,
	// and the next message starts it again after the stop.
	StopPassivated
	// StopFailed: the instance failed at a message. The entity stays on this node.
	StopFailed
	// StopMoved: the entity moves to another node, where no instance of it starts before
	// the stop has ended.
	StopMoved
	// StopLeaving: like StopMoved, because this node leaves the cluster.
	StopLeaving
	// StopReplaced: the shard lives elsewhere by now, or went on without the instance,
	// because this node was taken for gone, or the instance did not return in time. A
	// successor may have been running for long.
	StopReplaced
	// StopLost: this node has ended, or was declared down, and may run no entity any more.
	// A successor may run.
	StopLost

	stopCount
)

// StopReasons is the number of values of [StopReason].
const StopReasons = int(stopCount)

// Sole reports whether no other instance of the entity can have started when the stop
// begins, nor can before it ends, unless this node loses its standing meanwhile: the
// context of the entity ends then.
func (r StopReason) Sole() bool { return r >= StopPassivated && r <= StopLeaving }

// String returns the name of the reason.
func (r StopReason) String() string {
	switch r {
	case StopNone:
		return "none"
	case StopPassivated:
		return "passivated"
	case StopFailed:
		return "failed"
	case StopMoved:
		return "moved"
	case StopLeaving:
		return "leaving"
	case StopReplaced:
		return "replaced"
	case StopLost:
		return "lost"
	default:
		return fmt.Sprintf("reason %d", uint8(r))
	}
}

// BeginStop says why the instance of e, of an OpStop, is stopped. The runtime calls
// BeginStop just before the stop; held says whether the clock shows standing then. False:
// the instance must not be stopped now; another OpStop follows.
func (r Instances) BeginStop(now machine.Instant, e *Entity, held bool, out *Actions) (StopReason, bool) {
	why := r.stopReason(e)
	if why.Sole() && (!held || r.place.isSuspended()) {
		e.set(isDeferred)
		r.alarm.retrySoon(now, out)
		return StopNone, false
	}
	r.remembering.ends(e, why)
	return why, true
}

// stop has the instance of e stopped, when the node has standing or the hosting is over.
func (r *entityTable) stop(now machine.Instant, e *Entity, out *Actions) {
	r.limiter.leave(e)
	e.state, e.at = entityStopping, now
	if e.is(isPassivate) {
		r.remembering.asked(e)
	}
	e.unset(isPassivate | isHeld | isDeferred)
	if r.place.isSuspended() && !r.lost(e) {
		e.set(isDeferred)
		return
	}
	out.entity(OpStop, e)
}

// lost reports whether the hosting of e has ended, or that of all entities of the node.
func (r *entityTable) lost(e *Entity) bool { return r.place.isOver() || e.Ended() }

// stopDeferred has the instance of e stopped if that was deferred.
func (r *entityTable) stopDeferred(now machine.Instant, e *Entity, out *Actions) {
	if e.is(isDeferred) {
		r.stop(now, e, out)
	}
}

func (r *entityTable) stopReason(e *Entity) StopReason {
	switch {
	case r.place.isOver():
		return StopLost
	case e.Ended():
		return StopReplaced
	case e.failure() != nil:
		return StopFailed
	case r.place.stops() && r.place.leaves():
		return StopLeaving
	case r.place.stops():
		return StopMoved
	default:
		return StopPassivated
	}
}
