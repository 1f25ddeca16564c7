// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/sharding"
)

// Regions are the regions of one kind, one on each node of a [Cluster].
type Regions[C any] struct {
	c  *Cluster
	of map[*Node]*sharding.Region[C]
	k  sharding.Kind[C]
}

// StartKind starts a kind on each node that runs, and on each that is added later. It does not
// wait: messages wait for the homes of their entities.
func StartKind[C any](c *Cluster, k sharding.Kind[C]) *Regions[C] {
	c.t.Helper()
	r := &Regions[C]{c: c, of: map[*Node]*sharding.Region[C]{}, k: k}
	c.OnEach(func(n *Node) (err error) {
		r.of[n], err = sharding.Start(n, k)
		return err
	})
	return r
}

// On returns the region of a node, by which messages go from there.
func (r *Regions[C]) On(n *Node) *sharding.Region[C] {
	r.c.t.Helper()
	if r.of[n] == nil {
		r.c.t.Fatalf("clustertest: kind %q does not run on that node: it is none of the cluster", r.k.Name)
	}
	return r.of[n]
}

// Any returns the region of the first node that runs.
func (r *Regions[C]) Any() *sharding.Region[C] {
	r.c.t.Helper()
	nodes := r.c.Nodes()
	if len(nodes) == 0 {
		r.c.t.Fatalf("clustertest: kind %q: no node of the cluster runs any more", r.k.Name)
	}
	return r.of[nodes[0]]
}

// Home waits until an entity has a home among the nodes that run, and returns the home. It ends
// the test, and explains the entity, if that takes longer than the limit.
func (r *Regions[C]) Home(id string) (home *Node) {
	r.c.t.Helper()
	r.c.Await(fmt.Sprintf("entity %q of kind %q has a home", id, r.k.Name), func() error {
		ctx, cancel := r.c.limited()
		defer cancel()
		x, err := r.Any().Explain(ctx, id)
		if err != nil {
			return err
		}
		for _, n := range r.c.Nodes() {
			if n.Self().String() == x.Home && x.State == "serving" {
				home = n
				return nil
			}
		}
		return errors.New(x.String())
	})
	return home
}

// Recorder stands in for a kind: it has every message to an entity of it.
type Recorder[C any] struct {
	*Regions[C]

	mu  sync.Mutex
	got []Received[C]
}

// Received is a message that an entity of a [Recorder] was sent.
type Received[C any] struct {
	ID      string // The entity.
	Message C
	At      time.Time // By the clock of the bubble.
}

// Record starts a kind whose entities note what they are sent. The kind has no New. A message is
// answered with what answer returns for it, not at all if that is nil; answer may be nil.
func Record[C any](c *Cluster, k sharding.Kind[C], answer func(id string, message C) any) *Recorder[C] {
	c.t.Helper()
	if k.New != nil {
		c.t.Fatalf("clustertest: kind %q: a recorder takes the place of New: set none", k.Name)
	}
	r := new(Recorder[C])
	k.New = func(*sharding.Context) sharding.Entity[C] { return recording[C]{r, answer} }
	r.Regions = StartKind(c, k)
	return r
}

// Messages returns the messages so far, in the order in which they were handled.
func (r *Recorder[C]) Messages() []Received[C] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// recording is an entity of a [Recorder].
type recording[C any] struct {
	in     *Recorder[C]
	answer func(id string, message C) any
}

// Receive notes a message.
func (e recording[C]) Receive(ctx *sharding.Context, message C) error {
	e.in.mu.Lock()
	e.in.got = append(e.in.got, Received[C]{ctx.ID(), message, time.Now()})
	e.in.mu.Unlock()
	if e.answer == nil {
		return nil
	}
	if reply := e.answer(ctx.ID(), message); reply != nil {
		return ctx.Reply(reply)
	}
	return nil
}
