// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/sharding"
)

// [Entities] adds an inbox to entities that know nothing of deliveries: the runtime gets an [entity], which passes on
// each message, and each call of an optional interface.

// Entities returns a function for [sharding.Kind.New]: its entities take deliveries, and have an inbox like the given
// one in memory. The entities that create returns get each message as if by Tell; they may implement all optional
// interfaces of an entity. When a shard moves in order, the inbox moves with it, together with the memory of the entity
// if that is a [sharding.Snapshotter].
func Entities[M any](inbox Inbox, create func(*sharding.Context) sharding.Entity[M]) func(*sharding.Context) sharding.Entity[*Frame[M]] {
	checker := sharding.EntityChecker(nil)
	return func(c *sharding.Context) sharding.Entity[*Frame[M]] {
		in := inbox
		in.Seen = slices.Clone(inbox.Seen)
		return &entity[M]{of: create(c), inbox: in, checker: checker}
	}
}

// entity adds an inbox to an entity.
type entity[M any] struct {
	of      sharding.Entity[M]
	inbox   Inbox
	checker *optional.Checker
}

var (
	_ sharding.Starter          = (*entity[any])(nil)
	_ sharding.Stopper          = (*entity[any])(nil)
	_ sharding.ReceiveTimeouter = (*entity[any])(nil)
	_ sharding.Snapshotter      = (*entity[any])(nil)
)

// Receive implements [sharding.Entity].
func (e *entity[M]) Receive(c *sharding.Context, f *Frame[M]) error {
	return f.Handle(c, &e.inbox, func(message M) error { return e.of.Receive(c, message) })
}

// Start implements [sharding.Starter]. The runtime sees the methods of e, so those of the entity are checked here.
func (e *entity[M]) Start(c *sharding.Context) error {
	if err := e.checker.Check(e.of); err != nil {
		return err
	}
	if s, ok := e.of.(sharding.Starter); ok {
		return s.Start(c)
	}
	return nil
}

// Stop implements [sharding.Stopper].
func (e *entity[M]) Stop(c *sharding.Context) {
	if s, ok := e.of.(sharding.Stopper); ok {
		s.Stop(c)
	}
}

// ReceiveTimeout implements [sharding.ReceiveTimeouter].
func (e *entity[M]) ReceiveTimeout(c *sharding.Context) error {
	if t, ok := e.of.(sharding.ReceiveTimeouter); ok {
		return t.ReceiveTimeout(c)
	}
	c.Passivate()
	return nil
}

// entitySnapshot is the snapshot of an entity with its inbox.
type entitySnapshot struct {
	Seen   []Seen `json:"seen,omitempty"`
	Memory []byte `json:"memory,omitempty"` // Empty: the entity gave none.
}

// Snapshot implements [sharding.Snapshotter].
func (e *entity[M]) Snapshot(c *sharding.Context) ([]byte, error) {
	l := entitySnapshot{Seen: e.inbox.Seen}
	if s, ok := e.of.(sharding.Snapshotter); ok {
		var err error
		if l.Memory, err = s.Snapshot(c); err != nil {
			return nil, err
		}
	}
	if len(l.Seen)+len(l.Memory) == 0 {
		return nil, nil
	}
	return json.Marshal(l)
}

var errNoSnapshotter = errors.New("delivery: the entity has no method Restore")

// Restore implements [sharding.Snapshotter].
func (e *entity[M]) Restore(c *sharding.Context, snapshot []byte) error {
	var l entitySnapshot
	if err := json.Unmarshal(snapshot, &l); err != nil {
		return fmt.Errorf("delivery: the snapshot: %w", err)
	}
	if len(l.Memory) > 0 {
		s, ok := e.of.(sharding.Snapshotter)
		if !ok {
			return errNoSnapshotter
		}
		if err := s.Restore(c, l.Memory); err != nil {
			return err
		}
	}
	e.inbox.Seen = l.Seen
	return nil
}
