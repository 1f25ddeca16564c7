// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// The queue of a lane, from append to acknowledgement. Append encodes into the batch;
// take seals the batch into a frame, numbers it and gives it to the writer;
// acknowledge releases frames. A new connection writes unacknowledged frames again
// (connected), a new session drops written ones as lost (abandon), and finish, absorb
// and idle end the queue. After these, the clocks by which a lane is silent, idle or
// away, and the waiting for room.

// maxInFlight is how many frames may be written and not acknowledged. Above it batches
// grow instead, so that a lane over a slow link does not hold a buffer for every small
// message.
const maxInFlight = 256

var (
	// errOver is returned by append when the session is over and the message belongs
	// to the next session.
	errOver = errors.New("session over")

	errService = errors.New("transport: service 0 is none")
	errEncode  = errors.New("transport: encode returned less than it was given")
)

type frame struct {
	buffer   *wire.Buffer
	messages int
}

// queue holds the messages of a lane from their append to their acknowledgement.
//
//	frames   [ acknowledged, gone │ written │ written before │ sealed ] batch
//	                         base ┘    sent ┘        written ┘
//
// I1: sent <= written <= len(frames).
// I2: frames[i] has the number base+1+i once i < written.
// I3: bytes is the length of all frames and of the batch.
type queue struct {
	cfg    transport.Config
	pool   *wire.Pool
	counts *laneCounts

	// wake tells the writer that there may be a frame to take. Size one: one waiting
	// signal is as good as many.
	wake chan struct{}

	mu       sync.Mutex
	batch    *wire.Buffer // What append fills; nil when empty.
	messages int          // Messages in batch.
	frames   []frame
	sent     int    // Frames written on the present connection.
	written  int    // Frames ever written.
	base     uint64 // Number of the last acknowledged frame.
	gone     uint64 // Frames, of all sessions, that have left the queue before frames[0].
	bytes    int
	over     bool
	moved    bool          // With over: another queue has taken over the messages.
	err      error         // With over: the error of append; nil stands for errOver.
	room     chan struct{} // Closed and replaced when those in wait should check again.
	live     bool          // A connection is up.
	several  int           // For how many frames more several senders count as being at work.
	deferred []func()      // Functions given to Defer, to be called before the next batch is taken.
	feeding  bool          // A deferred function runs: its appends go with the next batch.
	used     bool          // A message was appended since idle last checked.
	hears    bool          // The peer takes messages outside of the frames on this connection.
	said     []byte        // Messages outside of the frames, encoded, to be sent next.
	scratch  []byte        // The last of them, while it is encoded.
	lastUse  time.Time
	heard    time.Time // When the peer last sent anything, or had no reason to.
	owes     time.Time // Since when the present connection owes an acknowledgement.
}

func (q *queue) init(e *Endpoint, k transport.LaneClass) {
	now := time.Now()
	q.cfg, q.pool, q.counts = e.cfg, &e.pool, e.counts.lane(k)
	q.wake, q.room = make(chan struct{}, 1), make(chan struct{})
	q.heard, q.lastUse = now, now
}

// append encodes one message into the batch. Its place is the index of the frame that
// the batch becomes, counted over all frames that the queue ever had.
func (q *queue) append(s transport.Service, encode func([]byte) []byte) (place uint64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		if q.err != nil {
			return 0, q.err
		}
		return 0, errOver
	}
	if q.bytes >= q.cfg.WindowBytes {
		q.counts.full.Add(1)
		return 0, transport.ErrFull
	}
	place = q.gone + uint64(len(q.frames))
	batch, before := q.batch, 0
	if batch == nil {
		batch = q.pool.Get()
		batch.B = wire.Begin(batch.B)
	} else {
		before = len(batch.B)
	}
	b, payload := wire.AppendEnvelope(batch.B, uint16(s), encode)
	added := len(b) - before
	if err := q.judge(payload); err != nil {
		if q.batch == nil {
			batch.Free()
		}
		return 0, err
	}
	batch.B = b
	q.bytes += added
	q.messages++
	q.used = true
	q.counts.sent.Add(1)
	if q.batch == nil {
		q.batch = batch
		q.rouse()
	}
	if len(b) >= q.cfg.BatchBytes() {
		q.seal()
	}
	return place, nil
}

var _ transport.Passage = (*queue)(nil)

// Written implements [transport.Passage].
func (q *queue) Written() (below uint64, over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.moved {
		return math.MaxUint64, true // The messages have other places in the queue that took them over.
	}
	return q.gone + uint64(q.written), q.over
}

// judge decides whether an encoded message is accepted. A message may be larger than
// the rest of the window: otherwise Room, which does not know the next message, would
// let its caller try again and again.
func (q *queue) judge(payload int) error {
	switch {
	case payload < 0:
		return errEncode
	case payload > q.cfg.MaxMessageBytes():
		q.counts.tooLarge.Add(1)
		return transport.ErrTooLarge
	}
	return nil
}

func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) seal() {
	q.frames = append(q.frames, frame{q.batch, q.messages})
	q.batch, q.messages = nil, 0
}

// scantBytes is the size below which a frame is worth waiting for what others are about
// to append: to write a frame takes as long as to append many messages.
const scantBytes = 1 << 10

// severalFrames is for how many frames after one of several messages others are expected.
const severalFrames = 16

// scanty reports whether the next frame to write is a batch with little in it although
// several senders are at work: one of the last frames had more than one message, or messages
// that were collected, see Lane.Defer.
func (q *queue) scanty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.several > 0 && q.batch != nil && q.sent == len(q.frames) && len(q.batch.B) < scantBytes
}

// take returns the next frame to write, with a reference for the writer, or nil when
// there is none or too many are in flight.
func (q *queue) take() *wire.Buffer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent >= maxInFlight || q.over {
		return nil
	}
	if q.sent == len(q.frames) {
		if q.batch == nil {
			return nil
		}
		q.seal()
	}
	f := q.frames[q.sent]
	if q.several = max(q.several-1, 0); f.messages > 1 {
		q.several = severalFrames
	}
	if q.sent == q.written {
		wire.SetNumber(f.buffer.B, q.base+1+uint64(q.sent))
		q.written++
	} else {
		q.counts.framesResent.Add(1)
	}
	if q.sent == 0 {
		q.owes = time.Now()
	}
	q.sent++
	q.counts.framesSent.Add(1)
	q.counts.bytesSent.Add(uint64(len(f.buffer.B)))
	f.buffer.Retain()
	return f.buffer
}

// postpone keeps f for the writer if there is something to write, or no connection
// yet. It returns errOver when f belongs to the next queue.
func (q *queue) postpone(f func()) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over && q.err == nil {
		return false, errOver
	}
	idle := q.batch == nil && q.sent == len(q.frames) && len(q.deferred) == 0
	if q.over || q.live && (q.feeding || idle) {
		return false, nil
	}
	q.deferred, q.used = append(q.deferred, f), true
	q.rouse() // The lane may not have been dialled yet.
	return true, nil
}

// feed calls deferred functions, in order, until there is a whole batch to write; the
// others are called before the next batch.
func (q *queue) feed() {
	for f := q.postponed(false); f != nil; f = q.postponed(false) {
		f()
	}
}

// feedAll calls all deferred functions.
func (q *queue) feedAll() {
	for f := q.postponed(true); f != nil; f = q.postponed(true) {
		f()
	}
}

// postponed takes the first deferred function off. It returns nil when there is none;
// and, all being false, when there is enough to write or no room to append.
func (q *queue) postponed(all bool) func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.feeding = len(q.deferred) > 0 && (all || q.sent == len(q.frames) && q.sent < maxInFlight && q.bytes < q.cfg.WindowBytes)
	if !q.feeding {
		return nil
	}
	q.several = severalFrames // Who collects has more to send than one message at a time.
	f := q.deferred[0]
	if q.deferred = q.deferred[1:]; len(q.deferred) == 0 {
		q.deferred = nil
	}
	return f
}

// acknowledge releases every frame up to number n. It is also called for a
// receipt that acknowledges nothing new, which is a sign of life.
func (q *queue) acknowledge(n uint64) error {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heard = now
	if n < q.base || n-q.base > uint64(q.written) {
		return fmt.Errorf("%w: acknowledgement of frame %d, of %d to %d", wire.ErrMalformed, n, q.base, q.base+uint64(q.written))
	}
	k := int(n - q.base)
	if k == 0 {
		return nil
	}
	for _, f := range q.frames[:k] {
		q.bytes -= len(f.buffer.B)
		q.counts.acked.Add(uint64(f.messages))
		f.buffer.Free()
	}
	rest := copy(q.frames, q.frames[k:])
	clear(q.frames[rest:])
	q.frames = q.frames[:rest]
	q.base, q.gone = n, q.gone+uint64(k)
	q.sent, q.written = max(q.sent-k, 0), q.written-k
	q.owes = now
	if q.bytes <= q.cfg.WindowBytes/2 {
		q.announce()
	}
	if q.batch != nil || q.sent < len(q.frames) || len(q.deferred) > 0 {
		q.rouse()
	}
	return nil
}

// announce wakes every caller of wait, to check its condition again.
func (q *queue) announce() {
	close(q.room)
	q.room = make(chan struct{})
}

// connected begins a connection on which the peer has acknowledged frames up to n: the
// frames after it are written again.
func (q *queue) connected(n uint64, hears bool) error {
	if err := q.acknowledge(n); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sent, q.live, q.hears = 0, true, hears
	return nil
}

// disconnected ends the connection. The peer counts as away from now, or from when it
// began to owe an acknowledgement: silence while it owed nothing does not count.
func (q *queue) disconnected() {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent == 0 {
		q.heard = now
	} else if q.owes.After(q.heard) {
		q.heard = q.owes
	}
	q.sent, q.live, q.said = 0, false, nil
	q.announce()
}

// abandon drops the written frames, and returns how many messages they held. Frames
// that were not written wait for the next session, whose frames count from one.
func (q *queue) abandon() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost := 0
	for _, f := range q.frames[:q.written] {
		lost += f.messages
		q.bytes -= len(f.buffer.B)
		f.buffer.Free()
	}
	q.frames = append([]frame(nil), q.frames[q.written:]...)
	q.gone += uint64(q.written)
	q.sent, q.written, q.base = 0, 0, 0
	q.announce()
	return lost
}

// finish ends the queue for good, and returns how many messages are lost.
// Append returns err until release is called.
func (q *queue) finish(err error) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over, q.err = true, err
	lost := q.messages
	for _, f := range q.frames {
		lost += f.messages
		f.buffer.Free()
	}
	if q.batch != nil {
		q.batch.Free()
	}
	q.batch, q.messages, q.frames = nil, 0, nil
	q.gone += uint64(q.written)
	q.sent, q.written, q.bytes = 0, 0, 0
	q.announce()
	return lost
}

// release has appends go to a new queue, after finish or idle.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = nil
	q.announce()
}

// usable reports whether append may return anything but errOver.
func (q *queue) usable() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.over || q.err != nil
}

// absorb takes over all messages of o, of which no frame was written, and ends o. It
// reports false, and does nothing, when q is over itself. The caller holds
// Endpoint.mu.
func (q *queue) absorb(o *queue) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.batch != nil {
		o.seal()
	}
	if q.batch != nil && len(o.frames) > 0 {
		q.seal()
	}
	q.frames = append(q.frames, o.frames...)
	q.bytes += o.bytes
	q.used = true
	q.deferred = append(q.deferred, o.deferred...)
	o.frames, o.bytes, o.over, o.moved, o.deferred = nil, 0, true, true, nil
	o.announce()
	q.rouse()
	return true
}

// silent reports whether the peer has owed an acknowledgement, and sent nothing, for
// MaxSilence.
func (q *queue) silent(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.owes
	if q.heard.After(since) {
		since = q.heard
	}
	return q.sent > 0 && now.Sub(since) > q.cfg.MaxSilence
}

// idle ends the queue when it is empty and was not used for IdleAfter, and reports
// whether it did.
func (q *queue) idle(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used || q.bytes > 0 {
		q.used, q.lastUse = false, now
		return false
	}
	if now.Sub(q.lastUse) < q.cfg.IdleAfter {
		return false
	}
	q.over, q.err = true, transport.ErrFull
	return true
}

// rests returns after how long the queue may be idle, 0 while there are messages or an acknowledgement is owed.
func (q *queue) rests(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.sent > 0 || q.bytes > 0 {
		return 0
	}
	return q.cfg.IdleAfter - now.Sub(q.lastUse)
}

// begin sets heard to now, so that away counts from the first message.
func (q *queue) begin() {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.heard = now
}

// away returns for how long nothing has been heard from the peer.
func (q *queue) away() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Since(q.heard)
}

// wait returns a channel that is closed when the caller should call ok again, or nil
// when ok holds already.
func (q *queue) wait(ok func() bool) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if ok() {
		return nil
	}
	return q.room
}

// waitRoom waits until half of the window is free or the queue is over.
func (q *queue) waitRoom(ctx context.Context) error {
	for {
		room := q.wait(func() bool {
			return q.over && q.err == nil || !q.over && q.bytes <= q.cfg.WindowBytes/2
		})
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drained waits until the queue is empty, the connection has ended, or end is closed.
func (q *queue) drained(end <-chan struct{}) {
	for {
		room := q.wait(func() bool { return q.bytes == 0 || !q.live })
		if room == nil {
			return
		}
		select {
		case <-room:
		case <-end:
			return
		}
	}
}
