// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/store"
)

// A node and its instances. A node hosts the records that it was told of. The first operation on a record starts an
// instance, which claims the record, handles one operation after the other, and saves a change before it acknowledges
// it. Half of the records are saved as snapshots, the others as events.

const (
	callTimeout   = 2 * time.Second
	maxCalls      = 2
	batch         = 4
	snapshotEvery = 5
	maxWaiting    = 20 // Operations that wait for one instance.
)

// limits say for how long an instance repeats calls.
func limits() hold.Config {
	return hold.Config{Limit: 8 * time.Second, Pause: 50 * time.Millisecond, PauseMost: time.Second}
}

// operation is what a client asks for: a change or, to read, the state.
type operation struct {
	record int
	text   string
	read   bool
}

// node may host records.
type node struct {
	w           *World
	i           int
	incarnation int           // Rises with each crash: what was under way before is ignored.
	calls       int           // How many calls of a kind are under way at one time.
	frozen      time.Duration // Nothing happens here until then.
	hosts       map[int]epoch.Epoch
	instances   map[int]*instance
	started     uint64 // The number of the last instance.
	loads       *callQueue
	saves       *callQueue
}

// callQueue makes the calls of one kind.
type callQueue struct {
	queue   *hold.Queue[*request]
	running int
	call    func(n *node, batch []*request)
}

// request is an attempt that waits, or is under way.
type request struct {
	claim store.Claim
	write store.Write
	to    *instance
	since time.Duration // When its operation began.
}

// instance is one instance of an entity.
type instance struct {
	of         *node
	record     int
	hold       *hold.Hold
	state      []string
	since      int // Events after the last snapshot.
	operations []operation
	busy       bool // An operation, or the claim, is under way.
	over       bool
}

func newNode(w *World, i int) *node {
	n := &node{w: w, i: i, calls: 1 + i%maxCalls, hosts: map[int]epoch.Epoch{}, instances: map[int]*instance{}}
	n.loads = &callQueue{queue: hold.NewQueue[*request](batch), call: (*node).load}
	n.saves = &callQueue{queue: hold.NewQueue[*request](batch), call: (*node).save}
	return n
}

// do calls f as soon as the node is not frozen, but not if it crashes before.
func (n *node) do(f func(n *node)) {
	life := n.incarnation
	var try func()
	try = func() {
		switch wait := n.frozen - n.w.Now(); {
		case n.incarnation != life:
		case wait > 0:
			n.w.After(wait, try)
		default:
			f(n)
		}
	}
	try()
}

func (n *node) freeze(d time.Duration) {
	n.frozen = max(n.frozen, n.w.Now()+d)
	n.w.Log("node %d freezes for %v", n.i, d)
}

// crash ends all instances. The records of the node get homes with new epochs, as its next process
// is another node.
func (n *node) crash() {
	n.w.Log("node %d crashes", n.i)
	life := n.incarnation + 1
	*n = *newNode(n.w, n.i)
	n.incarnation = life
	for r, h := range n.w.homes {
		if h.node == n.i {
			n.w.move(r)
		}
	}
}

func (n *node) host(r int, e epoch.Epoch) {
	if n.hosts[r].Less(e) {
		n.release(r, n.hosts[r])
		n.hosts[r] = e
	}
}

// release ends the hosting of a record, if it is still that of an epoch.
func (n *node) release(r int, e epoch.Epoch) {
	if n.hosts[r] == e {
		delete(n.hosts, r)
		if i := n.instances[r]; i != nil {
			i.end()
		}
	}
}

// serve gives an operation to the instance of its record, which it starts if there is none.
func (n *node) serve(op operation) {
	e, hosted := n.hosts[op.record]
	if !hosted {
		return
	}
	i := n.instances[op.record]
	if i == nil {
		n.started++
		owner := store.Owner{Epoch: e, Instance: n.started}
		i = &instance{of: n, record: op.record, hold: hold.NewHold(limits(), key(op.record), owner), busy: true}
		n.instances[op.record] = i
		n.request(n.loads, &request{claim: i.hold.Claim(), to: i, since: n.w.Now()})
	}
	if len(i.operations) < maxWaiting {
		i.operations = append(i.operations, op)
	}
	i.next()
}

// request has an attempt made in one of the next calls.
func (n *node) request(l *callQueue, r *request) {
	l.queue.Put(key(r.to.record), r.to.hold.Attempts(), r)
	n.call(l)
}

func (n *node) call(l *callQueue) {
	for l.running < n.calls {
		batch := l.queue.Next()
		if len(batch) == 0 {
			return
		}
		l.running++
		l.call(n, batch)
	}
}

// load makes a call of claims.
func (n *node) load(batch []*request) {
	var records []store.Record
	var claims []store.Claim
	for _, r := range batch {
		claims = append(claims, r.claim)
	}
	n.await(n.loads, batch, func(done int) { records = n.w.storage.load(claims[:done]) }, func(at int, r *request) {
		r.to.loaded(records[at])
	})
}

// save makes a call of writes.
func (n *node) save(batch []*request) {
	var heads []store.Head
	var writes []store.Write
	for _, r := range batch {
		writes = append(writes, r.write)
	}
	n.await(n.saves, batch, func(done int) { heads = n.w.storage.save(writes[:done]) }, func(at int, r *request) {
		r.to.saved(heads[at])
	})
}

// await makes a call, and tells each request its answer, or that there was none in time.
func (n *node) await(l *callQueue, batch []*request, carryOut func(int), told func(int, *request)) {
	answered := false
	finish := func(ok bool) func(*node) {
		return func(n *node) {
			if answered {
				return
			}
			answered = true
			l.running--
			for at, r := range batch {
				switch {
				case r.to.over:
				case ok:
					told(at, r)
				default:
					r.to.unanswered(l, r)
				}
			}
			n.call(l)
		}
	}
	n.w.storage.carry(len(batch), carryOut, func(ok bool) { n.do(finish(ok)) })
	life := n.incarnation
	n.w.After(callTimeout, func() {
		if n.incarnation == life {
			n.do(finish(false))
		}
	})
}

func (i *instance) loaded(record store.Record) {
	if step := i.hold.Answered(record.Head); step.Err != nil {
		i.fail(step.Err)
		return
	}
	state, err := Content(record)
	if err != nil {
		i.of.w.Fail(err)
		return
	}
	i.state, i.since, i.busy = state, len(record.Events), false
	i.next()
}

func (i *instance) saved(head store.Head) {
	if step := i.hold.Answered(head); step.Err != nil {
		i.fail(step.Err)
		return
	}
	w := i.of.w
	w.Counts.Acknowledged++
	w.History[i.record].Acknowledge(i.operations[0].text)
	i.operations, i.busy = i.operations[1:], false
	w.storage.checkMemory(key(i.record), i.hold.Owner(), i.state)
	if w.rand.IntN(30) == 0 { // It was idle for long.
		i.end()
		return
	}
	i.next()
}

// unanswered goes on after a call that has had no answer.
func (i *instance) unanswered(l *callQueue, r *request) {
	n := i.of
	step := i.hold.Unanswered(n.w.Now() - r.since)
	if n.w.chance(0.2) { // Its context has ended, while the call may still come to the store.
		i.hold.Abandon()
		step.Err = i.hold.Err()
	}
	if step.Err != nil {
		i.fail(step.Err)
		return
	}
	life := n.incarnation
	n.w.After(step.Again, func() {
		if n.incarnation == life {
			n.do(func(n *node) {
				if !i.over {
					n.request(l, r)
				}
			})
		}
	})
}

// next begins the next operation.
func (i *instance) next() {
	w := i.of.w
	for !i.over && !i.busy && len(i.operations) > 0 {
		op := i.operations[0]
		if op.read {
			w.History[i.record].Read(i.state)
			w.storage.checkMemory(key(i.record), i.hold.Owner(), i.state)
			i.operations = i.operations[1:]
			continue
		}
		i.busy = true
		i.state = append(slices.Clone(i.state), op.text)
		i.of.request(i.of.saves, &request{write: i.change(op), to: i, since: w.Now()})
	}
}

// change returns the write for a change that the state has now.
func (i *instance) change(op operation) store.Write {
	if i.record%2 == 0 && i.since+1 < snapshotEvery {
		i.since++
		return i.hold.Save(0, store.Value{}, []store.Value{{Form: 1, Bytes: []byte(op.text)}})
	}
	i.since = 0
	b, _ := json.Marshal(i.state) // A list of texts.
	return i.hold.Save(1, store.Value{Form: 1, Bytes: b}, nil)
}

// fail ends an instance whose hold has ended. The next operation starts another one.
func (i *instance) fail(why error) {
	c := &i.of.w.Counts
	switch {
	case errors.Is(why, hold.ErrFenced):
		c.Fenced++
	case errors.Is(why, hold.ErrUnanswered):
		c.Unanswered++
	default:
		i.of.w.Fail(errors.New("S6: " + i.hold.Owner().String() + ": " + why.Error()))
	}
	i.end()
}

// end ends an instance. The operations that wait are not answered.
func (i *instance) end() {
	i.over = true
	i.of.w.Counts.Refused += len(i.operations)
	if i.of.instances[i.record] == i {
		delete(i.of.instances, i.record)
	}
}
