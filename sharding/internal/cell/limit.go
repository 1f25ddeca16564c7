// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// How the entities of a cell take part in the limit of their region. An instance has a handle in the
// region's limiter from its start until it is told to stop. A use is that a worker takes the
// entity up, for one message or a run of them: so a message that comes while its entity is at work
// costs nothing here. The cell gathers uses and tells them to the limiter a few at a time.
//
// The limiter may name an entity as the one to go that was used meanwhile, or is busy. So it asks
// by [Maintenance.Evict], which looks a second time.

// Limiter bounds the instances of a region. It is called with mu of the slot held, by the cells
// of the region at once, and returns without waiting for any of them.
type Limiter interface {
	// Enter returns a handle for the instance of e, which starts or runs.
	Enter(shard protocol.ShardID, e *Entity) passivation.Handle
	// Use says which instances were used, the last one last. It may be forgotten when others use
	// the limiter, unless must is set.
	Use(handles []passivation.Handle, must bool)
	// Leave frees a handle.
	Leave(s passivation.Handle)
}

// Cause says why an instance was passivated.
type Cause uint8

// The causes.
const (
	CauseAsked Cause = iota // The entity asked for it.
	CauseIdle               // The entity had no message for [Config.PassivateAfter].
	CauseLimit              // The region had more instances than its limit.

	causes
)

// Causes is the number of values of [Cause].
const Causes = int(causes)

// String returns the name of the cause.
func (c Cause) String() string {
	switch c {
	case CauseAsked:
		return "asked"
	case CauseIdle:
		return "idle"
	case CauseLimit:
		return "limit"
	default:
		return fmt.Sprintf("cause %d", uint8(c))
	}
}

// Verdict says what became of [Maintenance.Evict].
type Verdict uint8

// The verdicts.
const (
	Gone    Verdict = iota // The handle is not that of the entity any more.
	Used                   // The entity was used since the limiter was last told of uses, which it is now.
	Busy                   // The entity cannot be stopped now: it is at work, waits, or holds itself.
	Evicted                // The entity is told to stop.
)

// maxUses is how many uses a cell gathers.
const maxUses = 16

// limiterClient is the part of the entity table that gives and frees the handles of instances in the limiter, and tells
// it of uses.
type limiterClient struct {
	cfg  *Config
	uses []passivation.Handle // Uses that the limiter has not been told yet.
}

// enter gets a handle for an instance.
func (s *limiterClient) enter(e *Entity) {
	s.tell(true)
	e.handle = s.cfg.Limiter.Enter(s.cfg.Shard, e)
}

// leave frees the handle of an instance that is told to stop, if it has one.
func (s *limiterClient) leave(e *Entity) {
	if e.handle != 0 {
		s.tell(true)
		s.cfg.Limiter.Leave(e.handle)
		e.handle = 0
		e.unset(isFresh)
	}
}

// used records that a worker begins a run of e.
func (s *limiterClient) used(e *Entity) {
	if e.is(isFresh) {
		e.unset(isFresh)
		return
	}
	if s.uses = append(s.uses, e.handle); len(s.uses) >= maxUses {
		s.tell(false)
	}
}

// tell tells the limiter of the uses. It does so before a handle is given or freed, so that no use is
// taken for that of a later owner of the handle.
func (s *limiterClient) tell(must bool) {
	if len(s.uses) > 0 {
		s.cfg.Limiter.Use(s.uses, must)
		s.uses = s.uses[:0]
	}
}

// reveals reports whether e was used since the limiter was told last, and then tells it.
func (s *limiterClient) reveals(e *Entity) bool {
	if !slices.Contains(s.uses, e.handle) {
		return false
	}
	s.tell(true)
	return true
}
