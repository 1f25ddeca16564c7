// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// The clients: work begins an operation on a random node; write, read and remove do what the calls of a program do
// there; done and fetched go on with the machine's answer.

// operation is one call of a client.
type operation struct {
	key     string
	element uint64 // For a write.
	read    *reading
	doomed  map[uint64]bool // For a delete: the elements that it deletes.
	takes   bool            // For a write: it takes element out of the set.
	had     bool            // For such a write: element was there when the update function ran.
	began   startState
	until   time.Duration // When the program gives the call up.
	node    *world.Node   // Where the call was made.
	level   protocol.Level
}

// majority is the level of most operations.
func majority() protocol.Level { return protocol.Level{Name: protocol.Majority} }

// clients are the programs on all nodes of a world. They note in the history what they are told.
type clients struct {
	World   *world.World
	History *History

	opt                 Options
	rand                *rand.Rand
	nodes               map[gossip.NodeID]*node
	set, orset, counter crdt.Type
	ops                 map[protocol.OpID]*operation
	lastOp              protocol.OpID
	element             uint64
	idle                bool
}

// work begins an operation, and then another one after a while.
func (c *clients) work() {
	if c.idle {
		return
	}
	if nodes := c.World.Nodes(); len(nodes) > 0 {
		n := nodes[c.rand.IntN(len(nodes))]
		kind, i := kinds()[c.rand.IntN(len(kinds()))], c.rand.IntN(c.opt.Keys)
		key := fmt.Sprintf("%s%d", kind, i)
		switch p := c.rand.IntN(100); {
		case n.Frozen():
		case p < c.opt.Deletes && kind != counters:
			c.remove(n, key)
		case p < 50:
			c.read(n, key)
		case p < 60 && kind == changing:
			c.take(n, key)
		default:
			c.put(n, key)
		}
	}
	c.World.After(soon(c.rand, 2*c.opt.Every)+1, c.work)
}

// The first letters of keys, by the type of their values.
const (
	growing  = "g" // Sets that only grow.
	changing = "o" // Sets of which elements are taken out.
	counters = "c"
)

// kinds are the first letters from which a client draws.
func kinds() []string { return []string{growing, growing, changing, counters} }

// typeOf returns the type of the value of a key.
func (c *clients) typeOf(key string) crdt.Type {
	switch key[:1] {
	case growing:
		return c.set
	case changing:
		return c.orset
	default:
		return c.counter
	}
}

// put adds an element to a set, or one to a counter.
func (c *clients) put(n *world.Node, key string) {
	c.element++
	c.History.write(key, c.element)
	level := majority()
	if c.rand.IntN(10) == 0 {
		level.Name = protocol.Local
	}
	c.write(n, &operation{key: key, element: c.element, began: c.History.now(key), until: c.World.Now() + c.opt.Limit, level: level})
}

// take takes an element out of a set that is known to be in it.
func (c *clients) take(n *world.Node, key string) {
	if e, ok := c.History.taking(key, c.rand); ok {
		c.write(n, &operation{key: key, element: e, takes: true, began: c.History.now(key), until: c.World.Now() + c.opt.Limit, level: majority()})
	}
}

// begin gives an operation a number.
func (c *clients) begin(n *world.Node, o *operation) protocol.OpID {
	c.lastOp++
	o.node = n
	c.ops[c.lastOp] = o
	return c.lastOp
}

// endAt forgets the operations of a node that has ended.
func (c *clients) endAt(n *world.Node) {
	for id, o := range c.ops { //quorate:unordered each by itself
		if o.node == n {
			delete(c.ops, id)
			c.History.Unconfirmed++
		}
	}
}

// add is the update function of a write.
func (o *operation) add(at crdt.Origin, v any) (any, error) {
	switch v := v.(type) {
	case crdt.GSet[uint64]:
		return v.Add(o.element), nil
	case crdt.ORSet[uint64]:
		if o.takes {
			o.had = v.Has(o.element)
			return v.Remove(o.element), nil
		}
		return v.Add(at, o.element), nil
	default:
		return v.(crdt.GCounter).Add(at, 1), nil
	}
}

// write writes an element at a node: there, if the node is a home of the key, else through
// another node.
func (c *clients) write(n *world.Node, o *operation) {
	at := c.nodes[n.ID()]
	if !at.machine.Route(0).Here(table.BucketOf(o.key)) {
		n.Input(protocol.Service, protocol.FetchEntry{Op: c.begin(n, o), Key: o.key, Limit: c.opt.Limit})
		return
	}
	change, err := at.table.Update(o.key, c.typeOf(o.key), o.add)
	if err != nil {
		c.failed(o, err)
		return
	}
	if change.From == change.To {
		return // The element to be taken out was not there.
	}
	route := at.machine.Route(0)
	n.Input(protocol.Service, protocol.Write{Op: c.begin(n, o), Change: change, Stamp: route.Gen, Turn: route.Turn, Level: o.level, Limit: c.opt.Limit})
}

// failed notes a write that the table has refused. The only reason may be that the key is deleted.
func (c *clients) failed(o *operation, err error) {
	c.History.unstored(o)
	if !errors.Is(err, table.ErrDeleted) {
		c.World.Fail(fmt.Errorf("a write failed: %w", err))
	}
}

// fetched goes on with a write through another node.
func (c *clients) fetched(n *world.Node, b protocol.FetchResult) {
	o := c.ops[b.Op]
	if o == nil {
		return
	}
	if b.Verdict != protocol.Confirmed || b.Entry != nil && b.Entry.State == table.Deleted {
		delete(c.ops, b.Op)
		c.History.unstored(o)
		n.Enqueue(protocol.Service, protocol.Cancel{Op: b.Op})
		return
	}
	typ := c.typeOf(o.key)
	v := typ.Zero()
	if b.Entry != nil && b.Entry.State == table.Live {
		v = b.Entry.Value
	}
	changed, _ := o.add(b.At, v)
	delta, ok := typ.Delta(changed)
	if !ok {
		delete(c.ops, b.Op)
		n.Enqueue(protocol.Service, protocol.Cancel{Op: b.Op})
		return
	}
	n.Enqueue(protocol.Service, protocol.CommitDelta{Op: b.Op, Key: o.key, Type: typ, Delta: delta, Base: b.Base, Level: o.level, Limit: c.opt.Limit})
}

// read reads a key with a majority.
func (c *clients) read(n *world.Node, key string) {
	r := c.History.read(key)
	n.Input(protocol.Service, protocol.Read{Op: c.begin(n, &operation{key: key, read: &r}), Key: key, Level: majority(), Limit: c.opt.Limit})
}

// remove deletes a key.
func (c *clients) remove(n *world.Node, key string) {
	if c.nodes[n.ID()].machine.Register(0) == nil {
		return
	}
	o := &operation{key: key, began: c.History.now(key), doomed: c.History.deleting(key)}
	n.Input(protocol.Service, protocol.Delete{Op: c.begin(n, o), Key: key, Level: majority(), Limit: c.opt.Limit})
}

// done ends an operation.
func (c *clients) done(n *world.Node, d protocol.Done) {
	o := c.ops[d.Op]
	if o == nil {
		return
	}
	delete(c.ops, d.Op)
	switch {
	case d.Verdict == protocol.WasDeleted:
		c.History.Failed++
	case d.Verdict == protocol.Refused:
		if d.Err != nil && !errors.Is(d.Err, protocol.ErrHome) {
			c.World.Fail(fmt.Errorf("an operation was refused: %w", d.Err))
		}
		c.History.Failed++
	case d.Verdict == protocol.Lost || d.Verdict == protocol.Conflict:
		c.History.Lost++
		o.again(c, n)
	case d.Verdict != protocol.Confirmed:
		c.History.Unconfirmed++
	case o.read != nil:
		c.returned(o, d.Entry)
	case o.doomed != nil:
		c.History.deleted(o.key, o.doomed, o.began)
	case o.level.Name == protocol.Majority:
		c.wrote(o)
	}
}

// again makes a write again if the machine says that nothing is stored anywhere. [ddata.Update] does so inside one call
// of a program, so that for the history it is the same write.
func (o *operation) again(c *clients, n *world.Node) {
	if o.read != nil || o.doomed != nil {
		return
	}
	c.World.After(time.Millisecond, func() {
		switch {
		case !n.Alive():
			c.History.Unconfirmed++
		case c.World.Now() >= o.until:
			c.History.unstored(o)
		default:
			c.write(n, o)
		}
	})
}

// wrote notes an acknowledged write.
func (c *clients) wrote(o *operation) {
	if o.takes {
		c.History.took(o.key, o.element, o.had, o.began)
		return
	}
	c.History.wrote(o.key, o.element, o.began)
}

// returned checks what was read.
func (c *clients) returned(o *operation, e *table.Entry) {
	deleted := e != nil && e.State == table.Deleted
	err := error(nil)
	switch v := valueOf(e).(type) {
	case crdt.GCounter:
		err = c.History.counted(o.key, *o.read, v.Value())
	case crdt.ORSet[uint64]:
		err = c.History.returned(o.key, *o.read, slices.Collect(v.All()), deleted)
	case crdt.GSet[uint64]:
		err = c.History.returned(o.key, *o.read, slices.Collect(v.All()), deleted)
	default:
		if o.key[:1] == counters {
			err = c.History.counted(o.key, *o.read, 0)
		} else {
			err = c.History.returned(o.key, *o.read, nil, deleted)
		}
	}
	if err != nil {
		c.World.Fail(err)
	}
}

// valueOf returns the value of a live entry, nil if there is none.
func valueOf(e *table.Entry) any {
	if e == nil || e.State != table.Live {
		return nil
	}
	return e.Value
}
