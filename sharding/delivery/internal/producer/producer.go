// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package producer

import (
	"container/heap"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/sharding/delivery/internal/retry"
)

// An outbox holds what is not confirmed, by entity. The driver reserves room and puts messages; asks Next
// for frames to send until there is none, and again at Wake; and tells of each frame how it ended:
// Answered, after it has carried out what Confirms has said, or Unanswered. What belongs to
// one entity is in queue.go.

// Config bounds an outbox.
type Config struct {
	Messages, Bytes    int           // Held in all.
	PerEntity          int           // Messages held for one entity.
	Frame, FrameBytes  int           // Of one frame; one message may have more bytes.
	Calls              int           // Frames under way.
	RetryMin, RetryMax time.Duration // Between two attempts, doubling from the one to the other.
}

// Session names a numbering of messages. Two producers never have the same one.
type Session [16]byte

// Message is one message.
type Message[V any] struct {
	Session Session
	Number  uint64 // From 1, rising with each message of the session, to whatever entity.
	Value   V
	Bytes   int
}

// Frame is what goes to an entity at one time: messages of one session. Without messages it asks for the
// demand of the entity.
type Frame[V any] struct {
	To       string
	Session  Session
	Messages []Message[V]
}

// Answer is what an entity says to a frame.
type Answer struct {
	Session   Session
	Confirmed uint64 // The last message of the frame that was handled, by this frame or an earlier one; 0: none.
	Demand    int    // How many messages the next frame may have; 0: none at present.
}

// ErrNonsense says that an answer confirms what its frame has not.
var ErrNonsense = errors.New("the answer confirms what was not sent")

// Outbox is the machine of a producer. Time is that since its beginning.
type Outbox[V any] struct {
	cfg     Config
	session Session
	rand    *rand.Rand
	number  uint64 // The last one given.

	queues          map[string]*queue[V] // Those with messages, or with room reserved.
	ready           []*queue[V]          // In the order in which they are served.
	paused          schedule[V]
	underWay        int // Queues with a frame under way.
	messages, bytes int // Held or reserved.
}

// New returns an outbox that holds nothing. The source spreads the pauses.
func New[V any](cfg Config, session Session, source *rand.Rand) *Outbox[V] {
	return &Outbox[V]{cfg: cfg, session: session, rand: source, queues: map[string]*queue[V]{}}
}

// Session returns the session of the messages that are put.
func (o *Outbox[V]) Session() Session { return o.session }

// Held returns how many messages are not confirmed, with those for which there is room only.
func (o *Outbox[V]) Held() int { return o.messages }

// Paused returns how many entities wait for their next attempt.
func (o *Outbox[V]) Paused() int { return len(o.paused) }

// Restore puts messages of an earlier outbox, which that may have sent. The bounds are not
// applied: what was accepted once is not refused.
func (o *Outbox[V]) Restore(to string, m Message[V]) {
	q := o.queue(to)
	o.hold(1, m.Bytes)
	q.messages = append(q.messages, m)
	o.makeReady(q)
}

// Reserve keeps room for a message of a size, and returns its number; false when there is no room.
// Numbers are put in the order in which they were reserved, or never.
func (o *Outbox[V]) Reserve(to string, bytes int) (number uint64, ok bool) {
	q := o.queues[to]
	switch {
	case o.messages >= o.cfg.Messages,
		o.messages > 0 && o.bytes+bytes > o.cfg.Bytes,
		q != nil && len(q.messages)+q.reserved >= o.cfg.PerEntity:
		return 0, false
	}
	o.queue(to).reserved++
	o.hold(1, bytes)
	o.number++
	return o.number, true
}

// Put adds the message for which room was reserved.
func (o *Outbox[V]) Put(to string, number uint64, value V, bytes int) {
	q := o.queues[to]
	q.reserved--
	q.messages = append(q.messages, Message[V]{o.session, number, value, bytes})
	o.makeReady(q)
}

// Cancel frees the room that was reserved for a message. Its number is not given again.
func (o *Outbox[V]) Cancel(to string, bytes int) {
	q := o.queues[to]
	q.reserved--
	o.hold(-1, -bytes)
	o.forget(q)
}

// Next returns a frame that is to be sent at once; false when there is none, or too many are under way.
func (o *Outbox[V]) Next(now time.Duration) (Frame[V], bool) {
	for len(o.paused) > 0 && o.paused[0].due <= now {
		q := heap.Pop(&o.paused).(*queue[V])
		q.stage = idle
		o.makeReady(q)
	}
	if len(o.ready) == 0 || o.underWay >= o.cfg.Calls {
		return Frame[V]{}, false
	}
	q := o.ready[0]
	o.ready[0] = nil
	o.ready = o.ready[1:]
	q.stage = underWay
	o.underWay++
	return q.frame(o.cfg), true
}

// Wake returns when Next is to be asked again if nothing happens before; false for never.
func (o *Outbox[V]) Wake() (time.Duration, bool) {
	switch {
	case o.underWay >= o.cfg.Calls:
		return 0, false
	case len(o.ready) > 0:
		return 0, true
	case len(o.paused) > 0:
		return o.paused[0].due, true
	default:
		return 0, false
	}
}

// Confirms returns the messages to an entity that an answer to the frame under way confirms. The error wraps
// [ErrNonsense].
func (o *Outbox[V]) Confirms(to string, a Answer) ([]Message[V], error) {
	q := o.queues[to]
	n, err := q.covered(a)
	return slices.Clone(q.messages[:n]), err
}

// Answered handles the answer to the frame under way to an entity, and drops the messages that it confirms. It returns
// how many pauses the entity has had in a row, without progress between them; 0 if it has none now.
func (o *Outbox[V]) Answered(now time.Duration, to string, a Answer) (pauses int) {
	q := o.queues[to]
	n, err := q.covered(a)
	if err != nil {
		return o.Unanswered(now, to)
	}
	probe := q.size == 0
	for _, m := range q.messages[:n] {
		o.hold(-1, -m.Bytes)
	}
	q.messages = slices.Delete(q.messages, 0, n)
	q.credit = min(max(a.Demand, 0), o.cfg.Frame)
	if n > 0 {
		q.pauses = 0
	}
	o.land(q)
	switch {
	case len(q.messages) == 0:
		o.forget(q)
	case q.credit == 0, n == 0 && !probe:
		o.pause(now, q)
	default:
		o.makeReady(q)
	}
	return q.pauses
}

// Unanswered says that the frame under way to an entity has had no answer of use: it may have been
// handled, or may be later. It returns what Answered does.
func (o *Outbox[V]) Unanswered(now time.Duration, to string) (pauses int) {
	q := o.queues[to]
	q.credit = min(q.credit, 1)
	o.land(q)
	o.pause(now, q)
	return q.pauses
}

func (o *Outbox[V]) land(q *queue[V]) {
	q.stage, q.size = idle, 0
	o.underWay--
}

// pause sends nothing to an entity for a time, which doubles with each attempt without success.
func (o *Outbox[V]) pause(now time.Duration, q *queue[V]) {
	q.due = now + retry.Pause(o.rand, o.cfg.RetryMin, o.cfg.RetryMax, q.pauses)
	q.pauses++
	q.stage = paused
	heap.Push(&o.paused, q)
}

// makeReady queues an entity for its turn, if it has messages and nothing is under way to it.
func (o *Outbox[V]) makeReady(q *queue[V]) {
	if q.stage == idle && len(q.messages) > 0 {
		q.stage = ready
		o.ready = append(o.ready, q)
	}
}

func (o *Outbox[V]) hold(messages, bytes int) {
	o.messages += messages
	o.bytes += bytes
}

// queue returns the queue of an entity. A new one begins with a frame of one message.
func (o *Outbox[V]) queue(to string) *queue[V] {
	q := o.queues[to]
	if q == nil {
		q = &queue[V]{to: to, credit: 1}
		o.queues[to] = q
	}
	return q
}

// forget drops the queue of an entity for which nothing is held. Messages are numbered by session, so nothing of the
// entity must be kept.
func (o *Outbox[V]) forget(q *queue[V]) {
	if q.stage == idle && len(q.messages) == 0 && q.reserved == 0 {
		delete(o.queues, q.to)
	}
}
