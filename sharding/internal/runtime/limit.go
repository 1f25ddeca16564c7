// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The limit of a region is one for all of its shards: cells enter their instances in one order, so
// that it holds whatever the number of shards and however uneven they are. Lock order: a slot, then
// the limiter. An instance of another slot is stopped with neither lock held, by a pass that a timer
// calls at once.
//
//	start over the limit ──> pass: victim ──> its slot: Evict ──> stops ──> ... ──> no excess
//	                          ^                     └ busy: aside                     │
//	                          └── again soon, while all that are left are busy       over

const (
	// maxVictims bounds the victims of a pass: the sweep of a large excess gives way to others.
	maxVictims = 256
	// passRetry is the time after which entities that were busy are tried again.
	passRetry = 10 * time.Millisecond
	// maxEvictions bounds what is remembered of the last evictions, to be explained.
	maxEvictions = 1000
)

// limiter bounds the instances of a region; it is the [cell.Limiter] of its cells. Invariants, while
// mu is free:
//
//	L1  a handle that is not free has a holder;
//	L2  while there is an excess a pass is due or under way.
type limiter struct {
	region *Region
	cfg    passivation.Config // As at first; the limit may have changed.

	mu      sync.Mutex // Guards all fields below; nothing else is locked while it is held.
	order   *passivation.Order
	holders []holder   // By handle.
	due     bool       // A pass is due or under way.
	timer   Timer      // Calls the passes; made at first use.
	evicted []Eviction // The last ones, in a ring; grows up to its bound.
	next    int        // Where the next one goes once the ring is full.

	busy, lost atomic.Uint64 // See LimitStats.
}

// holder is who has a handle.
type holder struct {
	entity *cell.Entity
	shard  protocol.ShardID
}

// Eviction is that an instance was told to stop to make room.
type Eviction struct {
	Entity string
	At     machine.Instant
}

// LimitStats says how the limit of a region does.
type LimitStats struct {
	Limit  int // The limit; 0: there is none.
	Policy passivation.Policy
	Live   int    // Instances that count and were not told to stop.
	Busy   uint64 // How often a victim could not be stopped, since it was busy.
	Lost   uint64 // Uses that were forgotten, since others used the limiter at the same time.
}

// newLimiter returns a limiter for the cells of a region.
func newLimiter(r *Region, cfg passivation.Config) *limiter {
	return &limiter{region: r, cfg: cfg, order: passivation.New(cfg)}
}

// Enter returns a handle for an instance, and has a pass come when that is one too many.
func (l *limiter) Enter(shard protocol.ShardID, e *cell.Entity) passivation.Handle {
	key := xxhash.Sum64String(e.ID())
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.order.Enter(key)
	for int(s) >= len(l.holders) {
		l.holders = append(l.holders, holder{})
	}
	l.holders[s] = holder{e, shard}
	l.look()
	return s
}

// Use orders instances by their uses. A worker does not wait for another one that does the same.
func (l *limiter) Use(handles []passivation.Handle, must bool) {
	if must {
		l.mu.Lock()
	} else if !l.mu.TryLock() {
		l.lost.Add(uint64(len(handles)))
		return
	}
	defer l.mu.Unlock()
	for _, s := range handles {
		l.order.Use(s)
	}
}

// Leave frees a handle.
func (l *limiter) Leave(s passivation.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order.Leave(s)
	l.holders[s] = holder{}
}

// look has a pass come if there is an excess and none is due.
func (l *limiter) look() {
	if l.order.Excess() > 0 && !l.due {
		l.due = true
		l.call(0)
	}
}

// call has a pass come after a time. The timer is called without a lock.
func (l *limiter) call(after time.Duration) {
	if l.timer == nil {
		l.timer = l.region.node.Ports.AfterFunc(after, l.pass)
		return
	}
	l.timer.Reset(after)
}

// resize changes the limit, if nothing else is different and there is still one.
func (l *limiter) resize(to passivation.Config) bool {
	from := l.cfg
	from.Limit = to.Limit
	if to.Limit == 0 || from != to {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order.Resize(to.Limit)
	l.look()
	return true
}

// pass stops instances until there is no excess, or nobody is left that can be stopped.
func (l *limiter) pass() {
	evicted := 0
	for range maxVictims {
		s, h := l.victim()
		if s == 0 {
			break
		}
		sl := l.region.Slot(h.shard)
		if sl == nil {
			continue // Its layout is in force no more, and so its handle is free.
		}
		switch sl.evict(l, h.entity, s) {
		case cell.Evicted:
			evicted++
			l.note(h.entity.ID())
		case cell.Busy:
			l.busy.Add(1)
		default:
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order.Return()
	switch {
	case l.order.Excess() == 0:
		l.due = false
	case evicted > 0:
		l.call(0)
	default:
		l.call(passRetry)
	}
}

// note remembers an eviction.
func (l *limiter) note(entity string) {
	e := Eviction{entity, l.region.node.Ports.Clock.Instant()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.evicted) < maxEvictions {
		l.evicted = append(l.evicted, e)
		return
	}
	l.evicted[l.next] = e
	l.next = (l.next + 1) % maxEvictions
}

// Evicted returns when an entity was last told to stop to make room, if it was among the last
// thousand of the kind.
func (r *Region) Evicted(entity string) (last Eviction, found bool) {
	l := r.limiter.Load()
	if l == nil {
		return last, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.evicted {
		if e.Entity == entity && (!found || e.At >= last.At) {
			last, found = e, true
		}
	}
	return last, found
}

// victim names the next to go; 0: there is no excess, or all are aside.
func (l *limiter) victim() (passivation.Handle, holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.order.Excess() == 0 {
		return 0, holder{}
	}
	s := l.order.Victim()
	return s, l.holders[s]
}

// Limit bounds the instances of the region by a configuration; with a limit of 0 nothing does. When
// only the limit differs from before, all that is known of uses stays; another policy begins with
// the instances that run, in the order of their start.
func (r *Region) Limit(cfg passivation.Config) {
	r.changing.Lock()
	defer r.changing.Unlock()
	present := r.limiter.Load()
	if present != nil && present.resize(cfg) || present == nil && cfg.Limit == 0 {
		return
	}
	if cfg.Limit == 0 {
		r.limiter.Store(nil)
		r.EachSlot(func(sl *Slot) { sl.Do(func(c *cell.Cell) { c.Maintenance().Limit(nil) }) })
		return
	}
	next := newLimiter(r, cfg)
	r.limiter.Store(next)
	r.EachSlot(func(sl *Slot) { sl.Do(func(c *cell.Cell) { c.Maintenance().Limit(next) }) })
}

// Limits says how the limit of the region does.
func (r *Region) Limits() LimitStats {
	l := r.limiter.Load()
	if l == nil {
		return LimitStats{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return LimitStats{Limit: l.order.Limit(), Policy: l.cfg.Policy, Live: l.order.Len(), Busy: l.busy.Load(), Lost: l.lost.Load()}
}
