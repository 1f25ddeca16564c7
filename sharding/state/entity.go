// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/state/store"
)

// An entity with a state: Start claims and loads its record; each message, and each timer, is a turn:
// the function of the program changes the state in memory, then what has changed is saved, and only
// then the turn returns, so that the runtime lets the reply go. A turn that fails in any of these ends
// the instance, and with it the state in memory. One that the function refuses leaves the instance, whose state is
// read from the store again if the function had changed it.

// Epoch numbers the homes of a shard, see [sharding.Epoch].
type Epoch = sharding.Epoch

// Context is what a function of the program gets with each message: everything of
// [sharding.Context], and the state. It is valid during that call.
type Context[T any] struct {
	*sharding.Context

	of *instance[T]
}

// State returns the state of the entity, which the function may change. A state that was never saved,
// or was erased, is the zero value of T. A reply must not share memory with it.
func (c *Context[T]) State() *T { return &c.of.state }

// Version returns how often the state was saved, each event counted. A turn that is under way is not
// counted.
func (c *Context[T]) Version() uint64 { return c.of.handle.Version() }

// Erase has nothing be saved in place of the state, and of all events: the state is the zero value
// again. A number of some 60 bytes stays in the store, so that earlier owners stay locked out.
func (c *Context[T]) Erase() {
	var none T
	c.of.state, c.of.erased = none, true
	c.of.events = nil
}

// AfterSave runs f when the changes of this turn are saved, before the reply leaves: what the function
// sends by itself would leave before the save. If the node ends between the two, f does not run. An
// error ends the instance, though the changes are saved: it is too late for a refusal. f must change nothing of the
// state.
func (c *Context[T]) AfterSave(f func() error) { c.of.after = append(c.of.after, f) }

// After runs f once after a time, as a turn of its own: what it changes is saved. See
// [sharding.Context.After].
func (c *Context[T]) After(name string, d time.Duration, f func(c *Context[T]) error) {
	of := c.of
	c.Context.After(name, d, func(sc *sharding.Context) error {
		return of.turn(sc, func(c *Context[T]) error { return f(c) })
	})
}

// Snapshots returns the [sharding.Kind.New] of entities whose state is saved as a whole, whenever a
// message has changed it.
//
// receive handles a message as [sharding.Entity] does: it may change the state and reply. The reply
// leaves when the change is saved. An error ends the instance, and takes the change back. A [sharding.RefusalError]
// takes it back too, with all else of the turn (Erase, AfterSave, timers, the reply), and leaves the instance: a
// state that was changed, as its codec writes it, is read from the store again. What the codec does not write is not
// taken back.
func Snapshots[C, T any](k *Keeper, codec Codec[T], receive func(c *Context[T], message C) error) func(*sharding.Context) sharding.Entity[C] {
	return func(*sharding.Context) sharding.Entity[C] {
		return &entity[C, T]{instance: &instance[T]{keeper: k, codec: codec}, receive: receive}
	}
}

// Events returns the [sharding.Kind.New] of entities that save what has happened to them. Their state
// is what apply makes of all events, in their order; each turn saves its own, and after
// [Config.SnapshotEvery] of them the state in place of all before.
//
// receive handles a message as with [Snapshots], but changes the state by emit alone, which applies an
// event at once; timers of the entity may use it too. A refusal takes the events of its turn back. apply must do the
// same for the same event at any time: it reads no clock and sends nothing.
func Events[C, T, E any](
	k *Keeper, codec Codec[T], events Codec[E], apply func(state *T, event *E),
	receive func(c *Context[T], emit func(*E), message C) error,
) func(*sharding.Context) sharding.Entity[C] {
	return func(*sharding.Context) sharding.Entity[C] {
		of := &instance[T]{keeper: k, codec: codec, sourced: true}
		of.replay = func(v store.Value) error {
			var event E
			if err := decoded(events, v, &event); err != nil {
				return err
			}
			apply(&of.state, &event)
			return nil
		}
		emit := func(event *E) {
			v, err := encoded(events, event)
			if err != nil {
				of.fault = errors.Join(of.fault, fmt.Errorf("an event cannot be encoded: %w", err))
				return
			}
			of.events = append(of.events, v)
			apply(&of.state, event)
		}
		return &entity[C, T]{instance: of, receive: func(c *Context[T], message C) error { return receive(c, emit, message) }}
	}
}

// entity adds the type of the messages to an instance.
type entity[C, T any] struct {
	*instance[T]

	receive func(*Context[T], C) error
}

var _ sharding.Starter = (*entity[any, any])(nil)

// Receive implements [sharding.Entity].
func (e *entity[C, T]) Receive(c *sharding.Context, message C) error {
	return e.turn(c, func(c *Context[T]) error { return e.receive(c, message) })
}

// instance is one instance of an entity, with its record.
type instance[T any] struct {
	keeper  *Keeper
	codec   Codec[T]
	sourced bool                      // The state is saved as events.
	replay  func(v store.Value) error // Applies a stored event; of states that are saved as events.

	handle *Handle
	state  T
	saved  [sha256.Size]byte // Of a state that is saved as a whole: the sum of what the store has, or of the zero state.
	since  uint64            // Events after the last snapshot.

	// Of the turn under way.
	events []store.Value
	after  []func() error
	erased bool
	fault  error
}

// Start claims the record of the entity and loads the state.
func (i *instance[T]) Start(c *sharding.Context) error {
	if i.keeper == nil {
		return errNoKeeper
	}
	return i.load(c)
}

// load claims the record, and makes the state of it.
func (i *instance[T]) load(c *sharding.Context) error {
	key := store.Key{Kind: c.Kind(), ID: c.ID()}
	handle, record, err := i.keeper.Open(c.Context(), key, c.Epoch())
	if err != nil {
		return err
	}
	i.handle = handle
	if err := i.restore(record); err != nil {
		return &Error{Op: "load", Key: key, Owner: record.Owner, Found: record.Head, Err: err}
	}
	return nil
}

// restore makes the state of a record.
func (i *instance[T]) restore(r store.Record) error {
	if r.Snapshot.Form > 0 {
		if err := decoded(i.codec, r.Snapshot, &i.state); err != nil {
			return fmt.Errorf("the snapshot: %w", err)
		}
	}
	if len(r.Events) > 0 && !i.sourced {
		return fmt.Errorf("%w: it has %d events, and the entity saves its state as a whole", ErrUnreadable, len(r.Events))
	}
	for n, e := range r.Events {
		if err := i.replay(e); err != nil {
			return fmt.Errorf("event %d: %w", r.Version-uint64(len(r.Events)-n-1), err)
		}
	}
	i.since = uint64(len(r.Events))
	if i.sourced {
		return nil
	}
	v, err := encoded(i.codec, &i.state)
	i.saved = sha256.Sum256(v.Bytes)
	return err
}

// turn runs a function of the program and saves what it has changed.
func (i *instance[T]) turn(c *sharding.Context, f func(*Context[T]) error) error {
	i.events, i.after, i.erased, i.fault = nil, nil, false, nil
	if err := f(&Context[T]{c, i}); err != nil {
		if _, refused := errors.AsType[*sharding.RefusalError](err); refused {
			return cmp.Or(i.undo(c), err)
		}
		return err
	}
	if i.fault != nil {
		return i.fault
	}
	if err := i.save(c); err != nil {
		return err
	}
	i.events, i.erased = nil, false
	for _, f := range i.after {
		if err := f(); err != nil {
			return fmt.Errorf("after the save: %s", err) //nolint:errorlint // Not wrapped: it is no refusal, since the changes are saved.
		}
	}
	if len(i.events) > 0 || i.erased {
		return errLate
	}
	return nil
}

// undo takes back what a refused turn has changed. That of a state saved as a whole is what its codec writes. An
// error ends the instance, and takes all back as well.
func (i *instance[T]) undo(c *sharding.Context) error {
	changed := i.erased || len(i.events) > 0
	if !i.sourced && !changed {
		v, err := encoded(i.codec, &i.state)
		changed = err != nil || sha256.Sum256(v.Bytes) != i.saved
	}
	if !changed {
		return nil
	}
	var none T
	i.state, i.since = none, 0
	return i.load(c)
}

// errLate ends an instance whose state in memory is not that of the store any more.
var errLate = errors.New("state: changed after the save: what AfterSave runs must change nothing")

// save saves what a turn has changed, if it has changed anything.
func (i *instance[T]) save(c *sharding.Context) error {
	events := uint64(len(i.events))
	if i.sourced && !i.erased && i.since+events < uint64(i.keeper.cfg.SnapshotEvery) {
		i.since += events
		if events == 0 {
			return nil
		}
		return i.handle.SaveEvents(c.Context(), i.events)
	}
	if i.sourced && events == 0 && !i.erased {
		return nil
	}
	v, err := encoded(i.codec, &i.state)
	if err != nil {
		return fmt.Errorf("state: the state of %s %q cannot be encoded: %w", c.Kind(), c.ID(), err)
	}
	sum := sha256.Sum256(v.Bytes)
	if !i.sourced && !i.erased && sum == i.saved {
		return nil
	}
	if i.erased && events == 0 && sum == i.blank() {
		v = store.Value{}
	}
	i.saved, i.since = sum, 0
	return i.handle.SaveSnapshot(c.Context(), v, events)
}

// blank returns the sum of the zero state.
func (i *instance[T]) blank() [sha256.Size]byte {
	var none T
	v, _ := encoded(i.codec, &none) // A state that cannot be encoded is not blank.
	return sha256.Sum256(v.Bytes)
}
