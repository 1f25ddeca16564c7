// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// A producer: it does what the driver of production does with its outbox, in the same order.

// sender is a producer and its node.
type sender struct {
	w      *World
	name   string
	life   int
	queued bool
	queue  []delivery.Entry // What the queue has kept, and not removed.
	disk   *box             // Nil: the queue is in memory.
	sent   map[string]int   // The last number of a message that was offered, by entity.
	lost   map[string]int   // The same when the producer last began, if it has no queue: all up to then is gone with it.

	outbox   *producer.Outbox[string]
	session  producer.Session
	restored int
	held     map[string]int // Messages of this outbox, by entity.
	allowed  map[string]int // What an entity has last allowed this outbox, while that holds something for it.
	underWay map[string]uint64
	call     uint64
}

// begin starts the producer, and anew after a crash: what it held is gone but for the queue.
func (p *sender) begin() {
	p.life++
	p.outbox = nil
	if p.disk != nil && !p.reopen() {
		return // It is started again.
	}
	if !p.queued {
		p.lost = maps.Clone(p.sent)
	}
	p.session = producer.Session{p.name[1], byte(p.life), 1}
	p.outbox = producer.New[string](config(), p.session, p.w.Source(100+uint64(p.name[1])*1000+uint64(p.life)))
	p.held, p.allowed, p.underWay = map[string]int{}, map[string]int{}, map[string]uint64{}
	entries := p.entries()
	p.restored = len(entries)
	for _, e := range entries {
		p.held[e.To]++
		text := textOf(&e)
		p.outbox.Restore(e.To, producer.Message[string]{
			Session: producer.Session(e.Session), Number: e.Number, Value: text, Bytes: len(text),
		})
	}
	p.w.Log("%s begins its life %d with %d messages", p.name, p.life, p.restored)
	p.serve()
}

// client sends something now and then.
func (p *sender) client() {
	p.w.After(p.w.upTo(300*time.Millisecond), func() {
		for range p.w.rand.IntN(4) {
			p.send(p.w.entities[p.w.rand.IntN(len(p.w.entities))].id)
		}
		if !p.w.calm {
			p.client()
		}
	})
}

func (p *sender) send(to string) {
	if p.outbox == nil {
		return // It does not run.
	}
	text := fmt.Sprintf("%s/%s/%d", p.name, to, p.sent[to]+1)
	number, ok := p.outbox.Reserve(to, len(text))
	switch {
	case !ok:
		p.w.Counts.Refused++
		return
	case p.w.chance(0.05): // The queue fails.
		p.outbox.Cancel(to, len(text))
		return
	case p.queued:
		e := delivery.Entry{
			EntryID: delivery.EntryID{Session: delivery.Session(p.session), Number: number}, To: to, Message: []byte(text),
		}
		if p.disk != nil {
			p.disk.lure(&e)
		}
		if p.disk != nil && !p.disk.append(e) {
			p.sent[to]++ // It may be in the queue all the same.
			p.w.numbers[text] = number
			if p.outbox != nil {
				p.outbox.Cancel(to, len(text))
			}
			return
		}
		p.queue = append(p.queue, e)
	}
	p.sent[to]++
	p.w.accepted[text] = true
	p.held[to]++
	p.w.Counts.Accepted++
	p.w.numbers[text] = number
	p.outbox.Put(to, number, text, len(text))
	if most := max(config().Messages, p.restored); p.outbox.Held() > most {
		p.w.Fail(fmt.Errorf("D5: %s holds %d messages, at most %d are allowed", p.name, p.outbox.Held(), most))
	}
	p.serve()
}

// serve sends what is due, and comes back when something else may be.
func (p *sender) serve() {
	for p.outbox != nil {
		f, ok := p.outbox.Next(p.w.Now())
		if !ok {
			break
		}
		p.ask(f)
	}
	if p.outbox == nil {
		return
	}
	if at, ok := p.outbox.Wake(); ok {
		life := p.life
		p.w.After(max(at-p.w.Now(), time.Microsecond), func() {
			if p.life == life {
				p.serve()
			}
		})
	}
}

// ask sends a frame and waits for its answer.
func (p *sender) ask(f producer.Frame[string]) {
	w := p.w
	w.Counts.Frames++
	if len(f.Messages) == 0 {
		w.Counts.Probes++
	}
	allowed, known := p.allowed[f.To]
	if !known {
		allowed = 1
	}
	if len(f.Messages) > allowed {
		w.Fail(fmt.Errorf("D4: %s sends %d messages to %s, which allows %d", p.name, len(f.Messages), f.To, allowed))
	}
	if p.underWay[f.To] != 0 {
		w.Fail(fmt.Errorf("D4: %s has two frames under way to %s", p.name, f.To))
	}
	p.call++
	call, life := p.call, p.life
	p.underWay[f.To] = call
	w.Log("%s asks %s: %d messages of session %x from %v", p.name, f.To, len(f.Messages), f.Session[:2], first(f.Messages))
	answered := func(a *producer.Answer) {
		if p.life != life || p.underWay[f.To] != call {
			return
		}
		delete(p.underWay, f.To)
		p.answered(f.To, a)
		p.serve()
	}
	encoded := frameOf(f)
	to := w.entities[slices.IndexFunc(w.entities, func(e *entity) bool { return e.id == f.To })]
	w.carry(func() {
		to.receive(f.Session, encoded, func(a *producer.Answer) { w.carry(func() { answered(a) }) })
	})
	w.After(timeout, func() { answered(nil) })
}

func first(messages []producer.Message[string]) uint64 {
	if len(messages) == 0 {
		return 0
	}
	return messages[0].Number
}

// answered tells the outbox of an answer; nil for none.
func (p *sender) answered(to string, a *producer.Answer) {
	var confirmed []producer.Message[string]
	var err error
	if a != nil {
		confirmed, err = p.outbox.Confirms(to, *a)
	}
	if a == nil || err != nil || p.w.chance(0.02) || !p.forget(confirmed) { // The queue fails.
		p.w.Counts.Unanswered++
		if p.outbox != nil {
			p.outbox.Unanswered(p.w.Now(), to)
		}
		return
	}
	for _, l := range confirmed {
		if p.w.handled[l.Value] == 0 {
			p.w.Fail(fmt.Errorf("D1: %s was confirmed, and never handled", l.Value))
		}
		p.queue = slices.DeleteFunc(p.queue, func(e delivery.Entry) bool {
			return e.EntryID == delivery.EntryID{Session: delivery.Session(l.Session), Number: l.Number}
		})
		p.w.Counts.Confirmed++
	}
	p.allowed[to] = a.Demand
	if p.held[to] -= len(confirmed); p.held[to] == 0 {
		delete(p.allowed, to)
	}
	p.outbox.Answered(p.w.Now(), to, *a)
}
