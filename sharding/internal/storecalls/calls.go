// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package storecalls makes the calls of a store of remembered entities, each on a goroutine of its own: what is called
// and when decides the machine of the region (internal/remembering), and [Calls] knows only which set was opened last.
// A store may block, panic and end the goroutine that calls it: each of these is a call that has failed. Calls is safe
// for concurrent use.
package storecalls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/remembering"
	"github.com/quorate/quorate/sharding/internal/runtime"
	"github.com/quorate/quorate/sharding/remember"
)

// Config is what the calls of one kind need. No field is nil.
type Config struct {
	Kind  string
	Store remember.Store
	Limit time.Duration // Of one call.
	Log   *slog.Logger
	Node  Node
}

// Node is what the calls of all kinds use of their node.
type Node struct {
	// Context ends when the node has ended, and with it the calls.
	Context context.Context //nolint:containedctx // The parent of the contexts of the calls.
	// Go runs a function on a goroutine of the node, and reports false if the node has ended.
	Go func(func()) bool
	// Post hands an input to the control machine if there is room, PostWait waits for room; both in vain when the node
	// has ended.
	Post, PostWait func(machine.Input)
}

// Calls calls the store of a kind.
type Calls struct {
	cfg    Config
	region *runtime.Region // Set before the first call.
	logged atomic.Int64    // When a fault was logged last, in Unix nanoseconds.

	mu   sync.Mutex // Guards sets.
	sets map[remembering.Set]opened
}

// opened is a set, and the session by which it was opened.
type opened struct {
	session uint64
	set     remember.Set
}

var _ runtime.StoreCalls = (*Calls)(nil)

// New returns the calls of a kind. Nothing may be called before [Calls.For].
func New(cfg Config) *Calls { return &Calls{cfg: cfg, sets: map[remembering.Set]opened{}} }

// For sets the region that hears of the calls.
func (s *Calls) For(region *runtime.Region) { s.region = region }

// errClosing is the reason of calls when the node has ended.
var errClosing = errors.New("the node has ended")

// Open has the set of a shard opened.
func (s *Calls) Open(o remembering.Open) {
	failed := func(err error) { s.region.Remembered(remembering.Opened{Set: o.Set, Session: o.Session, Err: err}) }
	s.work(failed, func(ctx context.Context) {
		set, ids, err := s.open(ctx, o)
		s.mu.Lock()
		if now := s.sets[o.Set]; err == nil && now.session < o.Session {
			s.sets[o.Set] = opened{o.Session, set}
		}
		s.mu.Unlock()
		s.told("open", o.Set, err)
		s.region.Remembered(remembering.Opened{
			Set: o.Set, Session: o.Session, IDs: slices.Clip(ids), Err: err, Fenced: errors.Is(err, remember.ErrFenced),
		})
	})
}

// open calls the store, and makes an error of a panic and of an answer that is none.
func (s *Calls) open(ctx context.Context, o remembering.Open) (set remember.Set, ids []string, err error) {
	defer recovered(&err)
	set, ids, err = s.cfg.Store.Open(ctx, s.shard(o.Set), o.Epoch)
	if err == nil && set == nil {
		err = errors.New("the store has returned no set")
	}
	return set, ids, spoken(err)
}

// shard returns the name of a set.
func (s *Calls) shard(set remembering.Set) remember.Shard {
	return remember.Shard{Kind: s.cfg.Kind, Number: int(set.Number), Of: int(set.Of)}
}

// Change has the set of a shard changed.
func (s *Calls) Change(c remembering.Change) {
	failed := func(err error) {
		s.region.Remembered(remembering.Changed{Set: c.Set, Session: c.Session, Err: err})
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
		told := remembering.Changed{Set: c.Set, Session: c.Session, Err: err, Fenced: errors.Is(err, remember.ErrFenced)}
		if full := (*remember.FullError)(nil); errors.As(err, &full) {
			told.Err, told.Full = nil, full.IDs
		}
		s.region.Remembered(told)
	})
}

// Close forgets a set that this node does not change any more: it has the ids in memory.
func (s *Calls) Close(c remembering.Close) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets[c.Set].session == c.Session {
		delete(s.sets, c.Set)
	}
}

// Ask implements [runtime.StoreCalls], as do the next two: the control machine sends what is for the machines of other
// nodes. What finds its inbox full is asked for again.
func (s *Calls) Ask(t protocol.ExportRequest) {
	s.cfg.Node.Post(control.ImportQuestion{Kind: s.cfg.Kind, Take: t})
}

// Answer sends an answer.
func (s *Calls) Answer(g remembering.Answer) {
	s.cfg.Node.Post(control.ImportAnswer{Kind: s.cfg.Kind, To: g.To, Given: g.Given})
}

// Over says that nothing is left of what was before a layout: once, so it waits for room.
func (s *Calls) Over(layout uint16) {
	s.work(func(error) {}, func(context.Context) {
		s.cfg.Node.PostWait(control.ImportFinished{Kind: s.cfg.Kind, Layout: layout})
	})
}

// change calls the set, and makes an error of a panic.
func change(ctx context.Context, set remember.Set, c remembering.Change) (err error) {
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
func (s *Calls) work(failed func(error), call func(ctx context.Context)) {
	// The goroutine is owned by the node, and ends with the call, which ends with the node's context.
	runs := s.cfg.Node.Go(func() {
		over := false
		defer func() {
			if !over { // The store has ended the goroutine.
				failed(errors.New("the store has ended the goroutine that called it"))
			}
		}()
		ctx, cancel := context.WithTimeout(s.cfg.Node.Context, s.cfg.Limit)
		defer cancel()
		call(ctx)
		over = true
	})
	if !runs {
		failed(errClosing)
	}
}

// told logs a fault of the store, one in a second: a store that is down fails for all shards.
func (s *Calls) told(op string, set remembering.Set, err error) {
	if err == nil || s.cfg.Node.Context.Err() != nil {
		return
	}
	now, logged := time.Now().UnixNano(), s.logged.Load()
	if now-logged < int64(time.Second) || !s.logged.CompareAndSwap(logged, now) {
		return
	}
	all, _ := s.region.Remembering()
	s.cfg.Log.Warn("the store of remembered entities has failed a call, which is repeated", "op", op, "kind", s.cfg.Kind,
		"set", s.shard(set).String(), "failed", all.Failed, "faulty shards", all.Faulty, "unwritten ids", all.Writing, "error", err)
}
