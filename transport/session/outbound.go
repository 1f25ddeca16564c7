// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// The sending side of a lane. One goroutine (run) waits for the first message, then
// dials until the session is over: each connection opens a pipe, shakes hands (greet),
// and is supervised with a reader of receipts and a writer of frames until it breaks,
// falls silent or is idle. Whether the session goes on is the verdict; when it ends,
// losses are noticed (end).

// firstRedial divides Config.RedialAfter to give the interval before the second
// attempt to connect. Nodes that start together do not listen yet for some
// milliseconds.
const firstRedial = 16

var (
	errSilent = errors.New("no answer within max-silence")
	errMoved  = errors.New("moved to the lane of the full identity")
)

// outbound is a lane in use: a queue, and the goroutine that sends its messages.
type outbound struct {
	queue

	e       *Endpoint
	class   transport.LaneClass
	address gossip.Address
	quit    chan struct{} // Closed by kill.

	// heardAfter is one more than the frames of the peer that were handled when it last spoke
	// with a receipt; 0 if it never has.
	heardAfter atomic.Uint64

	// peer is guarded by Endpoint.mu. Only the goroutine of run changes it, in adopt,
	// and may read it without the lock.
	peer gossip.NodeID

	// Used by the goroutine of run alone.
	session uint64 // Zero before the first session.
	begun   bool   // The peer has welcomed the session.

	// Guarded by queue.mu.
	reason error              // Why quit was closed.
	abort  context.CancelFunc // Cancels the dialling that is under way, if any.
}

// kill ends the lane with err.
func (o *outbound) kill(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reason != nil {
		return
	}
	o.reason = err
	close(o.quit)
	if o.abort != nil {
		o.abort()
	}
}

func (o *outbound) killed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.reason
}

// run dials until the session is over.
func (o *outbound) run() {
	if !o.first() {
		return
	}
	longest := o.e.cfg.RedialAfter
	for wait := longest / firstRedial; ; wait = min(2*wait, longest) {
		began := time.Now()
		err := o.connection()
		if over := o.verdict(err); over != nil {
			o.end(over)
			return
		}
		if time.Since(began) > longest {
			wait = longest / firstRedial // It was connected, or it took its time to fail.
		}
		o.pause(time.Until(began.Add(wait)))
	}
}

// first waits for the first message before dialling: a sender whose peer then refuses
// has had its message accepted, and is told of the loss. When no message comes,
// because it was too large, the lane ends without a notice.
func (o *outbound) first() bool {
	timer := time.NewTimer(o.e.cfg.IdleAfter)
	defer timer.Stop()
	select {
	case <-o.wake: // The signal is not lost: the writer calls take before it waits.
		o.begin()
		return true
	case <-o.quit:
		return true
	case <-timer.C:
	}
	if !o.idle(time.Now()) {
		return true
	}
	o.e.forget(o)
	o.release()
	return false
}

// pause waits for d or until kill.
func (o *outbound) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-o.quit:
	}
}

// verdict decides whether the session is over after a connection that ended with err;
// nil means that the lane dials again.
func (o *outbound) verdict(err error) error {
	if killed := o.killed(); killed != nil && !errors.Is(err, errMoved) {
		return killed
	}
	var refused *transport.RefusedError
	switch {
	case errors.Is(err, errMoved) || errors.Is(err, transport.ErrIdle):
		return err
	case errors.As(err, &refused) && !o.passing(refused.Reason):
		return refused
	case o.away() < o.e.cfg.GiveUpAfter:
		return nil
	case refused != nil:
		return refused
	}
	return fmt.Errorf("%w for %v: %w", transport.ErrUnreachable, o.e.cfg.GiveUpAfter, err)
}

// passing reports whether a refusal may go away by itself: too many connections for
// now, another process that has spoken as this node, or a certificate that is being
// replaced on one of the two sides.
func (o *outbound) passing(r transport.Reason) bool {
	switch r {
	case transport.ReasonConnections, transport.ReasonStale, transport.ReasonTaken:
		return true
	case transport.ReasonCertificate, transport.ReasonInsecure:
		return o.begun
	default:
		return false
	}
}

// end ends the session: losses are noticed before the next session can begin.
func (o *outbound) end(err error) {
	if errors.Is(err, errMoved) {
		return
	}
	hold := transport.ErrFull
	var refused *transport.RefusedError
	if errors.As(err, &refused) {
		hold = refused
	}
	if errors.Is(err, transport.ErrClosed) {
		hold = err
	}
	lost := o.finish(hold)
	o.counts.lost.Add(uint64(lost))
	o.e.notices(transport.PeerDown{Peer: o.peer, Lane: o.class, Err: err, Lost: lost})
	if refused != nil {
		o.pause(o.e.cfg.RedialAfter)
	}
	o.e.forget(o)
	o.release()
	o.feedAll()
}

// connection opens one connection and runs it until it ends.
func (o *outbound) connection() error {
	pipe, err := o.open()
	if err != nil {
		return err
	}
	o.counts.connects.Add(1)
	o.e.setNamed(o, true)
	err = o.supervise(pipe)
	o.e.setNamed(o, false)
	o.disconnected()
	if !errors.Is(err, transport.ErrIdle) && o.killed() == nil {
		o.counts.breaks.Add(1)
	}
	return err
}

// open dials a pipe and completes the handshakes.
func (o *outbound) open() (Pipe, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.e.cfg.HandshakeTimeout)
	defer cancel()
	o.setAbort(cancel)
	defer o.setAbort(nil)
	pipe, err := o.e.dial(ctx, o.address, o.class)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, pipe.Close)
	defer stop()
	err = o.greet(pipe)
	if err != nil {
		pipe.Close()
		return nil, errors.Join(err, ctx.Err())
	}
	return pipe, nil
}

func (o *outbound) setAbort(f context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.abort = f
	if f != nil && o.reason != nil {
		f()
	}
}

// greet identifies the peer if only its address is known, and begins or resumes the
// session.
func (o *outbound) greet(pipe Pipe) error {
	if o.peer.UID == 0 {
		w, err := o.e.exchange(pipe, o.address, o.e.hello(o.peer, o.class))
		if err != nil {
			return err
		}
		moved, err := o.e.adopt(o, w.Node)
		if moved {
			return errMoved
		}
		if err != nil {
			return err
		}
	}
	for {
		if o.session == 0 {
			o.session = o.e.sessions.Add(1)
		}
		h := o.e.hello(o.peer, o.class)
		h.Session, h.Resumed, h.Token, h.Answers = o.session, o.begun, o.e.secret.token(o.peer), true
		w, err := o.e.exchange(pipe, o.address, h)
		if err != nil {
			o.outpace(err)
			return err
		}
		if w.Known {
			return o.resume(w)
		}
		if !o.begun {
			return o.e.refuseAnswer(o.address, w.Node, "the answer to a new session does not know it")
		}
		o.restart()
	}
}

func (o *outbound) resume(w *wire.Welcome) error {
	if err := o.connected(w.Acknowledged, w.Answers); err != nil {
		return o.e.refuseAnswer(o.address, w.Node, err.Error())
	}
	if !o.begun {
		o.begun = true
		o.e.notices(transport.PeerUp{Peer: o.peer, Lane: o.class, Protocol: w.Protocol})
	}
	return nil
}

// outpace gives the next attempt a session number above the one that the peer knows,
// if the peer has refused this one as stale: another process has spoken as this node.
func (o *outbound) outpace(err error) {
	refused, ok := errors.AsType[*transport.RefusedError](err)
	if !ok || refused.Reason != transport.ReasonStale || refused.Session > math.MaxUint64/2 {
		return
	}
	for now := o.e.sessions.Load(); now < refused.Session && !o.e.sessions.CompareAndSwap(now, refused.Session); {
		now = o.e.sessions.Load()
	}
	if o.begun {
		o.restart()
	}
	o.session = 0
}

// restart abandons a session that the peer no longer remembers.
func (o *outbound) restart() {
	lost := o.abandon()
	o.counts.lost.Add(uint64(lost))
	o.e.notices(transport.PeerDown{Peer: o.peer, Lane: o.class, Err: transport.ErrIncarnation, Lost: lost})
	o.session, o.begun = 0, false
}

// supervise runs a reader and a writer until the connection ends.
func (o *outbound) supervise(pipe Pipe) error {
	broken := make(chan error, 1)
	stop := make(chan struct{})
	dog := newWatchdog(min(o.e.quarter(), o.e.cfg.IdleAfter))
	defer dog.Stop()
	dog.watch() // Frames of the connection before may be under way.
	var both sync.WaitGroup
	both.Go(func() { broken <- o.read(pipe) })   // Owner: supervise. Ends when the pipe is closed. Waited for below.
	both.Go(func() { o.write(pipe, dog, stop) }) // Owner: supervise. Ends by stop or with the pipe. Waited for below.
	err := o.watch(dog, broken)
	close(stop)
	pipe.Close()
	both.Wait()
	return err
}

// watch returns why the connection has to end.
func (o *outbound) watch(dog *watchdog, broken <-chan error) error {
	for {
		select {
		case err := <-broken:
			return err
		case <-o.quit:
			return o.killed()
		case now := <-dog.C:
			dog.rings()
			if o.silent(now) {
				return errSilent
			}
			if o.idle(now) {
				return transport.ErrIdle
			}
			if left := o.rests(now); left > 0 {
				dog.rest(left)
			} else {
				dog.watch()
			}
		}
	}
}

// write sends frames as the queue has them. It ignores why the pipe fails: the reader
// returns that.
func (o *outbound) write(pipe Pipe, dog *watchdog, stop <-chan struct{}) {
	for {
		o.feed()
		if o.scanty() {
			runtime.Gosched() // Whoever is about to append does so first, to the same frame.
			o.feed()
		}
		b := o.saying()
		if b == nil {
			b = o.take()
		}
		if b != nil {
			dog.watch()
			if err := pipe.Send(b); err != nil {
				return
			}
			continue
		}
		select {
		case <-o.wake:
		case <-stop:
			return
		}
	}
}

// read takes receipts until the pipe fails or the peer refuses to go on.
func (o *outbound) read(pipe Pipe) error {
	var in Incoming
	noticed := make(map[uint16]bool)
	for {
		err := pipe.Recv(&in)
		if errors.Is(err, ErrOversize) {
			return o.e.refuseAnswer(o.address, o.peer, err.Error())
		}
		if err != nil {
			return err
		}
		err = o.receipt(in.Bytes, noticed)
		in.Free()
		if err != nil {
			return err
		}
	}
}

// receipt takes one message of the acceptor, which is a receipt or ends the connection.
func (o *outbound) receipt(b []byte, noticed map[uint16]bool) error {
	d, err := wire.ParseDownstream(b)
	switch {
	case err != nil:
		return o.e.refuseAnswer(o.address, o.peer, err.Error())
	case d.Refusal != nil:
		return o.e.refusedBy(o.peer, d.Refusal)
	case d.Welcome != nil:
		return o.e.refuseAnswer(o.address, o.peer, "a welcome that nobody asked for")
	}
	if err := o.acknowledge(d.Acknowledged); err != nil {
		return o.e.refuseAnswer(o.address, o.peer, err.Error())
	}
	o.unhandled(d.Unhandled, noticed)
	o.hear(d.Answers)
	return nil
}

func (o *outbound) unhandled(list []wire.Unhandled, noticed map[uint16]bool) {
	for _, u := range list {
		o.counts.unhandledThere.Add(u.Messages)
		if !noticed[u.Service] {
			noticed[u.Service] = true
			o.e.notices(transport.Unhandled{Peer: o.peer, Lane: o.class, Service: transport.Service(u.Service)})
		}
	}
}
