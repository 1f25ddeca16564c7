// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// An entity: its inbox, and what it has handled since the memory began.

// entity is an entity and its home.
type entity struct {
	w     *World
	id    string
	saved bool // The inbox is saved with what is handled.
	life  int

	inbox    delivery.Inbox
	seen     map[string]bool             // What was handled since the memory began.
	last     map[producer.Session]uint64 // The last number of each session since the memory began.
	order    map[string]int              // The last of what a producer has sent, since the memory began.
	still    time.Duration               // The entity handles nothing until then.
	nonsense time.Duration               // The entity answers nonsense until then.
}

// begin starts the entity, and anew on another node.
func (e *entity) begin() {
	e.life++
	inbox := delivery.Inbox{Window: 5, Sessions: 1000}
	if e.saved && e.life > 1 {
		saved, err := json.Marshal(e.inbox)
		if err == nil {
			err = json.Unmarshal(saved, &inbox)
		}
		if err != nil {
			e.w.Fail(err)
		}
		e.inbox = inbox
		return
	}
	e.inbox, e.seen, e.last, e.order = inbox, map[string]bool{}, map[producer.Session]uint64{}, map[string]int{}
}

// receive handles a frame, when the entity gets to it.
func (e *entity) receive(session producer.Session, encoded []byte, reply func(*producer.Answer)) {
	if wait := e.still - e.w.Now(); wait > 0 {
		e.w.After(wait, func() { e.receive(session, encoded, reply) })
		return
	}
	f := new(delivery.Frame[value])
	if err := codec().Decode(encoded, f); err != nil {
		e.w.Fail(fmt.Errorf("a frame cannot be decoded: %w", err))
		return
	}
	c := new(replier)
	at := 0
	err := f.Handle(c, &e.inbox, func(m value) error {
		at++
		if e.w.chance(0.05) {
			return fmt.Errorf("message %d failed", at)
		}
		e.handle(session, m.GetValue())
		return nil
	})
	switch {
	case err != nil:
		e.begin()
	case e.w.Now() < e.nonsense:
		e.w.Counts.Nonsense++
		switch e.w.rand.IntN(3) {
		case 0:
			c.answer.Confirmed += 1_000_000
		case 1:
			c.answer.Session[0]++
		case 2:
			c.answer.Confirmed = e.w.rand.Uint64N(1 + c.answer.Confirmed) // Something of before, or nothing.
			c.answer.Demand = delivery.MaxFrame
		}
		reply(&c.answer)
	default:
		reply(&c.answer)
	}
}

// skipped reports whether something between two messages of a producer was accepted.
func (w *World) skipped(name, to string, after, before int) bool {
	for i := after + 1; i < before; i++ {
		if w.accepted[fmt.Sprintf("%s/%s/%d", name, to, i)] {
			return true
		}
	}
	return false
}

// handle notes that a message was handled.
func (e *entity) handle(session producer.Session, text string) {
	w := e.w
	w.Counts.Handled++
	w.handled[text]++
	if w.handled[text] > 1 {
		w.Counts.Again++
	}
	if e.seen[text] {
		w.Fail(fmt.Errorf("D2: %s was handled twice", text))
	}
	e.seen[text] = true
	if number := w.numbers[text]; number <= e.last[session] {
		w.Fail(fmt.Errorf("D3: %s, number %d of its session, was handled after number %d", text, number, e.last[session]))
	} else {
		e.last[session] = number
	}
	name, n := text[:2], 0
	if _, err := fmt.Sscanf(text[strings.LastIndexByte(text, '/'):], "/%d", &n); err != nil {
		w.Fail(err)
	}
	// (docs/delivery.md, "One that begins with an empty inbox begins with what was not acknowledged") p0 has no queue:
	// what it had accepted before its life is gone (docs/delivery.md, "While the producer lives; with a `Queue` that is
	// durable, also by the next producer with it.").
	if e.saved && name != "p0" && (n <= e.order[name] || w.skipped(name, e.id, e.order[name], n)) {
		w.Fail(fmt.Errorf("D3: %s was handled after %d of %s", text, e.order[name], name))
	}
	e.order[name] = n
}
