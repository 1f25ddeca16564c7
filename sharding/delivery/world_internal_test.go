// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/sharding/internal/courier"
	"github.com/quorate/quorate/simulation"
)

// A world in virtual time: producers, which are the courier of production, and entities, which are the inbox
// and Frame.Handle of production, over a network that loses, doubles, delays and reorders frames and
// acknowledgements. Entities restart with their memory (it is saved with each message) or
// without, stand still, close their window, and answer nonsense; producers restart with their queue or
// without. Given a seed a run repeats to the byte.
//
// What must hold:
//
//   - D1: what was confirmed was handled.
//   - D2: an entity handles a message once as long as it remembers.
//   - D3: an entity handles what comes of one session in rising numbers as long as it remembers; if
//     the memory is saved and the producer has a queue, all of the producer in the order of its sends.
//   - D4: one frame at a time is under way to an entity, within what the entity has last allowed.
//   - D5: a producer holds no more than it may.
//   - D6: when the faults are over, what is held is confirmed soon, and nothing accepted by a producer with
//     a queue is missing.

type value = *wrapperspb.StringValue

// The size of a world.
const (
	worldEntities  = 4
	worldProducers = 3
	worldFaults    = 2 * time.Minute
	worldRecovery  = 90 * time.Second
	worldTimeout   = 2 * time.Second
)

func worldConfig() Config {
	c := Default()
	c.Messages, c.PerEntity, c.Frame, c.Calls = 60, 25, 12, 3
	c.RetryMin, c.RetryMax = 50*time.Millisecond, 5*time.Second
	return c
}

// counts sum up a run.
type counts struct {
	Accepted, Refused, Confirmed, Handled, Again   int
	Frames, Lost, Doubled, Late, Nonsense, Probes  int
	Crashes, Restarts, Stops, Closures, Unanswered int
}

type world struct {
	*simulation.World

	rand      *rand.Rand
	codec     codec[value]
	calm      bool
	producers []*simProducer
	entities  []*simEntity
	handled   map[string]int // How often a message was handled, in all.
	counts    counts
}

func newWorld(seed uint64) *world {
	w := &world{
		World: simulation.New(simulation.Options{Seed: seed}),
		codec: codec[value]{innerOf(nil)}, handled: map[string]int{},
	}
	w.rand = w.Source(61)
	for i := range worldEntities {
		e := &simEntity{w: w, id: fmt.Sprintf("e%d", i), saved: i%2 == 0}
		e.begin()
		w.entities = append(w.entities, e)
	}
	for i := range worldProducers {
		p := &simProducer{w: w, name: fmt.Sprintf("p%d", i), queued: i != 0, sent: map[string]int{}}
		w.producers = append(w.producers, p)
		p.begin()
		p.client()
	}
	w.trouble()
	return w
}

func (w *world) chance(p float64) bool              { return !w.calm && w.rand.Float64() < p }
func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rand.Int64N(int64(d))) }

// carry has something arrive, once, never or twice, soon or late.
func (w *world) carry(f func()) {
	if w.chance(0.12) {
		w.counts.Lost++
		return
	}
	copies := 1
	if w.chance(0.12) {
		w.counts.Doubled++
		copies = 2
	}
	for range copies {
		delay := w.upTo(40 * time.Millisecond)
		if w.chance(0.1) {
			w.counts.Late++
			delay = w.upTo(15 * time.Second)
		}
		w.After(delay, f)
	}
}

// trouble lets faults strike until their time is over.
func (w *world) trouble() {
	w.After(w.upTo(3*time.Second), func() {
		if w.Now() > worldFaults {
			w.recover()
			return
		}
		e := w.entities[w.rand.IntN(len(w.entities))]
		switch w.rand.IntN(6) {
		case 0, 1:
			w.counts.Restarts++
			e.begin()
		case 2:
			w.counts.Crashes++
			w.producers[w.rand.IntN(len(w.producers))].begin()
		case 3:
			w.counts.Stops++
			e.still = w.Now() + w.upTo(20*time.Second)
		case 4:
			w.counts.Closures++
			e.inbox.Window = w.rand.IntN(10) - 2 // Below zero: closed. Zero: the default.
		case 5:
			e.nonsense = w.Now() + w.upTo(10*time.Second)
		}
		w.trouble()
	})
}

func (w *world) recover() {
	w.calm = true
	for _, e := range w.entities {
		e.still, e.nonsense, e.inbox.Window = 0, 0, 5
	}
}

// simProducer is a producer and its node.
type simProducer struct {
	w      *world
	name   string
	life   int
	queued bool
	queue  []Entry
	sent   map[string]int // How many messages were accepted, by entity.

	courier  *courier.Courier[string]
	session  courier.Session
	restored int
	held     map[string]int // Messages of this courier, by entity.
	allowed  map[string]int // What an entity has last allowed this courier, while that holds something for it.
	underWay map[string]uint64
	call     uint64
}

// begin starts the producer, and anew after a crash: what it held is gone but for the queue.
func (p *simProducer) begin() {
	p.life++
	p.session = courier.Session{p.name[1], byte(p.life), 1}
	p.courier = courier.New[string](worldConfig().courier(), p.session, p.w.Source(100+uint64(p.name[1])*1000+uint64(p.life)))
	p.held, p.allowed, p.underWay = map[string]int{}, map[string]int{}, map[string]uint64{}
	p.restored = len(p.queue)
	for _, e := range p.queue {
		p.held[e.To]++
		p.courier.Restore(e.To, courier.Letter[string]{
			Session: courier.Session(e.Session), Number: e.Number, Value: string(e.Message), Bytes: len(e.Message),
		})
	}
	p.w.Log("%s begins its life %d with %d messages", p.name, p.life, p.restored)
	p.serve()
}

// client sends something now and then.
func (p *simProducer) client() {
	p.w.After(p.w.upTo(300*time.Millisecond), func() {
		for range p.w.rand.IntN(4) {
			p.send(p.w.entities[p.w.rand.IntN(len(p.w.entities))].id)
		}
		if !p.w.calm {
			p.client()
		}
	})
}

func (p *simProducer) send(to string) {
	text := fmt.Sprintf("%s/%s/%d", p.name, to, p.sent[to]+1)
	number, ok := p.courier.Reserve(to, len(text))
	switch {
	case !ok:
		p.w.counts.Refused++
		return
	case p.w.chance(0.05): // The queue fails.
		p.courier.Cancel(to, len(text))
		return
	case p.queued:
		p.queue = append(p.queue, Entry{EntryID{Session(p.session), number}, to, []byte(text)})
	}
	p.sent[to]++
	p.held[to]++
	p.w.counts.Accepted++
	p.courier.Put(to, number, text, len(text))
	if most := max(worldConfig().Messages, p.restored); p.courier.Held() > most {
		p.w.Fail(fmt.Errorf("D5: %s holds %d messages, at most %d are allowed", p.name, p.courier.Held(), most))
	}
	p.serve()
}

// serve sends what is due, and comes back when something else may be.
func (p *simProducer) serve() {
	for {
		f, ok := p.courier.Next(p.w.Now())
		if !ok {
			break
		}
		p.ask(f)
	}
	if at, ok := p.courier.Wake(); ok {
		life := p.life
		p.w.After(max(at-p.w.Now(), time.Microsecond), func() {
			if p.life == life {
				p.serve()
			}
		})
	}
}

// ask sends a frame and waits for its answer.
func (p *simProducer) ask(f courier.Frame[string]) {
	w := p.w
	w.counts.Frames++
	if len(f.Letters) == 0 {
		w.counts.Probes++
	}
	allowed, known := p.allowed[f.To]
	if !known {
		allowed = 1
	}
	if len(f.Letters) > allowed {
		w.Fail(fmt.Errorf("D4: %s sends %d messages to %s, which allows %d", p.name, len(f.Letters), f.To, allowed))
	}
	if p.underWay[f.To] != 0 {
		w.Fail(fmt.Errorf("D4: %s has two frames under way to %s", p.name, f.To))
	}
	p.call++
	call, life := p.call, p.life
	p.underWay[f.To] = call
	frame := &Frame[value]{session: Session(f.Session)}
	for _, l := range f.Letters {
		frame.items = append(frame.items, item[value]{number: l.Number, message: wrapperspb.String(l.Value)})
	}
	w.Log("%s asks %s: %d messages of session %x from %v", p.name, f.To, len(f.Letters), f.Session[:2], first(f.Letters))
	answered := func(a *Ack) {
		if p.life != life || p.underWay[f.To] != call {
			return
		}
		delete(p.underWay, f.To)
		p.answered(f.To, a)
		p.serve()
	}
	encoded, err := w.codec.Append(nil, frame)
	if err != nil {
		w.Fail(err)
	}
	to := w.entities[slices.IndexFunc(w.entities, func(e *simEntity) bool { return e.id == f.To })]
	w.carry(func() {
		to.receive(encoded, func(a *Ack) { w.carry(func() { answered(a) }) })
	})
	w.After(worldTimeout, func() { answered(nil) })
}

func first(letters []courier.Letter[string]) uint64 {
	if len(letters) == 0 {
		return 0
	}
	return letters[0].Number
}

// answered tells the courier of an answer; nil for none.
func (p *simProducer) answered(to string, a *Ack) {
	var confirmed []courier.Letter[string]
	var err error
	if a != nil {
		confirmed, err = p.courier.Confirms(to, a.answer())
	}
	if a == nil || err != nil || p.w.chance(0.02) { // The queue fails.
		p.w.counts.Unanswered++
		p.courier.Unanswered(p.w.Now(), to)
		return
	}
	for _, l := range confirmed {
		if p.w.handled[l.Value] == 0 {
			p.w.Fail(fmt.Errorf("D1: %s was confirmed, and never handled", l.Value))
		}
		p.queue = slices.DeleteFunc(p.queue, func(e Entry) bool {
			return e.EntryID == EntryID{Session(l.Session), l.Number}
		})
		p.w.counts.Confirmed++
	}
	p.allowed[to] = a.demand
	if p.held[to] -= len(confirmed); p.held[to] == 0 {
		delete(p.allowed, to)
	}
	p.courier.Answered(p.w.Now(), to, a.answer())
}

// simEntity is an entity and its home.
type simEntity struct {
	w     *world
	id    string
	saved bool // The inbox is saved with what is handled.
	life  int

	inbox    Inbox
	seen     map[string]bool    // What was handled since the memory began.
	last     map[Session]uint64 // The last number of each session since the memory began.
	order    map[string]int     // The last of what a producer has sent, since the memory began.
	still    time.Duration      // The entity handles nothing until then.
	nonsense time.Duration      // The entity answers nonsense until then.
}

// begin starts the entity, and anew on another node.
func (e *simEntity) begin() {
	e.life++
	inbox := Inbox{Window: 5, Sessions: 1000}
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
	e.inbox, e.seen, e.last, e.order = inbox, map[string]bool{}, map[Session]uint64{}, map[string]int{}
}

// receive handles a frame, when the entity gets to it.
func (e *simEntity) receive(encoded []byte, reply func(*Ack)) {
	if wait := e.still - e.w.Now(); wait > 0 {
		e.w.After(wait, func() { e.receive(encoded, reply) })
		return
	}
	f := new(Frame[value])
	if err := e.w.codec.Decode(encoded, f); err != nil {
		e.w.Fail(fmt.Errorf("a frame cannot be decoded: %w", err))
		return
	}
	c := new(answer)
	at := 0
	err := f.Handle(c, &e.inbox, func(m value) error {
		at++
		if e.w.chance(0.05) {
			return fmt.Errorf("message %d failed", at)
		}
		e.handle(f, m.GetValue())
		return nil
	})
	switch {
	case err != nil:
		e.begin()
	case e.w.Now() < e.nonsense:
		e.w.counts.Nonsense++
		switch e.w.rand.IntN(3) {
		case 0:
			c.ack.confirmed += 1_000_000
		case 1:
			c.ack.session[0]++
		case 2:
			c.ack.confirmed = e.w.rand.Uint64N(1 + c.ack.confirmed) // Something of before, or nothing.
			c.ack.demand = FrameMax
		}
		reply(c.ack)
	default:
		reply(c.ack)
	}
}

// answer takes the reply of an entity, by way of its encoding.
type answer struct{ ack *Ack }

func (c *answer) Reply(message any) error {
	var codec codec[value]
	b, err := codec.Append(nil, message)
	if err != nil {
		return err
	}
	c.ack = new(Ack)
	return codec.Decode(b, c.ack)
}

// handle notes that a message was handled.
func (e *simEntity) handle(f *Frame[value], text string) {
	w := e.w
	w.counts.Handled++
	w.handled[text]++
	if w.handled[text] > 1 {
		w.counts.Again++
	}
	if e.seen[text] {
		w.Fail(fmt.Errorf("D2: %s was handled twice", text))
	}
	e.seen[text] = true
	i := slices.IndexFunc(f.items, func(i item[value]) bool { return i.message.GetValue() == text })
	if number := f.items[i].number; number <= e.last[f.session] {
		w.Fail(fmt.Errorf("D3: %s, number %d of its session, was handled after number %d", text, number, e.last[f.session]))
	} else {
		e.last[f.session] = number
	}
	name, n := text[:2], 0
	if _, err := fmt.Sscanf(text[len("p0/e0/"):], "%d", &n); err != nil {
		w.Fail(err)
	}
	if e.saved && name != "p0" && n != e.order[name]+1 {
		w.Fail(fmt.Errorf("D3: %s was handled after %d of %s", text, e.order[name], name))
	}
	e.order[name] = n
}

// finish runs the world to its end.
func (w *world) finish() error {
	if err := w.Run(worldFaults + worldRecovery); err != nil {
		return err
	}
	for _, p := range w.producers {
		if held := p.courier.Held(); held > 0 {
			w.Fail(fmt.Errorf("D6: %s holds %d messages %v after the faults", p.name, held, worldRecovery))
		}
		for to, n := range p.sent {
			for i := 1; i <= n && p.queued; i++ {
				if text := fmt.Sprintf("%s/%s/%d", p.name, to, i); w.handled[text] == 0 {
					w.Fail(fmt.Errorf("D6: %s was accepted, and never handled", text))
				}
			}
		}
	}
	return w.Failure()
}
