// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"sync/atomic"
	"testing/synctest"

	"github.com/quorate/quorate/sharding"
)

// maxEntities is how many entities of a node are looked at to find one.
const maxEntities = 1 << 20

// Entity is one entity, to be tested alone. It runs on the cluster like any other. A test sees what
// others see of it: replies, messages, and what its node says. Its fields belong to the goroutine
// that runs it.
type Entity[C any] struct {
	*Regions[C]

	id     string
	starts atomic.Int64
}

// NewEntity starts a kind of which the test uses one entity. A cluster of one node is enough
// to test what the entity does.
func NewEntity[C any](c *Cluster, k sharding.Kind[C], id string) *Entity[C] {
	c.t.Helper()
	e := &Entity[C]{id: id}
	if create := k.New; create != nil { // Without it StartKind refuses the kind.
		k.New = func(ctx *sharding.Context) sharding.Entity[C] {
			if ctx.ID() == id {
				e.starts.Add(1)
			}
			return create(ctx)
		}
	}
	e.Regions = StartKind(c, k)
	return e
}

// Tell sends the entity a message, and returns when the entity has handled it or waits for
// something. A message that is not accepted ends the test.
func (e *Entity[C]) Tell(message C) {
	e.c.t.Helper()
	ctx, cancel := e.c.limited()
	defer cancel()
	if err := e.Any().Tell(ctx, e.id, message); err != nil {
		e.c.t.Fatalf("clustertest: %v", err)
	}
	e.Home(e.id) // The first message of a kind waits until there is one.
	synctest.Wait()
}

// Ask sends an entity a message and returns its reply, or the error with which sharding.Ask ends.
// When the entity has failed, by an error or a panic, that is sharding.ErrEntityFailed,
// with the text of the failure.
func Ask[R, C any](e *Entity[C], message C) (R, error) {
	ctx, cancel := e.c.limited()
	defer cancel()
	return sharding.Ask[R](ctx, e.Any(), e.id, message)
}

// Starts returns how many instances of the entity there have been: it is created anew by the first message
// after it was passivated, has failed or has moved.
func (e *Entity[C]) Starts() int { return int(e.starts.Load()) }

// State returns what the node on which the entity lives knows of it, such as State "idle", or
// "failed" with a Reason, when nothing is left to be done at present. It is false while the entity
// is not in memory, such as after it was passivated.
func (e *Entity[C]) State() (info sharding.EntityInfo, lives bool) {
	e.c.t.Helper()
	synctest.Wait()
	for _, n := range e.c.Nodes() {
		all, _, err := n.Sharding().Entities(e.k.Name, maxEntities)
		if err != nil {
			e.c.t.Fatalf("clustertest: node %s: %v", n.address, err)
		}
		for _, i := range all {
			if i.ID == e.id {
				return i, true
			}
		}
	}
	return sharding.EntityInfo{}, false
}
