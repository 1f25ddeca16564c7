// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	machines "github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding"
)

// A message waits for room in the machine of a producer or a pool ([driver.accept]). The goroutine of the driver
// ([driver.run]) gets from the machine the calls that are due. Each call asks an entity ([driver.ask]), has the queue
// remove what the answer confirms ([driver.forget]), and tells the machine and the callers that wait.

// driver is what a [Producer] and a [Pool] have in common: the goroutine that makes the calls of a machine, the callers
// that wait for room in the machine, and the queue.
type driver[M any] struct {
	region  *sharding.Region[*Frame[M]]
	codec   codec[M]
	cfg     Config
	session Session
	began   time.Time

	wake chan struct{}  // Has a token when the machine may have something to send. Capacity one.
	ends chan struct{}  // Closed when the driver ends.
	done chan struct{}  // Closed when run has returned.
	work sync.WaitGroup // Calls under way.
	end  func()         // Closes ends, once.

	mu   sync.Mutex    // Guards the machine and the counts of the owner, and room.
	room chan struct{} // Nil, or closed when something was confirmed.
}

// machine are the methods of its machine that a driver calls, with the lock held.
type machine interface {
	Held() int                         // How many messages are accepted, or about to be, and not confirmed.
	Wake() (at time.Duration, ok bool) // When a call is due at the latest, if nothing else happens before.
}

// due returns the call that is to be made now, or nil. It is called with the lock held.
type due func(now time.Duration) func(context.Context)

// newDriver checks a configuration and returns the driver of a new session.
func newDriver[M any](region *sharding.Region[*Frame[M]], cfg Config) (*driver[M], error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	cfg.Log = machines.LimitLog(cfg.Log)
	d := &driver[M]{
		region: region, codec: codec[M]{innerOf(cfg.Codec)}, began: time.Now(),
		wake: make(chan struct{}, 1), ends: make(chan struct{}), done: make(chan struct{}),
	}
	if _, err := crand.Read(d.session[:]); err != nil {
		return nil, fmt.Errorf("delivery: no session: %w", err)
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(binary.LittleEndian.Uint64(d.session[:]), 1)) // It spreads pauses.
	}
	d.cfg, d.end = cfg, sync.OnceFunc(func() { close(d.ends) })
	return d, nil
}

// load decodes each message that the queue has of earlier runs, and passes it to keep.
func (d *driver[M]) load(ctx context.Context, keep func(Entry, M) error) error {
	if d.cfg.Queue == nil {
		return nil
	}
	entries, err := d.cfg.Queue.Load(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	for _, e := range entries {
		message, err := d.codec.message(e.Message)
		if err != nil {
			err = fmt.Errorf("it cannot be decoded: %w", err)
		} else {
			err = keep(e, message)
		}
		if err != nil {
			return fmt.Errorf("%w: message %d of session %x: %w", ErrQueue, e.Number, e.Session, err)
		}
	}
	return nil
}

// forget has the queue remove messages. They count as confirmed after that only.
func (d *driver[M]) forget(ctx context.Context, ids []EntryID) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	if err := d.cfg.Queue.Remove(ctx, ids); err != nil {
		return fmt.Errorf("%w: %w", ErrQueue, err)
	}
	return nil
}

// encode returns the encoding of a message, or why it cannot be delivered. What names the message in errors.
func (d *driver[M]) encode(what string, message M) ([]byte, error) {
	var none M
	if any(message) == any(none) {
		return nil, fmt.Errorf("%w: %s is nil", ErrInvalid, what)
	}
	encoded, err := d.codec.inner.Append([]byte{}, message)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %s cannot be encoded: %w", ErrInvalid, what, err)
	case len(encoded) > d.cfg.MessageBytes:
		return nil, fmt.Errorf("%w: %s has %d bytes, Config.MessageBytes is %d", ErrInvalid, what, len(encoded), d.cfg.MessageBytes)
	}
	return encoded, nil
}

// accept calls offer until the machine has room for a message. As long as it has none, offer returns a channel that is
// closed when there may be some; then it returns nil and the result. If ctx ends the wait, the error wraps full.
func (d *driver[M]) accept(ctx context.Context, offer func() (room <-chan struct{}, err error), full error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("delivery: not accepted: %w", context.Cause(ctx))
	}
	for !d.over() {
		room, err := offer()
		if room == nil {
			return err
		}
		if err := d.await(ctx, room, full); err != nil {
			return err
		}
	}
	return ErrClosed
}

// await waits for a channel, and returns an error that wraps why or ErrClosed when something else ends the wait.
func (d *driver[M]) await(ctx context.Context, c <-chan struct{}, why error) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", why, context.Cause(ctx))
	case <-d.ends:
		return ErrClosed
	}
}

// flush waits until the machine holds nothing.
func (d *driver[M]) flush(ctx context.Context, m machine) error {
	for {
		d.mu.Lock()
		held, room := m.Held(), d.awaited()
		d.mu.Unlock()
		if held == 0 {
			return nil
		}
		if err := d.await(ctx, room, ErrUnconfirmed); err != nil {
			return err
		}
	}
}

// over reports whether the driver has ended.
func (d *driver[M]) over() bool {
	select {
	case <-d.ends:
		return true
	default:
		return false
	}
}

// awaited returns a channel that is closed when something is confirmed. The caller holds mu.
func (d *driver[M]) awaited() <-chan struct{} {
	if d.room == nil {
		d.room = make(chan struct{})
	}
	return d.room
}

// freed wakes those who wait for room: something was confirmed. The caller holds mu.
func (d *driver[M]) freed() {
	if d.room != nil {
		close(d.room)
		d.room = nil
	}
}

// rouse wakes run, which asks the machine for calls that are due.
func (d *driver[M]) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// ask sends a frame to an entity.
func (d *driver[M]) ask(ctx context.Context, to string, frame *Frame[M]) (*Ack, error) {
	asking, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	return sharding.Ask[*Ack](asking, d.region, to, frame)
}

// run makes the calls that are due. It is the goroutine of the driver, and waits for the calls at the end. What the
// machine holds then, and is in no queue, may be lost: lost says what that is in the log.
func (d *driver[M]) run(m machine, next due, lost string) {
	defer close(d.done)
	ctx, cancel := context.WithCancelCause(context.Background())
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.wake:
		case <-timer.C:
		case <-d.region.Done(): // This node delivers nothing any more.
			d.end()
			continue
		case <-d.ends:
			cancel(ErrClosed)
			d.work.Wait()
			d.farewell(m, lost)
			return
		}
		if wait, ok := d.serve(ctx, m, next); ok {
			timer.Reset(wait)
		}
	}
}

// serve makes the calls that are due, and returns when it is to be called again at the latest.
func (d *driver[M]) serve(ctx context.Context, m machine, next due) (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		call := next(time.Since(d.began))
		if call == nil {
			break
		}
		d.work.Go(func() { call(ctx) }) // As many as the machine allows; run waits for them.
	}
	at, ok := m.Wake()
	return max(at-time.Since(d.began), 0), ok
}

// farewell logs what may be lost.
func (d *driver[M]) farewell(m machine, lost string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if held := m.Held(); held > 0 && d.cfg.Queue == nil {
		d.cfg.Log.Warn(gossip.Escape("delivery ends with "+lost+" that are not confirmed: they may be lost"), "held", held)
	}
}

// close ends the driver, and waits for its goroutines.
func (d *driver[M]) close() {
	d.end()
	<-d.done
}
