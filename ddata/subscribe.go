// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package ddata

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/table"
)

// Subscriptions as programs see them. One to a key begins with the value that is there; one
// to a prefix first goes through all keys that are there, bucket by bucket, and then through
// those that have changed.

// EventKind says what has happened to a key.
type EventKind uint8

// The kinds of events.
const (
	// Changed: the key has another value, or is told for the first time. Changes between
	// two events are told together.
	Changed EventKind = iota + 1
	// Deleted: the key was deleted. A subscriber to a prefix that reads only after the
	// tombstone was collected is told so also of a key that has expired, or that came and
	// went since it has read last.
	Deleted
	// Expired: the key has vanished since it was not changed for long.
	Expired
	// Missed: a subscriber to a prefix was so slow that changes of keys were dropped, or this
	// node has forgotten what it held, to take it from the others anew. All values that are
	// there follow, as at the beginning; which keys were deleted meanwhile is not told. A
	// subscriber to one key is told so when its node has forgotten a value that it was told of:
	// the value counts no more, and that of the others follows when it comes.
	Missed
)

// String returns the name of the kind.
func (k EventKind) String() string {
	switch k {
	case Changed:
		return "changed"
	case Deleted:
		return "deleted"
	case Expired:
		return "expired"
	case Missed:
		return "missed"
	default:
		return "none"
	}
}

// Event is what a subscriber is told.
type Event[T crdt.Value[T]] struct {
	Kind  EventKind
	Key   Key[T] // The zero Key for Missed.
	Value T      // For Changed.
	N     int    // For Missed: of how many keys changes were dropped, or values forgotten, at least 1.
}

// Subscription tells of one key what this node's replica holds. It is for one goroutine at a
// time, except Close.
type Subscription[T crdt.Value[T]] struct {
	r     *Replicator
	key   Key[T]
	err   error // Why the key cannot be subscribed to.
	sub   *subscriber
	typ   crdt.Type
	group *group
	told  bool   // The last event was a value.
	wipes uint64 // How often the table had been wiped at the beginning, or when Missed was told last.
}

// PrefixSubscription tells of all keys of a type whose names begin alike what this node's
// replicas hold. It is for one goroutine at a time, except Close.
type PrefixSubscription[T crdt.Value[T]] struct {
	r   *Replicator
	typ crdt.Type
	err error // Why nothing can be subscribed to.
	sub *subscriber

	// The walk through what is there: the keys that were found, and where it goes on.
	found  []string
	group  int // The index of the group, as many as there are groups at the end.
	bucket int

	// wipes has, for each group, how often its table had been wiped when the subscriber was shown everything.
	// A key that is not there after another time was not deleted: Missed follows.
	wipes []uint64

	// gone are the keys that the subscriber knows to be deleted or expired, until their
	// tombstones are collected.
	gone map[string]struct{}
}

// Subscribe subscribes to a key. The first event tells of the value that is there, if there
// is one. A subscriber that does not read costs the name of one key.
func Subscribe[T crdt.Value[T]](h Host, key Key[T]) *Subscription[T] {
	r := h.Data()
	s := &Subscription[T]{r: r, key: key}
	if s.group, s.typ, s.err = r.group(key.name, key.typ, Local()); s.err == nil {
		s.sub = r.hub.subscribe(key.name, false)
		s.sub.add(key.name)
		s.wipes = s.group.table.Wipes()
	}
	return s
}

// Next waits for the next event, until ctx ends. Errors: [ErrNotHere] on a node that does not
// hold the key, after which Next may be called again; *[TypeError]; [ErrClosed] when the
// subscription or the node has ended.
func (s *Subscription[T]) Next(ctx context.Context) (Event[T], error) {
	for {
		if s.err != nil {
			return Event[T]{}, s.err
		}
		t, err := s.sub.next(ctx, s.r)
		if err != nil {
			return Event[T]{}, err
		}
		if t.missed > 0 {
			s.sub.add(s.key.name) // What is there now follows.
			s.wipes = s.group.table.Wipes()
			if !s.told {
				continue
			}
			s.told = false
			return Event[T]{Kind: Missed, N: 1}, nil
		}
		if err := s.here(ctx); err != nil {
			s.sub.add(t.key)
			return Event[T]{}, err
		}
		e, ok := s.group.table.Get(t.key)
		if ok && e.Type != nil && e.Type.Name() != s.typ.Name() {
			return Event[T]{}, &TypeError{Key: t.key, Have: e.Type.Name(), Want: s.typ.Name()}
		}
		event, news := eventOf[T](s.key, e, ok)
		if !ok && s.told && s.group.table.Wipes() == s.wipes { // It was deleted, and the tombstone is collected.
			event.Kind, news = Deleted, true
		}
		if news {
			s.told = event.Kind == Changed
			return event, nil
		}
	}
}

// here waits until this node holds what it is to hold, and returns an error if the key is
// not among that.
func (s *Subscription[T]) here(ctx context.Context) error {
	for {
		route, err := s.r.routeOf(ctx, s.group)
		switch {
		case err != nil:
			return err
		case route.Here(table.BucketOf(s.key.name)):
			return nil
		case s.group.replica == 0 || route.Holds:
			return ofKey(s.key.name, ErrNotHere)
		}
		if err := s.r.rerouted(ctx, route); err != nil {
			return err
		}
	}
}

// Close ends the subscription. Calling it again does nothing.
func (s *Subscription[T]) Close() {
	if s.sub != nil {
		s.sub.close()
	}
}

// SubscribePrefix subscribes to all keys of a type whose names begin with the prefix, which
// may be empty, as far as this node holds them. First it tells of those that are there. A
// subscriber that does not read costs one name for each key that has changed, up to 65,536,
// and is then told [Missed].
func SubscribePrefix[T crdt.Value[T], P decoder[T]](h Host, prefix string) *PrefixSubscription[T] {
	r := h.Data()
	s := &PrefixSubscription[T]{r: r, gone: map[string]struct{}{}}
	_, s.typ, s.err = r.group(prefix, crdt.TypeOf[T, P](), Local())
	if s.err == nil && !slices.ContainsFunc(r.groups, func(g *group) bool { return g.replica != 0 }) {
		s.err = ofKey(prefix, ErrNotHere)
	}
	if s.err == nil {
		s.sub = r.hub.subscribe(prefix, true)
		s.anew()
	}
	return s
}

// anew has the subscriber shown everything.
func (s *PrefixSubscription[T]) anew() {
	s.found, s.group, s.bucket, s.wipes = nil, 0, 0, s.wipes[:0]
	clear(s.gone)
	for _, g := range s.r.groups {
		s.wipes = append(s.wipes, g.table.Wipes())
	}
}

// Next waits for the next event, until ctx ends. Keys of another type are passed over.
// Errors: [ErrNotHere] on a node that holds no keys; [ErrClosed] when the subscription or the
// node has ended.
func (s *PrefixSubscription[T]) Next(ctx context.Context) (Event[T], error) {
	for {
		if s.err != nil {
			return Event[T]{}, s.err
		}
		key, missed, err := s.nextKey(ctx)
		switch {
		case err != nil:
			return Event[T]{}, err
		case missed > 0:
			s.anew()
			return Event[T]{Kind: Missed, N: missed}, nil
		case key == "":
			continue
		}
		if event, news := s.eventOf(key); news {
			return event, nil
		}
	}
}

// eventOf returns what is to be told of a key, false for nothing. A key of which even the
// tombstone is gone was deleted, unless this node has ceased to be one of those that hold it, or has
// forgotten all that it held.
func (s *PrefixSubscription[T]) eventOf(name string) (event Event[T], news bool) {
	index, key := s.r.keys.of(name), Key[T]{name: name, typ: s.typ}
	g := s.r.groups[index]
	_, known := s.gone[name]
	delete(s.gone, name)
	e, ok := g.table.Get(name)
	switch {
	case !ok:
		return Event[T]{Kind: Deleted, Key: key}, !known && g.route.Load().Here(table.BucketOf(name)) && g.table.Wipes() == s.wipes[index]
	case e.Type != nil && e.Type.Name() != s.typ.Name():
		return event, false
	}
	if event, news = eventOf[T](key, e, true); news && event.Kind != Changed {
		s.gone[name] = struct{}{}
	}
	return event, news
}

// Close ends the subscription. Calling it again does nothing.
func (s *PrefixSubscription[T]) Close() {
	if s.sub != nil {
		s.sub.close()
	}
}

// nextKey returns the next key of the walk, or one that has changed; "" for neither yet.
func (s *PrefixSubscription[T]) nextKey(ctx context.Context) (key string, missed int, err error) {
	if len(s.found) > 0 {
		key, s.found = s.found[0], s.found[1:]
		return key, 0, nil
	}
	if s.group < len(s.r.groups) {
		return "", 0, s.walk(ctx)
	}
	t, err := s.sub.next(ctx, s.r)
	return t.key, t.missed, err
}

// walk finds some more keys that are there.
func (s *PrefixSubscription[T]) walk(ctx context.Context) error {
	g := s.r.groups[s.group]
	if g.table.Len() == 0 {
		s.group, s.bucket = s.group+1, 0
		return nil
	}
	found, err := s.r.scan(ctx, scanQuery{group: g, prefix: s.sub.name, from: s.bucket})
	if err != nil {
		return err
	}
	if s.found, s.bucket = found.keys, found.next; s.bucket == 0 {
		s.group++
	}
	return nil
}

// next waits until there is something in the list.
func (s *subscriber) next(ctx context.Context, r *Replicator) (nextKey, error) {
	for {
		t := s.take()
		if t.ended {
			return t, s.over(ctx, r)
		}
		if t.key != "" || t.missed > 0 {
			return t, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nextKey{}, context.Cause(ctx)
		}
	}
}

// over returns why a subscription has ended.
func (s *subscriber) over(ctx context.Context, r *Replicator) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case r.ended.Load():
		return r.closed()
	default:
		return fmt.Errorf("%w: the subscription", ErrClosed)
	}
}

// eventOf returns what is to be told of an entry, false for nothing: a key that is not there.
func eventOf[T crdt.Value[T]](key Key[T], e table.Entry, exists bool) (Event[T], bool) {
	event := Event[T]{Key: key}
	switch {
	case !exists:
		return event, false
	case e.State == table.Deleted:
		event.Kind = Deleted
	case e.State == table.Expired:
		event.Kind = Expired
	default:
		v, ok := e.Value.(T)
		if !ok {
			return event, false
		}
		event.Kind, event.Value = Changed, v
	}
	return event, true
}
