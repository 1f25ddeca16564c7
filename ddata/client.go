// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
)

// What programs call: Get, Update and Delete, each a generic function over a method of the
// replicator that knows no types. A local read asks the table, a local update changes it;
// everything else waits for the machine. A node that does not hold the key changes it through
// one that does: updateAway.

// Get returns the value of a key, as the replicas that the level asks for hold it together.
// What a majority read returns, each later majority read returns too.
//
// Errors: [ErrNotFound], [ErrDeleted], *[TypeError], *[UnansweredError], *[NoQuorumError],
// *[RefusedError], [ErrConsistency], [ErrKey], [ErrUnknownType], [ErrOverloaded], [ErrClosed].
func Get[T crdt.Value[T]](ctx context.Context, h Host, key Key[T], c Consistency) (T, error) {
	var zero T
	e, err := h.Data().get(ctx, key.name, key.typ, c)
	if err != nil {
		return zero, err
	}
	v, ok := e.Value.(T)
	if !ok {
		return zero, &TypeError{Key: key.name, Have: fmt.Sprintf("%T", e.Value), Want: fmt.Sprintf("%T", zero)}
	}
	return v, nil
}

// Update changes the value of a key, or the zero value if there is none, and returns what
// change returned. It waits until as many replicas hold the change as the level asks for.
//
// The function change is given the origin in whose name it changes the value, and returns
// its successor: counter.Add(at, 1). It may run more than once, as long as nothing is stored
// anywhere, and must not call the replicator. It runs on the goroutine of the caller.
//
// The value that change is given is what one replica holds, whatever the level: that of this node, or another where
// this node holds no copy of the key. It may lack what [Get] has returned before, such as on a node that has just
// become a replica. Where a change must not overlook what was read, as when it removes an element or writes over a
// content, it begins with v.Merge(read).
//
// A value that is [crdt.Replacer], as an [crdt.LWWRegister], is given to change as a majority of the replicas holds
// it if the level is that of a majority or above: one round trip more. So what was confirmed is read later, whatever
// the clocks of the writers say (rule of the register of Attiya, Bar-Noy and Dolev 1995, with several writers).
//
// Errors: *[FunctionError], [ErrDeleted], *[TypeError] and *[NotStoredError], after which
// nothing has changed; *[UnconfirmedError], *[NoQuorumError] and *[RefusedError], after which
// the change is stored on some nodes and goes on to the others.
func Update[T crdt.Value[T]](ctx context.Context, h Host, key Key[T], c Consistency, change func(at crdt.Origin, v T) (T, error)) (T, error) {
	var after, read T
	_, replacing := any(after).(crdt.Replacer)
	if replacing = replacing && c.name >= protocol.Majority; replacing {
		var err error
		if read, err = Get(ctx, h, key, Majority()); err != nil && !errors.Is(err, ErrNotFound) {
			return after, unread(key.name, err)
		}
	}
	err := h.Data().update(ctx, key.name, key.typ, c, func(at crdt.Origin, v any) (any, error) {
		before, ok := v.(T)
		if !ok {
			return nil, &TypeError{Key: key.name, Have: fmt.Sprintf("%T", v), Want: fmt.Sprintf("%T", after)}
		}
		if replacing {
			before = before.Merge(read)
		}
		next, err := change(at, before)
		if err != nil {
			return nil, err
		}
		after = next
		return next, nil
	})
	return after, err
}

// unread is the error of a change that was not made, since what it replaces could not be read: that of a call that no
// replica can do, or that nothing is stored.
func unread(key string, err error) error {
	if _, typed := errors.AsType[*TypeError](err); typed {
		return err
	}
	for _, wrong := range []error{ErrDeleted, ErrKey, ErrConsistency, ErrUnknownType} {
		if errors.Is(err, wrong) {
			return err
		}
	}
	return &NotStoredError{Key: key, Err: err}
}

// Delete deletes a key, whatever is there. Updates of the key fail with [ErrDeleted] until
// all replicas have agreed that they know of the deletion; then the key can be used again.
//
// Errors: as those of [Update].
func Delete[T crdt.Value[T]](ctx context.Context, h Host, key Key[T], c Consistency) error {
	return h.Data().remove(ctx, key.name, key.typ, c)
}

// group returns the group of a key and the type under which the replicator knows the type of
// the key, or why the key cannot be used.
func (r *Replicator) group(key string, typ crdt.Type, c Consistency) (*group, crdt.Type, error) {
	if typ == nil {
		return nil, nil, fmt.Errorf("ddata: %w: it was not made by NewKey", ErrKey)
	}
	if err := c.validate(); err != nil {
		return nil, nil, ofKey(key, err)
	}
	known := r.types[typ.Name()]
	if known == nil {
		return nil, nil, ofKey(key, fmt.Errorf("%w: %s", ErrUnknownType, typ.Name()))
	}
	if r.ended.Load() {
		return nil, nil, ofKey(key, r.closed())
	}
	return r.groups[r.keys.of(key)], known, nil
}

// routeOf returns the route of a group as soon as one is known.
func (r *Replicator) routeOf(ctx context.Context, g *group) (*currentRoute, error) {
	for {
		route := g.route.Load()
		if route.Gen > 0 {
			return route, nil
		}
		if err := r.rerouted(ctx, route); err != nil {
			return nil, fmt.Errorf("no replica is known yet: %w", err)
		}
	}
}

// get reads a key.
func (r *Replicator) get(ctx context.Context, key string, typ crdt.Type, c Consistency) (table.Entry, error) {
	g, typ, err := r.group(key, typ, c)
	if err != nil {
		return table.Entry{}, err
	}
	began := time.Now()
	found, waited, err := r.read(ctx, g, key, c)
	var e table.Entry
	if err == nil {
		e, err = present(key, found, typ)
	}
	if waited {
		r.metrics.operated(ctx, opGet, c, began, err)
	}
	return e, err
}

// read reads the entry of a key, whatever type it has; nil if there is none. Waited says that other
// replicas were asked.
func (r *Replicator) read(ctx context.Context, g *group, key string, c Consistency) (found *table.Entry, waited bool, err error) {
	route, err := r.routeOf(ctx, g)
	if err != nil {
		return nil, false, &UnansweredError{Key: key, Err: err}
	}
	level, own := c.level(), false
	if c.local() {
		if route.Here(table.BucketOf(key)) {
			if e, ok := g.table.Get(key); ok {
				found = &e
			}
			return found, false, nil
		}
		level, own = protocol.Level{Name: protocol.Count, N: 1}, true
	}
	call := r.calls.begin(g, key)
	defer call.end()
	o, _ := call.finish(ctx, protocol.Read{Op: call.op, Group: g.index, Key: key, Level: level, Limit: limitOf(ctx), Own: own})
	if err := o.readError(key); err != nil {
		return nil, true, err
	}
	return o.Entry, true, nil
}

// present returns an entry, nil for none, if it has a value of a type.
func present(key string, e *table.Entry, typ crdt.Type) (table.Entry, error) {
	switch {
	case e == nil || e.State == table.Expired:
		return table.Entry{}, ofKey(key, ErrNotFound)
	case e.State == table.Deleted:
		return table.Entry{}, ofKey(key, ErrDeleted)
	case e.Type == nil:
		return table.Entry{}, unreadable(key, *e, typ)
	case e.Type.Name() != typ.Name():
		return table.Entry{}, &TypeError{Key: key, Have: e.Type.Name(), Want: typ.Name()}
	default:
		return *e, nil
	}
}

// unreadable returns the error about an entry of another node whose value this node cannot
// decode: its type is unknown here, or the decoder refuses the value.
func unreadable(key string, e table.Entry, typ crdt.Type) error {
	u, _ := e.Value.(table.Unknown) // Whatever is decoded without a type.
	if u.Err == nil {
		return &TypeError{Key: key, Have: u.Name, Want: typ.Name()}
	}
	return &RefusedError{Key: key, Reason: u.Reason().Error(), Err: u.Reason()}
}

// update changes a key. A change that was made is never made again: the machine goes on with it until it is confirmed
// or the context ends, also when this node has dropped it. Only when nothing was made does change run again.
func (r *Replicator) update(ctx context.Context, key string, typ crdt.Type, c Consistency, change func(crdt.Origin, any) (any, error)) error {
	g, typ, err := r.group(key, typ, c)
	if err != nil {
		return err
	}
	bucket := table.BucketOf(key)
	for {
		route, err := r.routeOf(ctx, g)
		if err != nil {
			return &NotStoredError{Key: key, Err: err}
		}
		if !route.Here(bucket) {
			return r.updateFrom(ctx, g, key, typ, c, change)
		}
		made, err := g.table.Update(key, typ, change)
		if err != nil {
			return tableError(key, err)
		}
		if c.local() && !g.durable {
			r.spreadSoon(g)
			return nil
		}
		if made.From == made.To {
			if _, there := g.table.Get(key); !there {
				return nil // Nothing was made of nothing: there is nothing that replicas could hold.
			}
		}
		again, err := r.confirm(ctx, g, route, &made, c)
		if !again {
			return err
		}
		if err := r.pause(ctx, route); err != nil {
			return &NotStoredError{Key: key, Err: err}
		}
	}
}

// confirm waits until a change is confirmed that was made in the table of this node by a route. Again says that change
// has changed nothing, and that this node does not hold the key any more of which that was so.
func (r *Replicator) confirm(ctx context.Context, g *group, route *currentRoute, made *table.Change, c Consistency) (again bool, err error) {
	began, key := time.Now(), made.Key
	call := r.calls.begin(g, key)
	defer call.end()
	o, _ := call.finish(ctx, protocol.Write{
		Op: call.op, Group: g.index, Change: *made, Stamp: route.Gen, Turn: route.Turn, Level: c.level(), Limit: limitOf(ctx),
	})
	if o.Verdict == protocol.Lost {
		return true, nil
	}
	if e, ok := g.table.Get(key); len(o.answered) == 0 && ok && e.Versions.Of(made.Origin) >= made.To {
		o.answered = []string{r.self.String()}
	}
	err = o.writeError(key)
	r.metrics.operated(ctx, opUpdate, c, began, err)
	return false, err
}

// pause waits until an operation that found nothing where it was sent is worth trying again.
func (r *Replicator) pause(ctx context.Context, route *currentRoute) error {
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-route.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.ctx.Done():
		return r.closed()
	}
}

// updateFrom changes a key from a node that does not hold it, over and over until the key
// has stayed what it was while it was changed.
func (r *Replicator) updateFrom(ctx context.Context, g *group, key string, typ crdt.Type, c Consistency, change func(crdt.Origin, any) (any, error)) error {
	began := time.Now()
	for {
		route := g.route.Load()
		again, err := r.updateAway(ctx, g, key, typ, c, change)
		if !again {
			r.metrics.operated(ctx, opUpdate, c, began, err)
			return err
		}
		if err := r.pause(ctx, route); err != nil {
			return &NotStoredError{Key: key, Err: err}
		}
	}
}

// updateAway changes a key through a replica: it fetches the value, changes it here in the
// name of the replica, and asks the replica to store the delta. Again says that nothing is
// stored anywhere, since the value has changed meanwhile or the replica did not hold it any more.
func (r *Replicator) updateAway(ctx context.Context, g *group, key string, typ crdt.Type, c Consistency, change func(crdt.Origin, any) (any, error)) (again bool, err error) {
	call := r.calls.begin(g, key)
	defer call.end()
	b, err := call.fetch(ctx)
	if err != nil {
		return false, err
	}
	if b.Verdict == protocol.Lost {
		return true, nil
	}
	delta, changed, err := r.changed(key, typ, b, change)
	if err != nil || !changed {
		// Nothing is to be stored: the replica need not be told.
		_ = r.handle.Post(protocol.Cancel{Op: call.op}) // What is not forgotten ends with its time.
		return false, err
	}
	_, whole := typ.Delta(typ.Zero())
	o, posted := call.finish(ctx, protocol.CommitDelta{
		Op: call.op, Group: g.index, Key: key, Type: typ, Delta: delta, Whole: whole, Base: b.Base, Level: c.level(), Limit: limitOf(ctx),
	})
	switch {
	case !posted:
		return false, &NotStoredError{Key: key, Err: o.err}
	case o.Verdict == protocol.Lost || o.Verdict == protocol.Conflict:
		return true, nil
	default:
		return false, o.writeError(key)
	}
}

// fetch asks a replica for the entry of the key.
func (c *call) fetch(ctx context.Context) (protocol.FetchResult, error) {
	answer, _, err := c.ask(ctx, protocol.FetchEntry{Op: c.op, Group: c.group.index, Key: c.key, Limit: limitOf(ctx)})
	b, ok := answer.(protocol.FetchResult)
	if d, done := answer.(protocol.Done); done {
		b.Verdict, b.Missing = d.Verdict, d.Missing
	}
	switch {
	case ok && (b.Verdict == protocol.Confirmed || b.Verdict == protocol.Lost):
		return b, nil
	case b.Verdict == protocol.HomesLost:
		err = &HomesLostError{NoQuorumError{Key: c.key, Missing: namesOf(c.group.route.Load().Route, b.Missing)}}
	case b.Verdict == protocol.Overloaded:
		err = ErrOverloaded
	case b.Verdict == protocol.Gone:
		err = ErrClosed
	case err == nil:
		err = errNoHome
	}
	return b, &NotStoredError{Key: c.key, Err: err}
}

// errNoHome is the cause when no replica has answered in time.
var errNoHome = errors.New("no replica that holds the key has answered")

// changed runs an update function on a fetched entry and returns what it has added.
func (r *Replicator) changed(key string, typ crdt.Type, b protocol.FetchResult, change func(crdt.Origin, any) (any, error)) (delta any, changed bool, err error) {
	before := typ.Zero()
	if b.Entry != nil {
		e, err := present(key, b.Entry, typ)
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			return nil, false, &NotStoredError{Key: key, Err: refused.Err}
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, false, err
		}
		if err == nil {
			before = e.Value
		}
	}
	size := 0
	delta, changed, err = table.Run(typ, b.At, before, func(at crdt.Origin, v any) (any, error) {
		after, err := change(at, v)
		if err == nil && typ.Is(after) {
			size = typ.Size(after)
		}
		return after, err
	})
	if err != nil {
		return nil, false, tableError(key, err)
	}
	if size > r.cfg.MaxValueBytes {
		return nil, false, &NotStoredError{Key: key, Err: fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, r.cfg.MaxValueBytes)}
	}
	return delta, changed, nil
}

// remove deletes a key.
func (r *Replicator) remove(ctx context.Context, key string, typ crdt.Type, c Consistency) error {
	g, _, err := r.group(key, typ, c)
	if err != nil {
		return err
	}
	began := time.Now()
	for {
		route, err := r.routeOf(ctx, g)
		if err != nil {
			return &NotStoredError{Key: key, Err: err}
		}
		again, err := r.removeOnce(ctx, g, key, c, route)
		if !again {
			r.metrics.operated(ctx, opDelete, c, began, err)
			return err
		}
		if err := r.pause(ctx, route); err != nil {
			return &NotStoredError{Key: key, Err: err}
		}
	}
}

// removeOnce deletes a key. Again says that nothing was stored, since the replica that was
// asked does not hold the key any more.
func (r *Replicator) removeOnce(ctx context.Context, g *group, key string, c Consistency, route *currentRoute) (again bool, err error) {
	call := r.calls.begin(g, key)
	defer call.end()
	o, posted := call.finish(ctx, protocol.Delete{Op: call.op, Group: g.index, Key: key, Level: c.level(), Limit: limitOf(ctx)})
	switch {
	case !posted:
		return false, &NotStoredError{Key: key, Err: o.err}
	case o.Verdict == protocol.Lost:
		return true, nil
	case o.Verdict == protocol.Overloaded && route.Here(table.BucketOf(key)):
		return false, &NotStoredError{Key: key, Err: ErrOverloaded}
	default:
		return false, o.writeError(key)
	}
}
