// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/internal/courier"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The driver of a producer: Send puts messages into the courier, run makes a call of each frame that the
// courier wants sent, call asks the entity and tells the courier what it has answered. All decisions are the courier's.

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
	// ErrQueue says that the queue has failed. The message is not delivered by this producer, but perhaps by the next one with
	// the same queue.
	ErrQueue = errors.New("delivery: the queue has failed")
	// ErrUnconfirmed says that a message was accepted, and not confirmed until the context ended. It
	// is delivered all the same.
	ErrUnconfirmed = errors.New("delivery: accepted, and not confirmed yet")
)

// Stats are counts of a producer since it began, and how it is at present.
type Stats struct {
	Held      int    // Messages that are accepted, or about to be, and not confirmed.
	Paused    int    // Entities that wait for the next attempt.
	Confirmed uint64 // Messages.
	Failed    uint64 // Attempts to which no answer of use came.
	Nonsense  uint64 // Those of them with an answer that confirmed what was never sent.
}

// Producer delivers messages to the entities of a kind. It is safe for concurrent use.
type Producer[M any] struct {
	region *sharding.Region[*Frame[M]]
	codec  codec[M]
	cfg    Config
	began  time.Time

	// turn has a token while somebody numbers a message and appends it to the queue, so that messages are put in
	// the order of their numbers. Capacity one. Not used without a queue.
	turn chan struct{}
	wake chan struct{}  // Has a token when the courier may have something to send. Capacity one.
	ends chan struct{}  // Closed when the producer ends.
	done chan struct{}  // Closed when run has returned.
	work sync.WaitGroup // Calls under way.
	end  func()         // Closes ends, once.

	mu      sync.Mutex // Guards all below.
	courier *courier.Courier[*parcel[M]]
	stats   Stats
	room    chan struct{} // Nil, or closed when something was confirmed.
}

// parcel is what the courier holds of a message.
type parcel[M any] struct {
	message M
	encoded []byte
	told    chan struct{} // Nil, or closed when the message is confirmed.
}

// NewProducer starts a producer for the entities of a region, and loads what its queue has. Close
// ends it. The error wraps [ErrConfig] or [ErrQueue].
func NewProducer[M any](ctx context.Context, region *sharding.Region[*Frame[M]], cfg Config) (*Producer[M], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	var session Session
	if _, err := crand.Read(session[:]); err != nil {
		return nil, fmt.Errorf("delivery: no session: %w", err)
	}
	if cfg.Rand == nil {
		seed := binary.LittleEndian.Uint64(session[:])
		cfg.Rand = rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // It spreads pauses.
	}
	p := &Producer[M]{
		region: region, codec: codec[M]{innerOf(cfg.Codec)}, cfg: cfg, began: time.Now(),
		turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), ends: make(chan struct{}), done: make(chan struct{}),
		courier: courier.New[*parcel[M]](cfg.courier(), courier.Session(session), cfg.Rand),
	}
	p.end = sync.OnceFunc(func() { close(p.ends) })
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	go p.run() // Ended by Close, which waits for it, or by the end of the node.
	return p, nil
}

// load takes what the queue has of earlier producers.
func (p *Producer[M]) load(ctx context.Context) error {
	if p.cfg.Queue == nil {
		return nil
	}
	entries, err := p.cfg.Queue.Load(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	last := map[Session]uint64{} // Of each session, the number before.
	for _, e := range entries {
		message, err := p.codec.message(e.Message)
		switch {
		case err != nil:
			err = fmt.Errorf("it cannot be decoded: %w", err)
		case e.Session == Session{}:
			err = errors.New("it has no session")
		case e.Number <= last[e.Session]:
			err = fmt.Errorf("it follows message %d of the same session", last[e.Session])
		default:
			err = checkID(e.To)
		}
		if err != nil {
			return fmt.Errorf("%w: message %d of session %x: %w", ErrQueue, e.Number, e.Session, err)
		}
		last[e.Session] = e.Number
		p.courier.Restore(e.To, courier.Letter[*parcel[M]]{
			Session: courier.Session(e.Session), Number: e.Number,
			Value: &parcel[M]{message: message, encoded: e.Message}, Bytes: len(e.Message),
		})
	}
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
func (p *Producer[M]) Flush(ctx context.Context) error {
	for {
		p.mu.Lock()
		held, room := p.courier.Held(), p.awaited()
		p.mu.Unlock()
		if held == 0 {
			return nil
		}
		if err := p.await(ctx, room, ErrUnconfirmed); err != nil {
			return err
		}
	}
}

// Stats returns the counts of the producer.
func (p *Producer[M]) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Held, s.Paused = p.courier.Held(), p.courier.Paused()
	return s
}

// Close ends the producer, and waits for its goroutines. What is not confirmed stays in the
// queue, or is lost if there is none: see Flush. It may be called twice.
func (p *Producer[M]) Close() {
	p.end()
	<-p.done
}

// send accepts a message.
func (p *Producer[M]) send(ctx context.Context, id string, message M, told chan struct{}) error {
	if err := checkID(id); err != nil {
		return err
	}
	var none M
	if any(message) == any(none) {
		return fmt.Errorf("%w: the message to %q is nil", ErrInvalid, id)
	}
	encoded, err := p.codec.inner.Append([]byte{}, message)
	switch {
	case err != nil:
		return fmt.Errorf("%w: the message to %q cannot be encoded: %w", ErrInvalid, id, err)
	case len(encoded) > p.cfg.MessageBytes:
		return fmt.Errorf("%w: the message to %q has %d bytes, Config.MessageBytes is %d", ErrInvalid, id, len(encoded), p.cfg.MessageBytes)
	}
	m := &parcel[M]{message, encoded, told}
	if ctx.Err() != nil {
		return fmt.Errorf("delivery: not accepted: %w", context.Cause(ctx))
	}
	for {
		room, err := p.offer(ctx, id, m)
		if room == nil {
			return err
		}
		if err := p.await(ctx, room, fmt.Errorf("%w: to %q", ErrFull, id)); err != nil {
			return err
		}
	}
}

// checkID refuses an id that no entity has.
func checkID(id string) error {
	if id == "" || len(id) > protocol.MaxEntityBytes || !utf8.ValidString(id) {
		return fmt.Errorf("%w: an id has 1 to %d bytes of UTF-8", ErrInvalid, protocol.MaxEntityBytes)
	}
	return nil
}

// await waits for a channel, and returns an error that wraps why or ErrClosed when something else ends the wait.
func (p *Producer[M]) await(ctx context.Context, c <-chan struct{}, why error) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", why, context.Cause(ctx))
	case <-p.ends:
		return ErrClosed
	}
}

// offer puts a message into the courier if there is room. If there is none, it returns a channel that
// is closed when there may be.
func (p *Producer[M]) offer(ctx context.Context, id string, m *parcel[M]) (<-chan struct{}, error) {
	if p.over() {
		return nil, ErrClosed
	}
	if p.cfg.Queue != nil {
		return p.enqueue(ctx, id, m)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	number, ok := p.courier.Reserve(id, len(m.encoded))
	if !ok {
		return p.awaited(), nil
	}
	p.put(id, number, m)
	return nil, nil
}

// enqueue is offer with a queue. Nobody else has a number meanwhile.
func (p *Producer[M]) enqueue(ctx context.Context, id string, m *parcel[M]) (<-chan struct{}, error) {
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
	err := p.cfg.Queue.Append(ctx, Entry{EntryID{Session(p.courier.Session()), number}, id, m.encoded})
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.courier.Cancel(id, len(m.encoded))
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
	number, ok := p.courier.Reserve(id, size)
	if !ok {
		return 0, p.awaited()
	}
	return number, nil
}

// put gives a message to the courier. The caller holds mu.
func (p *Producer[M]) put(id string, number uint64, m *parcel[M]) {
	p.courier.Put(id, number, m, len(m.encoded))
	p.rouse()
}

// over reports whether the producer has ended.
func (p *Producer[M]) over() bool {
	select {
	case <-p.ends:
		return true
	default:
		return false
	}
}

// awaited returns what is closed when something is confirmed. The caller holds mu.
func (p *Producer[M]) awaited() <-chan struct{} {
	if p.room == nil {
		p.room = make(chan struct{})
	}
	return p.room
}

// freed tells those who wait that something was confirmed. The caller holds mu.
func (p *Producer[M]) freed() {
	if p.room != nil {
		close(p.room)
		p.room = nil
	}
}

// rouse has run ask the courier for frames.
func (p *Producer[M]) rouse() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run makes a call of each frame that the courier wants sent.
func (p *Producer[M]) run() {
	defer close(p.done)
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-p.wake:
		case <-timer.C:
		case <-p.ends:
			cancel(ErrClosed)
			p.work.Wait()
			p.farewell()
			return
		}
		if d, ok := p.serve(ctx); ok {
			timer.Reset(d)
		}
	}
}

// serve makes the calls that are due, and returns when it is to be called again at the latest.
func (p *Producer[M]) serve(ctx context.Context) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		f, ok := p.courier.Next(time.Since(p.began))
		if !ok {
			break
		}
		p.work.Go(func() { p.call(ctx, f) }) // As many as Config.Calls; run waits for them.
	}
	at, ok := p.courier.Wake()
	return max(at-time.Since(p.began), 0), ok
}

// call sends a frame and tells the courier how that has ended.
func (p *Producer[M]) call(ctx context.Context, f courier.Frame[*parcel[M]]) {
	frame := &Frame[M]{session: Session(f.Session), items: make([]item[M], len(f.Letters))}
	for i, l := range f.Letters {
		frame.items[i] = item[M]{l.Number, l.Value.message, l.Value.encoded}
	}
	asking, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	ack, err := sharding.Ask[*Ack](asking, p.region, f.To, frame)
	cancel()
	var confirmed []courier.Letter[*parcel[M]]
	if err == nil {
		confirmed, err = p.confirm(ctx, f.To, ack.answer())
	}
	if errors.Is(err, sharding.ErrClosed) {
		p.end() // The node has ended: nothing will be delivered any more.
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var pauses int
	if err == nil {
		pauses = p.courier.Answered(time.Since(p.began), f.To, ack.answer())
		p.stats.Confirmed += uint64(len(confirmed))
	} else {
		pauses = p.courier.Unanswered(time.Since(p.began), f.To)
		p.stats.Failed++
		if errors.Is(err, courier.ErrNonsense) {
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
		p.cfg.Log.Warn("an entity confirms nothing of what is delivered to it", "entity", f.To, "attempts", pauses, "error", err)
	}
}

// confirm has the queue forget what an answer confirms, and returns it. Until the queue has, nothing is confirmed.
func (p *Producer[M]) confirm(ctx context.Context, to string, a courier.Answer) ([]courier.Letter[*parcel[M]], error) {
	p.mu.Lock()
	confirmed, err := p.courier.Confirms(to, a)
	p.mu.Unlock()
	if err != nil || len(confirmed) == 0 || p.cfg.Queue == nil {
		return confirmed, err
	}
	ids := make([]EntryID, len(confirmed))
	for i, l := range confirmed {
		ids[i] = EntryID{Session(l.Session), l.Number}
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	if err := p.cfg.Queue.Remove(ctx, ids); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrQueue, err)
	}
	return confirmed, nil
}

// farewell says what is lost.
func (p *Producer[M]) farewell() {
	if held := p.Stats().Held; held > 0 && p.cfg.Queue == nil {
		p.cfg.Log.Warn("a producer ends with messages that are not confirmed: they may be lost", "messages", held)
	}
}
