// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/store"
)

// A refusal changes nothing: each kind of entity orders each thing that a call can order, and refuses. What is left
// must be what was there before. The entities of the table are told apart by what their contexts can do (turns).

// turns is what a call can do, whatever the kind of its entity. What a kind has not is nil.
type turns struct {
	*sharding.Context

	total     func() int64
	add       func(int64)
	erase     func()
	afterSave func(func() error)
	after     func(name string, d time.Duration, f func() error)
}

// traces is what calls have left behind.
type traces struct {
	mu     sync.Mutex
	rings  map[string]int
	starts int
}

func (w *traces) ring(name string) func() error {
	return func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.rings[name]++
		return nil
	}
}

const (
	lookAt  = -1 // Replies with the sum.
	begin   = -2 // Adds five, and sets the timer "kept".
	refuse  = -3 // Less the number of an order: orders it, and refuses.
	refused = 7  // The reply then.
)

// order is something that a call orders before it refuses.
type order struct {
	name string
	do   func(c turns, w *traces)
}

func orders() []order {
	return []order{
		{"nothing", func(turns, *traces) {}},
		{"a change", func(c turns, _ *traces) { c.add(100) }},
		{"a change and its contrary", func(c turns, _ *traces) { c.add(100); c.add(-100) }},
		{"an end of the state", func(c turns, _ *traces) { c.erase() }},
		{"something after the save", func(c turns, w *traces) {
			c.add(1)
			c.afterSave(w.ring("after the save"))
		}},
		{"a timer", func(c turns, w *traces) { c.after("late", time.Second, w.ring("late")) }},
		{"a timer at once", func(c turns, w *traces) { c.after("late", 0, w.ring("late")) }},
		{"another timer in place of one", func(c turns, w *traces) { c.after("kept", time.Second, w.ring("late")) }},
		{"the end of a timer", func(c turns, w *traces) {
			if !c.CancelTimer("kept") || c.CancelTimer("kept") {
				_ = w.ring("a timer that is not there")()
			}
		}},
		{"a receive timeout", func(c turns, _ *traces) { c.SetReceiveTimeout(time.Second) }},
		{"its own stop", func(c turns, _ *traces) { c.Passivate() }},
		{"another reply", func(c turns, _ *traces) { _ = c.Reply(wrapperspb.Int64(1)) }},
	}
}

// handle handles a message of any kind of entity.
func (w *traces) handle(c turns, m number) error {
	switch v := m.GetValue(); v {
	case lookAt:
		return c.Reply(wrapperspb.Int64(c.total()))
	case begin:
		c.add(5)
		c.after("kept", 30*time.Second, w.ring("kept"))
		return c.Reply(m)
	default:
		orders()[refuse-v].do(c, w)
		return sharding.Refuse(wrapperspb.Int64(refused))
	}
}

func (w *traces) started() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts++
}

// bare is an entity with a memory of its own. It looks before it changes anything, as such an entity has to.
type bare struct {
	w   *traces
	sum int64
}

func (b *bare) Receive(c *sharding.Context, m number) error {
	t := turns{Context: c, total: func() int64 { return b.sum }, erase: func() {}, afterSave: func(func() error) {}}
	t.add = func(n int64) {
		if m.GetValue() == begin {
			b.sum += n
		}
	}
	t.after = func(name string, d time.Duration, f func() error) {
		c.After(name, d, func(*sharding.Context) error { return f() })
	}
	return b.w.handle(t, m)
}

func turnsOf(c *state.Context[counter], add func(int64)) turns {
	return turns{
		Context: c.Context, add: add, erase: c.Erase, afterSave: c.AfterSave, total: func() int64 { return c.State().Sum },
		after: func(name string, d time.Duration, f func() error) {
			c.After(name, d, func(*state.Context[counter]) error { return f() })
		},
	}
}

// refusers returns the New of each kind of entity.
func refusers(w *traces) map[string]func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
	return map[string]func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number]{
		"its own memory": func(*state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return func(*sharding.Context) sharding.Entity[number] { w.started(); return &bare{w: w} }
		},
		"a state": func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			create := state.Snapshots(k, state.JSON[counter](), func(c *state.Context[counter], m number) error {
				return w.handle(turnsOf(c, func(n int64) { c.State().Sum += n }), m)
			})
			return func(c *sharding.Context) sharding.Entity[number] { w.started(); return create(c) }
		},
		"events": func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			apply := func(s *counter, e *int64) { s.Sum += *e }
			create := state.Events(k, state.JSON[counter](), state.JSON[int64](), apply,
				func(c *state.Context[counter], emit func(*int64), m number) error {
					return w.handle(turnsOf(c, func(n int64) { emit(&n) }), m)
				})
			return func(c *sharding.Context) sharding.Entity[number] { w.started(); return create(c) }
		},
	}
}

// A refusal leaves the state, the record in the store, the timers and the instance as they were, and its reply is the
// answer.
func TestARefusalChangesNothing(t *testing.T) {
	for kind := range refusers(nil) {
		for i, o := range orders() {
			t.Run(kind+"/"+o.name, func(t *testing.T) {
				inBubble(t, func(w *world) {
					left := &traces{rings: map[string]int{}}
					w.kind = refusers(left)[kind]
					n := w.start()
					n.sum("a", begin, begin)
					before := w.store.record("a")
					n.sum("a", refuse-int64(i), refused)
					n.sum("a", lookAt, 5)
					<-time.After(time.Minute)
					n.sum("a", lookAt, 5)
					left.mu.Lock()
					defer left.mu.Unlock()
					require.Equal(t, map[string]int{"kept": 1}, left.rings)
					require.Equal(t, 1, left.starts, "the instance stays")
					after := w.store.record("a")
					require.Equal(t, before.Version, after.Version)
					require.Equal(t, before.Snapshot, after.Snapshot)
					require.Equal(t, before.Events, after.Events)
				})
			})
		}
	}
}

// A refusal after the save comes too late: it is a failure.
func TestARefusalAfterTheSaveIsAFailure(t *testing.T) {
	inBubble(t, func(w *world) {
		w.kind = func(k *state.Keeper) func(*sharding.Context) sharding.Entity[number] {
			return state.Snapshots(k, state.JSON[counter](), func(c *state.Context[counter], m number) error {
				if m.GetValue() == 1 {
					c.AfterSave(func() error { return sharding.Refuse(wrapperspb.Int64(refused)) })
				}
				return add(c, m)
			})
		}
		n := w.start()
		n.fails("a", 1, "after the save")
		n.sum("a", 2, 3)
	})
}

// Where the state cannot be read again the refusal is a failure, which changes nothing either.
func TestARefusalWithoutTheStoreIsAFailure(t *testing.T) {
	inBubble(t, func(w *world) {
		left := &traces{rings: map[string]int{}}
		w.kind = refusers(left)["a state"]
		n := w.start()
		n.sum("a", begin, begin)
		w.store.set(func(d *disturbed) {
			d.loads = func([]store.Claim) ([]store.Record, error) { return nil, errors.New("down") }
		})
		n.fails("a", refuse-1, "")
		w.store.set(func(d *disturbed) { d.loads = nil })
		n.sum("a", lookAt, 5)
	})
}
