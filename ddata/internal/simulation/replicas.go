// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	world "github.com/quorate/quorate/simulation"
)

// Replicas in a world of another package, beside real membership: [NewReplicas] adds them to the world, and
// [Replicas.Component] builds the component of a node. Local, Read and Update do what the calls of package ddata do on
// a node that holds all keys. When one ends, it calls a function, in the step in which the machine ends the operation.

// ErrAway is returned at a node that has no replica with the key, or not yet.
var ErrAway = errors.New("the node holds no replica of the key")

// Replicas are the replicas of one group of keys, of which every node holds one, on the disk of its address.
type Replicas struct {
	world  *world.World
	stores *Cluster // Only its disks are used.
	nodes  map[gossip.NodeID]*node
	calls  map[protocol.OpID]*waiting
	last   protocol.OpID
}

// waiting is an operation that has not ended.
type waiting struct {
	at   *world.Node
	done func(protocol.Done)
}

// NewReplicas adds replicas to a world that has no nodes yet.
func NewReplicas(w *world.World) *Replicas {
	r := &Replicas{
		world: w, nodes: map[gossip.NodeID]*node{}, calls: map[protocol.OpID]*waiting{},
		stores: &Cluster{disks: map[gossip.Address]*disk{}, rand: rand.New(rand.NewPCG(w.Seed(), 92))},
	}
	w.Carry(r.carry)
	w.Strategies().Answer(protocol.StorePort, r.stores.store)
	w.Observe(r.observe)
	return r
}

// Component builds the replica of a node.
func (r *Replicas) Component(env world.Env) machine.Component {
	n, d := &node{}, r.stores.disk(env.Self.Address)
	n.table = table.New(table.Config{Self: protocol.OriginOf(env.Self.UID), MaxValueBytes: 1 << 20, MaxBytes: 1 << 30})
	d.starts++
	n.replica = d.id
	group := protocol.Group{Name: "durable", Durable: true, Table: n.table, Replica: d.id, Meta: d.load(n.table), Fresh: d.starts == 1}
	timing := protocol.DefaultTiming()
	timing.Store = 2 * time.Second
	n.machine = protocol.New(protocol.Config{
		Self: env.Self, Groups: []protocol.Group{group}, Timing: timing, Bounds: protocol.DefaultBounds(), Rand: env.Rand, Standing: true,
	})
	r.nodes[env.Self] = n
	// There is no codec: a decoded value may be equal to the one that was encoded and have a tree of another shape,
	// which the world would take for a defect.
	return machine.Component{Name: protocol.ComponentName, Service: protocol.Service, Machine: n.machine}
}

// carry ends the operations of which the machine says so.
func (r *Replicas) carry(n *world.Node, _ *machine.Component, e machine.Effect) bool {
	switch e := e.(type) {
	case protocol.Done:
		if of := r.calls[e.Op]; of != nil && of.at == n {
			delete(r.calls, e.Op)
			of.done(e)
		}
	case protocol.FetchResult, protocol.Routed, protocol.KeysChanged, protocol.DroppedAll, protocol.Alarm, protocol.ContinuedWithoutMajority:
	default:
		return false
	}
	return true
}

// observe ends the operations of a node that has ended, and decides whether its last write is on its disk.
func (r *Replicas) observe(o world.Observation) {
	d := r.stores.disk(o.Node.ID().Address)
	switch e := o.Event.(type) {
	case world.Ended:
		d.ended(r.stores.rand, e.Why == world.Crashed)
		for op := protocol.OpID(1); op <= r.last; op++ {
			if of := r.calls[op]; of != nil && of.at == o.Node {
				delete(r.calls, op)
				of.done(protocol.Done{Op: op, Verdict: protocol.Gone})
			}
		}
	case world.Answered:
		if e.Port == protocol.StorePort && e.Called.Err == nil && e.Called.Result == nil {
			d.answered = true
		}
	}
}

// begin gives an operation a number.
func (r *Replicas) begin(n *world.Node, done func(protocol.Done)) protocol.OpID {
	r.last++
	r.calls[r.last] = &waiting{n, done}
	return r.last
}

// Ready reports whether the replica of a node counts: it has taken in what the others hold.
func (r *Replicas) Ready(n *world.Node) bool { return r.nodes[n.ID()].machine.Route(0).Counts }

// Local returns what a node holds of a key, nil for nothing, or [ErrAway].
func (r *Replicas) Local(n *world.Node, key string) (any, error) {
	of := r.nodes[n.ID()]
	if route := of.machine.Route(0); route.Gen == 0 || !route.Here(table.BucketOf(key)) {
		return nil, ErrAway
	}
	e, ok := of.table.Get(key)
	if !ok {
		return nil, nil // Nothing is there, and nothing is wrong.
	}
	return valueOf(&e), nil
}

// How many replicas a read asks.
const (
	One = iota
	Majority
	All
)

// Read reads a key from one replica, a majority or all.
func (r *Replicas) Read(n *world.Node, key string, of int, limit time.Duration, done func(value any, err error)) {
	level := [...]protocol.Level{{Name: protocol.Count, N: 1}, majority(), {Name: protocol.All}}[of]
	op := r.begin(n, func(d protocol.Done) {
		if d.Verdict != protocol.Confirmed {
			done(nil, unconfirmed(d))
			return
		}
		done(valueOf(d.Entry), nil)
	})
	n.Input(protocol.Service, protocol.Read{Op: op, Key: key, Level: level, Limit: limit})
}

// Update changes a key at a node that holds it, until a majority has the change.
func (r *Replicas) Update(n *world.Node, key string, typ crdt.Type, limit time.Duration, change func(crdt.Origin, any) (any, error), done func(error)) {
	if _, err := r.Local(n, key); err != nil {
		done(err)
		return
	}
	of := r.nodes[n.ID()]
	made, err := of.table.Update(key, typ, change)
	if err != nil {
		done(err)
		return
	}
	op := r.begin(n, func(d protocol.Done) {
		if d.Verdict != protocol.Confirmed {
			done(unconfirmed(d))
			return
		}
		done(nil)
	})
	route := of.machine.Route(0)
	n.Input(protocol.Service, protocol.Write{Op: op, Change: made, Stamp: route.Gen, Turn: route.Turn, Level: majority(), Limit: limit})
}

// unconfirmed says how an operation has ended that was not confirmed.
func unconfirmed(d protocol.Done) error {
	return errors.Join(fmt.Errorf("verdict %d", d.Verdict), d.Err)
}

// Describe returns the state of the machine of a node, for people.
func (r *Replicas) Describe(n *world.Node) string { return r.nodes[n.ID()].machine.String() }
