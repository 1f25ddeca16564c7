// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery/internal/producer"
)

// A producer drives an outbox, which decides: Send puts messages into it, next makes a call of each frame that is to be
// sent, and call asks the entity and tells the outbox the answer.

// The ways in which a message is not accepted, or not known to be handled.
var (
	// ErrFull says that the producer held as much as it may, of all messages or of those to the entity, until
	// the context ended. The message was not accepted.
	ErrFull = errors.New("delivery: the producer holds as much as it may, and nothing was confirmed in time")
	// ErrInvalid says that no entity could get the message: the id is empty, too long or not UTF-8, or the
	// message is nil, too large, or cannot be encoded. The message was not accepted.
	ErrInvalid = errors.New("delivery: invalid")
	// ErrClosed says that the producer, or its node, has ended. A message that [Producer.Send] has accepted
	// before may have been handled.
	ErrClosed = errors.New("delivery: the producer has ended")
	// ErrQueue says that the queue has failed. The message is not delivered by this producer, but perhaps by the next
	// one with the same queue.
	ErrQueue = errors.New("delivery: the queue has failed")
	// ErrUnconfirmed says that a message was accepted, and not confirmed until the context ended. It
	// is delivered all the same.
	ErrUnconfirmed = errors.New("delivery: accepted, and not confirmed yet")
)

// Stats are counts of a producer since it was started, and what it has at present.
type Stats struct {
	Held      int    // Messages that are accepted, or about to be, and not confirmed.
	Paused    int    // Entities that wait for the next attempt.
	Confirmed uint64 // Messages.
	Failed    uint64 // Attempts without a usable answer.
	Nonsense  uint64 // Those of them with an answer that confirmed what was never sent.
}

// Producer delivers messages to the entities of a kind. It is safe for concurrent use.
type Producer[M any] struct {
	*driver[M]

	// turn has a token while somebody numbers a message and appends it to the queue, so that messages are put in
	// the order of their numbers. Capacity one. Not used without a queue.
	turn chan struct{}

	outbox *producer.Outbox[*heldMessage[M]] // Guarded by mu, as stats.
	stats  Stats
}

// heldMessage is a message that the outbox holds, with its encoding.
type heldMessage[M any] struct {
	message M
	encoded []byte
	told    chan struct{} // Nil, or closed when the message is confirmed.
}

// NewProducer starts a producer for the entities of a region, and loads what its queue has. Close
// ends it. The error wraps [ErrConfig] or [ErrQueue].
func NewProducer[M any](ctx context.Context, region *sharding.Region[*Frame[M]], cfg Config) (*Producer[M], error) {
	d, err := newDriver(region, cfg)
	if err != nil {
		return nil, err
	}
	p := &Producer[M]{
		driver: d, turn: make(chan struct{}, 1),
		outbox: producer.New[*heldMessage[M]](d.cfg.outbox(), producer.Session(d.session), d.cfg.Rand),
	}
	last := map[Session]uint64{} // Of each session, the number before.
	if err := p.load(ctx, func(e Entry, m M) error { return p.restore(e, m, last) }); err != nil {
		return nil, err
	}
	go p.run(p.outbox, p.next, "messages") // Ended by Close, which waits for it, or by the end of the node.
	return p, nil
}

// restore gives the outbox what the queue has of an earlier producer.
func (p *Producer[M]) restore(e Entry, message M, last map[Session]uint64) error {
	switch {
	case e.Session == Session{}:
		return errors.New("it has no session")
	case e.Number <= last[e.Session]:
		return fmt.Errorf("it follows message %d of the same session", last[e.Session])
	}
	if err := checkID(e.To); err != nil {
		return err
	}
	last[e.Session] = e.Number
	p.outbox.Restore(e.To, producer.Message[*heldMessage[M]]{
		Session: producer.Session(e.Session), Number: e.Number,
		Value: &heldMessage[M]{message: message, encoded: e.Message}, Bytes: len(e.Message),
	})
	return nil
}

// Send has a message delivered, and returns when it is accepted: into the queue, if there is one. While the
// producer holds as much as it may, Send waits, until ctx ends. Messages that one goroutine
// sends to an entity are handled in their order. Nobody may change the message after the call.
//
// An entity that sends should give a context with a deadline: it handles nothing while it waits for room, and
// those who wait for the entity may be who holds the room.
//
// The error wraps [ErrFull] and the cause of ctx, [ErrInvalid], [ErrClosed] or [ErrQueue].
func (p *Producer[M]) Send(ctx context.Context, id string, message M) error {
	return p.send(ctx, id, message, nil)
}

// Deliver is Send, and waits until the message is confirmed: the entity has handled it. If ctx or the
// producer ends before that, the error wraps [ErrUnconfirmed] or [ErrClosed]. An entity that delivers to itself waits
// until its context ends.
func (p *Producer[M]) Deliver(ctx context.Context, id string, message M) error {
	told := make(chan struct{})
	if err := p.send(ctx, id, message, told); err != nil {
		return err
	}
	select {
	case <-told:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: to %q: %w", ErrUnconfirmed, id, context.Cause(ctx))
	case <-p.ends:
		return ErrClosed
	}
}

// Flush waits until everything that was accepted is confirmed. The error wraps
// [ErrUnconfirmed] or [ErrClosed].
func (p *Producer[M]) Flush(ctx context.Context) error { return p.flush(ctx, p.outbox) }

// Stats returns the counts of the producer.
func (p *Producer[M]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Held, s.Paused = p.outbox.Held(), p.outbox.Paused()
	return s
}

// Close ends the producer, and waits for its goroutines. What is not confirmed stays in the
// queue, or is lost if there is none: see Flush. It may be called twice.
func (p *Producer[M]) Close() { p.close() }

// send accepts a message.
func (p *Producer[M]) send(ctx context.Context, id string, message M, told chan struct{}) error {
	if err := checkID(id); err != nil {
		return err
	}
	encoded, err := p.encode(fmt.Sprintf("the message to %q", id), message)
	if err != nil {
		return err
	}
	m := &heldMessage[M]{message, encoded, told}
	return p.accept(ctx, func() (<-chan struct{}, error) { return p.offer(ctx, id, m) }, fmt.Errorf("%w: to %q", ErrFull, id))
}

// checkID refuses an id that no entity has.
func checkID(id string) error {
	if err := sharding.CheckEntityID(id); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}

// offer puts a message into the outbox if there is room. If there is none, it returns a channel that
// is closed when there may be.
func (p *Producer[M]) offer(ctx context.Context, id string, m *heldMessage[M]) (<-chan struct{}, error) {
	if p.cfg.Queue != nil {
		return p.enqueue(ctx, id, m)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	number, ok := p.outbox.Reserve(id, len(m.encoded))
	if !ok {
		return p.awaited(), nil
	}
	p.put(id, number, m)
	return nil, nil
}

// enqueue is offer with a queue. Nobody else has a number meanwhile.
func (p *Producer[M]) enqueue(ctx context.Context, id string, m *heldMessage[M]) (<-chan struct{}, error) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: waited for the queue: %w", ErrQueue, context.Cause(ctx))
	case <-p.ends:
		return nil, ErrClosed
	}
	number, room := p.reserve(id, len(m.encoded))
	if room != nil {
		return room, nil
	}
	err := p.cfg.Queue.Append(ctx, Entry{EntryID{Session(p.outbox.Session()), number}, id, m.encoded})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.outbox.Cancel(id, len(m.encoded))
		p.freed()
		return nil, fmt.Errorf("%w: %w", ErrQueue, err)
	}
	p.put(id, number, m)
	return nil, nil
}

// reserve returns a number, or what offer returns if there is no room.
func (p *Producer[M]) reserve(id string, size int) (uint64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, ok := p.outbox.Reserve(id, size)
	if !ok {
		return 0, p.awaited()
	}
	return number, nil
}

// put gives a message to the outbox. The caller holds mu.
func (p *Producer[M]) put(id string, number uint64, m *heldMessage[M]) {
	p.outbox.Put(id, number, m, len(m.encoded))
	p.rouse()
}

// next returns the call of the next frame that the outbox wants sent.
func (p *Producer[M]) next(now time.Duration) func(context.Context) {
	f, ok := p.outbox.Next(now)
	if !ok {
		return nil
	}
	return func(ctx context.Context) { p.call(ctx, f) }
}

// call sends a frame and tells the outbox how that has ended.
func (p *Producer[M]) call(ctx context.Context, f producer.Frame[*heldMessage[M]]) {
	frame := &Frame[M]{session: Session(f.Session), items: make([]item[M], len(f.Messages))}
	for i, l := range f.Messages {
		frame.items[i] = item[M]{l.Number, l.Value.message, l.Value.encoded}
	}
	ack, err := p.ask(ctx, f.To, frame)
	var confirmed []producer.Message[*heldMessage[M]]
	if err == nil {
		confirmed, err = p.confirm(ctx, f.To, ack.answer())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var pauses int
	if err == nil {
		pauses = p.outbox.Answered(time.Since(p.began), f.To, ack.answer())
		p.stats.Confirmed += uint64(len(confirmed))
	} else {
		pauses = p.outbox.Unanswered(time.Since(p.began), f.To)
		p.stats.Failed++
		if errors.Is(err, producer.ErrNonsense) {
			p.stats.Nonsense++
		}
	}
	for _, l := range confirmed {
		if l.Value.told != nil {
			close(l.Value.told)
		}
	}
	p.freed()
	p.rouse()
	if pauses >= 4 && bits.OnesCount(uint(pauses)) == 1 && !p.over() {
		p.cfg.Log.WarnContext(ctx, "an entity confirms nothing of what is delivered to it", "entity", f.To, "attempts", pauses, "error", err)
	}
}

// confirm has the queue forget what an answer confirms, and returns it. Until the queue has, nothing is confirmed.
func (p *Producer[M]) confirm(ctx context.Context, to string, a producer.Answer) ([]producer.Message[*heldMessage[M]], error) {
	p.mu.Lock()
	confirmed, err := p.outbox.Confirms(to, a)
	p.mu.Unlock()
	if err != nil || len(confirmed) == 0 || p.cfg.Queue == nil {
		return confirmed, err
	}
	ids := make([]EntryID, len(confirmed))
	for i, l := range confirmed {
		ids[i] = EntryID{Session(l.Session), l.Number}
	}
	if err := p.forget(ctx, ids); err != nil {
		return nil, err
	}
	return confirmed, nil
}
