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

// A node and its instances. A node hosts what it has heard that it hosts; the first wish for a record
// starts an instance, which claims the record, handles one wish after the other, and saves before it
// acknowledges. Half of the records are saved as a whole, the others as events.

const (
	callTimeout   = 2 * time.Second
	callsMost     = 2
	batch         = 4
	snapshotEvery = 5
	waiting       = 20 // Wishes that wait for one instance.
)

// limits say how long an instance tries.
func limits() hold.Config {
	return hold.Config{Limit: 8 * time.Second, Pause: 50 * time.Millisecond, PauseMost: time.Second}
}

// wish is what a client asks for: a change, or the state.
type wish struct {
	record int
	text   string
	read   bool
}

// node may host records.
type node struct {
	w         *World
	i         int
	life      int           // Rises with each crash: what was under way before means nothing.
	calls     int           // How many calls of a kind are under way at one time.
	frozen    time.Duration // Nothing happens here until then.
	hosts     map[int]epoch.Epoch
	instances map[int]*instance
	started   uint64 // The number of the last instance.
	loads     *line
	saves     *line
}

// line makes the calls of one kind.
type line struct {
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
	of     *node
	record int
	hold   *hold.Hold
	state  []string
	since  int // Events after the last snapshot.
	wishes []wish
	busy   bool // A wish, or the claim, is under way.
	over   bool
}

func newNode(w *World, i int) *node {
	n := &node{w: w, i: i, calls: 1 + i%callsMost, hosts: map[int]epoch.Epoch{}, instances: map[int]*instance{}}
	n.loads = &line{queue: hold.NewQueue[*request](batch), call: (*node).load}
	n.saves = &line{queue: hold.NewQueue[*request](batch), call: (*node).save}
	return n
}

// do has something happen on the node, when it is not frozen, and not if it has crashed meanwhile.
func (n *node) do(f func(n *node)) {
	life := n.life
	var try func()
	try = func() {
		switch wait := n.frozen - n.w.Now(); {
		case n.life != life:
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
	life := n.life + 1
	*n = *newNode(n.w, n.i)
	n.life = life
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

// take gives a wish to the instance of its record, which it starts if there is none.
func (n *node) take(wish wish) {
	e, hosted := n.hosts[wish.record]
	if !hosted {
		return
	}
	i := n.instances[wish.record]
	if i == nil {
		n.started++
		owner := store.Owner{Epoch: e, Instance: n.started}
		i = &instance{of: n, record: wish.record, hold: hold.NewHold(limits(), key(wish.record), owner), busy: true}
		n.instances[wish.record] = i
		n.request(n.loads, &request{claim: i.hold.Claim(), to: i, since: n.w.Now()})
	}
	if len(i.wishes) < waiting {
		i.wishes = append(i.wishes, wish)
	}
	i.next()
}

// request has an attempt made as soon as a call may begin.
func (n *node) request(l *line, r *request) {
	l.queue.Put(key(r.to.record), r.to.hold.Attempts(), r)
	n.call(l)
}

func (n *node) call(l *line) {
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
func (n *node) await(l *line, batch []*request, carryOut func(int), told func(int, *request)) {
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
	life := n.life
	n.w.After(callTimeout, func() {
		if n.life == life {
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
	w.History[i.record].Acknowledge(i.wishes[0].text)
	i.wishes, i.busy = i.wishes[1:], false
	w.storage.own(key(i.record), i.hold.Owner(), i.state)
	if w.rand.IntN(30) == 0 { // It was idle for long.
		i.end()
		return
	}
	i.next()
}

// unanswered goes on after a call that has had no answer.
func (i *instance) unanswered(l *line, r *request) {
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
	life := n.life
	n.w.After(step.Again, func() {
		if n.life == life {
			n.do(func(n *node) {
				if !i.over {
					n.request(l, r)
				}
			})
		}
	})
}

// next begins the next wish.
func (i *instance) next() {
	w := i.of.w
	for !i.over && !i.busy && len(i.wishes) > 0 {
		wish := i.wishes[0]
		if wish.read {
			w.History[i.record].Read(i.state)
			w.storage.own(key(i.record), i.hold.Owner(), i.state)
			i.wishes = i.wishes[1:]
			continue
		}
		i.busy = true
		i.state = append(slices.Clone(i.state), wish.text)
		i.of.request(i.of.saves, &request{write: i.change(wish), to: i, since: w.Now()})
	}
}

// change returns the write for a wish that the state has taken in.
func (i *instance) change(wish wish) store.Write {
	if i.record%2 == 0 && i.since+1 < snapshotEvery {
		i.since++
		return i.hold.Save(0, store.Value{}, []store.Value{{Form: 1, Bytes: []byte(wish.text)}})
	}
	i.since = 0
	b, _ := json.Marshal(i.state) // A list of texts.
	return i.hold.Save(1, store.Value{Form: 1, Bytes: b}, nil)
}

// fail ends an instance whose record is lost to it. The next wish starts another.
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

// end ends an instance. The wishes that wait are answered by nobody.
func (i *instance) end() {
	i.over = true
	i.of.w.Counts.Refused += len(i.wishes)
	if i.of.instances[i.record] == i {
		delete(i.of.instances, i.record)
	}
}
