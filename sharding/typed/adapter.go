// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package typed

import (
	"github.com/quorate/quorate/machine/optional"
	"github.com/quorate/quorate/rpc"
	"github.com/quorate/quorate/sharding"
)

// The runtime finds the optional interfaces of an entity by its type. An entity of a service stands
// in an adapter, so there is one type of adapter for each set of those interfaces whose presence
// alone means something: to have no Start or Stop is the same as to have one that does nothing.

// adapter is an entity of a service.
type adapter[E any] struct {
	entity  E
	receive func(*sharding.Context, *rpc.Call) error
	checker *optional.Checker
}

var (
	_ sharding.Starter = (*adapter[any])(nil)
	_ sharding.Stopper = (*adapter[any])(nil)
)

// wrap returns an entity of a service as one of sharding.
func wrap[E any](service rpc.Service[E, *sharding.Context], entity E, checker *optional.Checker) sharding.Entity[*rpc.Call] {
	if any(entity) == nil {
		return nil // The runtime says that New has returned nil.
	}
	a := &adapter[E]{entity, Receive(service, entity), checker}
	s, snapshots := any(entity).(sharding.Snapshotter)
	t, times := any(entity).(sharding.ReceiveTimeouter)
	switch {
	case snapshots && times:
		return &snapshotAdapter[E]{a, s, t}
	case snapshots:
		return &snapshotter[E]{a, s}
	case times:
		return &timeouter[E]{a, t}
	default:
		return a
	}
}

// Receive handles a call.
func (a *adapter[E]) Receive(c *sharding.Context, call *rpc.Call) error { return a.receive(c, call) }

// Start starts the entity if it can be started. The runtime sees the methods of the adapter, so those of the entity
// are checked here.
func (a *adapter[E]) Start(c *sharding.Context) error {
	if err := a.checker.Check(a.entity); err != nil {
		return err
	}
	if s, ok := any(a.entity).(sharding.Starter); ok {
		return s.Start(c)
	}
	return nil
}

// Stop stops the entity if it can be stopped.
func (a *adapter[E]) Stop(c *sharding.Context) {
	if s, ok := any(a.entity).(sharding.Stopper); ok {
		s.Stop(c)
	}
}

// snapshotter is an adapter of an entity that takes its memory along.
type snapshotter[E any] struct {
	*adapter[E]
	sharding.Snapshotter
}

// timeouter is an adapter of an entity that hears of its receive timeout.
type timeouter[E any] struct {
	*adapter[E]
	sharding.ReceiveTimeouter
}

// snapshotAdapter is an adapter of an entity that has timeouts and snapshots.
type snapshotAdapter[E any] struct {
	*adapter[E]
	sharding.Snapshotter
	sharding.ReceiveTimeouter
}
