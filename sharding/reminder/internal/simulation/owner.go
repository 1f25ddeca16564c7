// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/reminder/internal/buckets"
	"github.com/quorate/quorate/sharding/state/hold"
	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/store"
)

// Nodes, the buckets that they have, how these read and write their pages and deliver reminders; and
// the store, with what becomes of calls on their way.

const (
	callTimeout = 2 * time.Second
	ackTimeout  = 3 * time.Second
)

// node may have buckets.
type node struct {
	w       *World
	i       int
	life    int           // Rises with each crash: what was under way before means nothing.
	frozen  time.Duration // Nothing happens here until then.
	ahead   time.Duration // Of the wall clock.
	hosts   map[int]epoch.Epoch
	buckets map[int]*bucket
	started uint64 // The number of the last instance of a page.
}

// bucket is one bucket on a node.
type bucket struct {
	of      *node
	number  int
	epoch   epoch.Epoch
	machine *buckets.Bucket
	holds   [pages]*hold.Hold
	armed   uint64 // Numbers the timers: an earlier one means nothing.
	closing bool
	over    bool
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
	n.frozen = max(n.frozen, min(n.w.Now()+d, n.w.opt.Duration)) // What waits goes on when the faults are over.
	n.w.Log("node %d freezes for %v", n.i, d)
}

// crash ends all buckets of a node, which get homes with new epochs.
func (n *node) crash() {
	n.w.Log("node %d crashes", n.i)
	n.life++
	n.frozen = 0
	for _, of := range n.buckets {
		of.over = true
	}
	clear(n.buckets)
	clear(n.hosts)
	for b, h := range n.w.homes {
		if h.node == n.i {
			n.w.move(b)
		}
	}
}

func (n *node) host(b int, e epoch.Epoch) {
	if n.hosts[b].Less(e) {
		n.release(b, n.hosts[b])
		n.hosts[b] = e
		n.begin(b, e)
	}
}

func (n *node) begin(b int, e epoch.Epoch) {
	of := &bucket{of: n, number: b, epoch: e, machine: buckets.New(settings())}
	n.buckets[b] = of
	of.step(buckets.Tick{})
}

// release ends the hosting of a bucket, if it is still that of an epoch.
func (n *node) release(b int, e epoch.Epoch) {
	if n.hosts[b] == e {
		delete(n.hosts, b)
		if of := n.buckets[b]; of != nil {
			of.over = true
			delete(n.buckets, b)
		}
	}
}

// now is the time by the clocks of the node.
func (n *node) now() machine.Now {
	return machine.Now{Mono: machine.Instant(n.w.Now()), Wall: n.w.Wall().Add(n.ahead)}
}

// rightful reports whether the bucket lives here by the map.
func (b *bucket) rightful() bool { return b.of.w.homes[b.number].epoch == b.epoch }

// step feeds an input, and does what follows.
func (b *bucket) step(in any) {
	if b.over {
		return
	}
	w, now := b.of.w, b.of.now()
	var out buckets.Outbox
	b.machine.Step(now, in, &out)
	for _, p := range out.Open {
		b.of.started++
		owner := store.Owner{Epoch: b.epoch, Instance: b.of.started}
		b.holds[p] = hold.NewHold(limits(), key(b.number, p), owner)
		b.open(p, b.holds[p], w.Now())
	}
	for _, s := range out.Save {
		h := b.holds[s.Page]
		b.save(s.Page, h, h.Save(1, s.Snapshot, s.Events), w.Now())
	}
	for _, f := range out.Deliver {
		b.fire(f)
	}
	for _, a := range out.Answers {
		w.answer(a)
	}
	if g := b.machine.Gauges(); g.InFlight+g.Settling > inFlight {
		w.Fail(fmt.Errorf("M6: bucket %d has %d deliveries under way, and %d to save", b.number, g.InFlight, g.Settling))
	}
	if g := b.machine.Gauges(); b.machine.Quiet() && g.InFlight+g.Settling > 0 {
		w.Fail(fmt.Errorf("M6: bucket %d has nothing under way, and %d places are taken", b.number, g.InFlight+g.Settling))
	}
	if b.machine.Fenced() {
		b.fenced()
		return
	}
	b.arm(now)
}

// fenced ends a bucket that a later owner has. Its node begins it anew while it thinks that it has it.
func (b *bucket) fenced() {
	n := b.of
	n.w.Counts.Fenced++
	b.over = true
	n.w.After(time.Second, func() {
		n.do(func(n *node) {
			if n.buckets[b.number] == b && n.hosts[b.number] == b.epoch {
				n.begin(b.number, b.epoch)
			}
		})
	})
}

// arm has time pass for the bucket.
func (b *bucket) arm(now machine.Now) {
	b.armed++
	number, at := b.armed, b.machine.Wake(now)
	if at == machine.Never {
		return
	}
	b.later(at.Sub(now.Mono), func() {
		if b.armed == number {
			b.step(buckets.Tick{})
		}
	})
}

// later has something happen to the bucket after a time, if it is still there.
func (b *bucket) later(d time.Duration, f func()) {
	n := b.of
	life := n.life
	n.w.After(max(0, d), func() {
		if n.life == life {
			n.do(func(*node) {
				if !b.over {
					f()
				}
			})
		}
	})
}

// limits say how long a page is tried.
func limits() hold.Config {
	return hold.Config{Limit: 8 * time.Second, Pause: 50 * time.Millisecond, PauseMost: time.Second}
}

func key(bucket, page int) store.Key {
	return store.Key{Kind: "reminders", ID: fmt.Sprintf("%d/%d", bucket, page)}
}

// open claims and reads a page.
func (b *bucket) open(p int, h *hold.Hold, began time.Duration) {
	var r store.Record
	carryOut := func() { r = b.of.w.storage.load(h.Claim()) }
	b.attempt(h, began, carryOut, func() store.Head { return r.Head }, func() { b.open(p, h, began) }, func(err error) {
		b.failed(err)
		b.step(buckets.OpenResult{Page: p, Record: r, Err: err, Fenced: errors.Is(err, hold.ErrFenced)})
	})
}

// save changes a page.
func (b *bucket) save(p int, h *hold.Hold, write store.Write, began time.Duration) {
	var head store.Head
	carryOut := func() { head = b.of.w.storage.save(write) }
	b.attempt(h, began, carryOut, func() store.Head { return head }, func() { b.save(p, h, write, began) }, func(err error) {
		b.failed(err)
		b.step(buckets.SaveResult{Page: p, Err: err, Fenced: errors.Is(err, hold.ErrFenced)})
	})
}

func (b *bucket) failed(err error) {
	if err != nil {
		b.of.w.Counts.Closed++
	}
}

// attempt makes one call of the store, repeats it as the hold says, and tells how it ended.
func (b *bucket) attempt(h *hold.Hold, began time.Duration, carryOut func(), head func() store.Head, again func(), done func(error)) {
	answered := false
	finish := func(ok bool) func() {
		return func() {
			if answered {
				return
			}
			answered = true
			step := hold.Step{}
			if ok {
				step = h.Answered(head())
			} else {
				step = h.Unanswered(b.of.w.Now() - began)
			}
			if step.Again > 0 {
				b.later(step.Again, again)
				return
			}
			done(step.Err)
		}
	}
	b.of.w.storage.call(carryOut, func(back time.Duration, ok bool) { b.later(back, finish(ok)) })
	b.later(callTimeout, finish(false))
}

// fire delivers a reminder: it may get lost, be slow, be refused, or its acknowledgement be lost.
func (b *bucket) fire(f buckets.Deliver) {
	w := b.of.w
	c := w.clientOf(f.Reminder.Key)
	c.begun(b, f)
	finish := func(failure string) func() {
		return func() {
			if failure != "" {
				w.Counts.Unacknowledged++
			}
			b.step(buckets.Delivered{ID: f.ID, Failure: failure})
		}
	}
	b.later(ackTimeout, func() { b.step(buckets.Delivered{ID: f.ID, Failure: "no answer in time"}) })
	way, back := time.Millisecond+w.upTo(10*time.Millisecond), time.Millisecond+w.upTo(10*time.Millisecond)
	switch {
	case w.chance(0.05):
		return
	case w.chance(0.05):
		way = w.upTo(20 * time.Second)
	case w.chance(0.1):
		b.later(way+back, finish("refused"))
		return
	}
	lost := w.chance(0.08)
	w.After(way, func() {
		c.handled(f)
		if !lost {
			b.later(back, finish(""))
		}
	})
}

// storage is the store, and what happens to calls of it.
type storage struct {
	w       *World
	records *memory.Store
	until   time.Duration // The store is down until then.
}

func (s *storage) fail(d time.Duration) {
	s.until = max(s.until, s.w.Now()+d)
	s.w.Log("the store is down for %v", d)
}

func (s *storage) load(c store.Claim) store.Record {
	records, _ := s.records.Load(context.Background(), []store.Claim{c})
	return records[0]
}

func (s *storage) save(w store.Write) store.Head {
	heads, _ := s.records.Save(context.Background(), []store.Write{w})
	return heads[0]
}

// call takes a call to the store. The answer, if there is one, says how long it takes back.
func (s *storage) call(carryOut func(), answer func(back time.Duration, ok bool)) {
	w := s.w
	way, back, ok := time.Millisecond+w.upTo(4*time.Millisecond), time.Millisecond+w.upTo(4*time.Millisecond), true
	switch {
	case w.chance(0.03):
		return // Lost on its way.
	case w.chance(0.06):
		back, ok = back+w.upTo(time.Second), false // Done, and the answer lost.
	case w.chance(0.05):
		way = w.upTo(30 * time.Second)
	}
	w.After(way, func() {
		if w.Now() < s.until {
			answer(back, false)
			return
		}
		if way > callTimeout {
			w.Counts.Late++
		}
		carryOut()
		answer(back, ok)
	})
}
