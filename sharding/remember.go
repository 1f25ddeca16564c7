// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/recall"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/remember"
)

// The calls of a store of remembered entities, each on a goroutine of its own: what is called and when
// decides the desk of the region (internal/recall), and this file knows only which set was opened last.

// shelf calls the store of a kind.
type shelf struct {
	system *System
	kind   string
	store  remember.Store
	limit  time.Duration
	region *runtime.Region // Set before the first call.
	logged atomic.Int64    // When a fault was logged last, in Unix nanoseconds.

	mu   sync.Mutex // Guards sets.
	sets map[recall.Set]opened
}

// opened is a set, and the session by which it was opened.
type opened struct {
	session uint64
	set     remember.Set
}

var _ runtime.Shelf = (*shelf)(nil)

// errClosing is the reason of calls when the node has ended.
var errClosing = errors.New("the node has ended")

// Open has the set of a shard opened.
func (s *shelf) Open(o recall.Open) {
	failed := func(err error) { s.region.Remembered(recall.Opened{Set: o.Set, Session: o.Session, Err: err}) }
	s.work(failed, func(ctx context.Context) {
		set, ids, err := s.open(ctx, o)
		s.mu.Lock()
		if now := s.sets[o.Set]; err == nil && now.session < o.Session {
			s.sets[o.Set] = opened{o.Session, set}
		}
		s.mu.Unlock()
		s.told("open", o.Set, err)
		s.region.Remembered(recall.Opened{
			Set: o.Set, Session: o.Session, IDs: slices.Clip(ids), Err: err, Fenced: errors.Is(err, remember.ErrFenced),
		})
	})
}

// open calls the store, and makes an error of a panic and of an answer that is none.
func (s *shelf) open(ctx context.Context, o recall.Open) (set remember.Set, ids []string, err error) {
	defer recovered(&err)
	set, ids, err = s.store.Open(ctx, s.shard(o.Set), o.Epoch)
	if err == nil && set == nil {
		err = errors.New("the store has returned no set")
	}
	return set, ids, spoken(err)
}

// shard returns the name of a set.
func (s *shelf) shard(set recall.Set) remember.Shard {
	return remember.Shard{Kind: s.kind, Number: int(set.Number), Of: int(set.Of)}
}

// Change has the set of a shard changed.
func (s *shelf) Change(c recall.Change) {
	failed := func(err error) {
		s.region.Remembered(recall.Changed{Set: c.Set, Session: c.Session, Err: err})
	}
	s.work(failed, func(ctx context.Context) {
		s.mu.Lock()
		at := s.sets[c.Set]
		s.mu.Unlock()
		err := errors.New("the set was not opened")
		if at.session == c.Session {
			err = change(ctx, at.set, c)
		}
		s.told("change", c.Set, err)
		told := recall.Changed{Set: c.Set, Session: c.Session, Err: err, Fenced: errors.Is(err, remember.ErrFenced)}
		if full := (*remember.FullError)(nil); errors.As(err, &full) {
			told.Err, told.Full = nil, full.IDs
		}
		s.region.Remembered(told)
	})
}

// Close forgets a set that this node does not change any more: it has the ids in memory.
func (s *shelf) Close(c recall.Close) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets[c.Set].session == c.Session {
		delete(s.sets, c.Set)
	}
}

// Ask implements [runtime.Shelf], as do the next two: the control machine sends what is for the desks of other nodes.
// What finds its inbox full is asked for again.
func (s *shelf) Ask(t protocol.Take) { _ = s.system.control.Post(control.Take{Kind: s.kind, Take: t}) }

// Give sends an answer.
func (s *shelf) Give(g recall.Give) {
	_ = s.system.control.Post(control.Give{Kind: s.kind, To: g.To, Given: g.Given})
}

// Over says that nothing is left of what was before a layout: once, so it waits for room.
func (s *shelf) Over(layout uint16) {
	s.work(func(error) {}, func(context.Context) {
		_ = s.system.control.PostWait(s.system.ctx, control.TakenOver{Kind: s.kind, Layout: layout}) // Else the node has ended.
	})
}

// change calls the set, and makes an error of a panic.
func change(ctx context.Context, set remember.Set, c recall.Change) (err error) {
	defer recovered(&err)
	return spoken(set.Change(ctx, c.Remember, c.Forget))
}

// spoken returns an error of a store that can be asked for its text. That is code of the store too, and panics here if
// it does.
func spoken(err error) error {
	if err != nil {
		_ = err.Error()
	}
	return err
}

// recovered makes an error of a panic of a store.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the store has panicked: %v", p)
	}
}

// work makes a call on a goroutine of its own, or says at once, on one of the timer's, that the node has ended.
func (s *shelf) work(failed func(error), call func(ctx context.Context)) {
	s.system.mu.Lock()
	defer s.system.mu.Unlock()
	if s.system.closing {
		failed(errClosing)
		return
	}
	// The goroutine is owned by the system, and ends with the call, which ends with the system's context.
	s.system.workers.Go(func() {
		over := false
		defer func() {
			if !over { // The store has ended the goroutine.
				failed(errors.New("the store has ended the goroutine that called it"))
			}
		}()
		ctx, cancel := context.WithTimeout(s.system.ctx, s.limit)
		defer cancel()
		call(ctx)
		over = true
	})
}

// told logs a fault of the store, one in a second: a store that is down fails for all shards.
func (s *shelf) told(op string, set recall.Set, err error) {
	if err == nil || s.system.ctx.Err() != nil {
		return
	}
	now, logged := time.Now().UnixNano(), s.logged.Load()
	if now-logged < int64(time.Second) || !s.logged.CompareAndSwap(logged, now) {
		return
	}
	all, _ := s.region.Remembering()
	s.system.log.Warn("the store of remembered entities has failed a call, which is repeated", "op", op, "kind", s.kind,
		"set", s.shard(set).String(), "failed", all.Failed, "faulty shards", all.Faulty, "unwritten ids", all.Writing, "error", err)
}
