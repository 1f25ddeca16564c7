// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// The accepting side. Serve runs one accepted connection with two goroutines: read
// completes the handshake (greet, begin), which joins the connection to the record of
// its session, and then passes frames to handlers (frame); write sends welcomes and
// receipts. The record (inbound) outlives connections, so that repeated frames are
// recognised.

var errStopped = errors.New("connection ended")

// inbound is the record of a peer's lane: the number of its session, and up to which
// frame it was handled. It outlives connections, so that a frame that is sent again is
// recognised.
type inbound struct {
	// slot holds an element while a connection uses session and handled or calls
	// handlers: at most one connection at a time.
	slot    chan struct{}
	session uint64
	handled uint64

	// conn is the connection of the session, nil after it has ended, so that the
	// record keeps no connection alive. A connection sets it while holding slot, and
	// clears it when it ends.
	conn atomic.Pointer[accepted]

	usage // Guarded by Endpoint.mu.
}

// Bounds of session numbers. The numbers of one opener grow by one with each session,
// to any peer. A number beyond these bounds cannot come from an honest count, and
// would leave no room above it for the numbers that follow.
const (
	maxSessionFirst = 1 << 48 // Numbers up to this one are always in bounds.
	maxSessionJump  = 1 << 32 // The largest step, from the number before or from maxSessionFirst.
)

// jumps reports whether a session number is out of bounds.
func (in *inbound) jumps(number uint64) bool {
	return number > max(in.session, maxSessionFirst) && number-max(in.session, maxSessionFirst) > maxSessionJump
}

// accepted is one connection that a peer opened.
type accepted struct {
	e      *Endpoint
	pipe   Pipe
	caller Caller

	life    *watchdog         // Has a sign of life sent while a handler takes its time.
	delay   *time.Timer       // Rings when the receipt that is owed is due.
	welcome chan *wire.Buffer // Size one: the opener waits for each answer.
	signal  chan struct{}     // Size one: there is something to acknowledge.
	over    chan struct{}     // Closed by stop.
	once    sync.Once
	cutOff  *time.Timer                 // Closes the pipe some time after stop, which sets it.
	final   atomic.Pointer[wire.Buffer] // A refusal, to be sent last.
	heard   atomic.Bool                 // A first message has come.
	busy    atomic.Bool                 // A handler is running.
	handled atomic.Uint64
	told    atomic.Uint64 // The last frame of which a receipt has told the opener.
	owed    atomic.Bool   // The writer knows that a receipt is due, and sends it within receiptDelay.
	takes   atomic.Bool   // The opener takes messages that come with receipts.

	// Written by the reader under Endpoint.mu; the reader reads it without the lock.
	peer gossip.NodeID

	// Used by the reader alone.
	class   transport.LaneClass
	in      *inbound
	claim   *claim
	noticed map[uint16]bool

	mu        sync.Mutex
	unhandled map[uint16]uint64 // Messages by service, not yet told to the peer.
	answers   []byte            // Messages to the peer that go with the next receipt, encoded.
	scratch   []byte            // The last answer, while it is encoded.

	answering atomic.Bool // There are answers. Written with mu held.
}

// Serve runs an accepted pipe, and returns when the connection has ended. The pipe is
// then closed, and a goroutine of the endpoint may still be in its Recv.
func (e *Endpoint) Serve(p Pipe, c Caller) {
	a := &accepted{
		e: e, pipe: p, caller: c, life: newWatchdog(e.quarter()), delay: time.NewTimer(receiptDelay),
		welcome:   make(chan *wire.Buffer, 1),
		signal:    make(chan struct{}, 1),
		over:      make(chan struct{}),
		noticed:   make(map[uint16]bool),
		unhandled: make(map[uint16]uint64),
	}
	if e.enter(a) {
		a.write()
		a.stop()
		a.cutOff.Stop()
	}
	p.Close()
}

func (e *Endpoint) enter(a *accepted) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.accepted[a] = struct{}{}
	e.wg.Go(a.read) // Owner: the endpoint. Ends when the pipe fails, which stop sees to. Waited for by Wait.
	return true
}

func (e *Endpoint) leave(a *accepted) {
	known := a.known()
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.accepted, a)
	if a.in != nil {
		a.in.conn.CompareAndSwap(a, nil)
		a.in.leave(known)
		a.claim.leave(known)
	}
}

// stop ends the connection. After a quarter of MaxSilence the pipe is closed even if
// the other end has not read everything: it may be gone without a trace, and the
// writer would wait for ever.
func (a *accepted) stop() {
	a.once.Do(func() {
		a.cutOff = time.AfterFunc(a.e.quarter(), a.pipe.Close)
		close(a.over)
	})
}

// refuse counts and notices a refusal, tells the peer, and ends the connection.
func (a *accepted) refuse(r *transport.RefusedError) {
	select {
	case <-a.over:
		return
	default:
	}
	b := a.e.pool.Get()
	b.B = wire.AppendRefusal(b.B, a.e.id.Node, r)
	if a.final.CompareAndSwap(nil, b) {
		a.e.refuseCaller(&a.caller, r)
	}
	a.stop()
}

func (a *accepted) malformed(err error) {
	a.refuse(&transport.RefusedError{
		Reason: transport.ReasonMalformed, Peer: a.peer,
		Detail: fmt.Sprintf("%v; something that is not a node of this cluster dials, or the versions are incompatible", err),
	})
}

// A receipt is sent for every receiptEvery frames, and at the latest receiptDelay
// after a frame: frames that come one by one would otherwise cause as many receipts. The
// reader sets the timer at the first frame, and wakes the writer at the last of these: to wake it
// for each would cost more than most frames.
const (
	receiptEvery = 8
	receiptDelay = time.Millisecond
)

// write sends welcomes, receipts and, when the connection ends, a refusal.
func (a *accepted) write() {
	defer a.life.Stop()
	defer a.delay.Stop()
	for {
		var b *wire.Buffer
		select {
		case b = <-a.welcome:
		case <-a.signal:
			if a.handled.Load()-a.told.Load() < receiptEvery && !a.answersNow() {
				a.deferReceipt()
				continue
			}
			b = a.pay()
		case <-a.delay.C:
			if !a.owed.Load() {
				continue
			}
			b = a.pay()
		case <-a.life.C:
			if a.life.rings(); !a.busy.Load() {
				continue
			}
			a.life.watch()
			b = a.receipt()
		case <-a.over:
			a.bye()
			return
		}
		if err := a.pipe.Send(b); err != nil {
			a.stop()
			return
		}
	}
}

// bye sends the last message of a connection that ends, the refusal or a receipt,
// whether or not it arrives.
func (a *accepted) bye() {
	if b := a.final.Load(); b != nil {
		_ = a.pipe.Send(b)
	} else if a.owed.Load() {
		_ = a.pipe.Send(a.receipt())
	}
}

// pay returns the receipt that is owed.
func (a *accepted) pay() *wire.Buffer {
	a.owed.Store(false) // Before the number is read: the reader wakes the writer for what it handles from now on.
	a.told.Store(a.handled.Load())
	return a.receipt()
}

// owe has the writer send a receipt for the frame that was handled last.
func (a *accepted) owe() {
	if a.answering.Load() || a.handled.Load()-a.told.Load() >= receiptEvery {
		a.poke()
	} else {
		a.deferReceipt()
	}
}

// deferReceipt has the writer send a receipt within receiptDelay.
func (a *accepted) deferReceipt() {
	if !a.owed.Swap(true) {
		a.delay.Reset(receiptDelay)
	}
}

// begins notes that handlers run.
func (a *accepted) begins() {
	a.busy.Store(true)
	a.life.watch()
}

func (a *accepted) receipt() *wire.Buffer {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.e.pool.Get()
	var list []wire.Unhandled
	for service, n := range a.unhandled {
		list = append(list, wire.Unhandled{Service: service, Messages: n})
	}
	var n int
	b.B, n = wire.AppendReceipt(b.B, a.handled.Load(), list)
	b.B = append(b.B, a.answers...)
	a.answers = a.answers[:0]
	a.answering.Store(false)
	for _, u := range list[:n] {
		delete(a.unhandled, u.Service)
	}
	if len(a.unhandled) > 0 {
		a.poke()
	}
	return b
}

func (a *accepted) poke() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

// read completes the handshake, and then handles frames until the connection ends.
func (a *accepted) read() {
	defer a.e.leave(a)
	defer a.stop()
	if !a.greet() {
		return
	}
	a.counts().accepts.Add(1)
	if a.caller.Admitted != nil {
		a.caller.Admitted()
	}
	in := Incoming{Large: a.known}
	for {
		if err := a.recv(&in); err != nil {
			return
		}
		err := a.upstream(in.Bytes)
		in.Free()
		if errors.Is(err, wire.ErrMalformed) {
			a.malformed(err)
		}
		if err != nil {
			return
		}
	}
}

func (a *accepted) recv(in *Incoming) error {
	err := a.pipe.Recv(in)
	if err == nil && !in.Admits(len(in.Bytes)) {
		err = ErrStranger(fmt.Sprintf("%d bytes", len(in.Bytes)))
		in.Free()
	}
	if errors.Is(err, ErrOversize) {
		a.malformed(err)
	}
	return err
}

// known reports whether the peer may send large frames now. No peer may before its
// handshake.
func (a *accepted) known() bool {
	a.e.mu.Lock() // A pipe may ask while the reader writes peer.
	peer := a.peer
	a.e.mu.Unlock()
	if peer.IsZero() {
		return false
	}
	return a.e.id.Known == nil || a.e.id.Known(peer)
}

// greet answers Hellos until one has begun or resumed a session.
func (a *accepted) greet() bool {
	timer := time.AfterFunc(a.e.cfg.HandshakeTimeout, a.late) // late does not wait for anything.
	defer timer.Stop()
	in := Incoming{Large: a.known}
	for {
		if err := a.recv(&in); err != nil {
			return false
		}
		h, err := wire.ParseHello(in.Bytes)
		in.Free()
		a.heard.Store(true)
		if err != nil {
			a.malformed(err)
			return false
		}
		w := wire.Welcome{Node: a.e.id.Node, Own: a.e.secret.made(h.From, h.Asked)}
		var refused *transport.RefusedError
		if w.Protocol, refused = a.e.admit(&h, &a.caller); refused != nil {
			a.refuse(refused)
			return false
		}
		if h.Session != 0 {
			if err := a.begin(&h, &w); err != nil {
				return false
			}
		}
		if !a.answer(w) {
			return false
		}
		if w.Known {
			return true
		}
	}
}

// late ends a connection whose handshake takes too long. A caller that has said nothing
// is counted as refused, and not told: it may be a node that was held up, whose session
// goes on when it dials again.
func (a *accepted) late() {
	if !a.heard.Load() {
		a.e.refuseCaller(&a.caller, &transport.RefusedError{
			Reason: transport.ReasonMalformed, Detail: fmt.Sprintf("no whole message within transport.handshake-timeout, %v", a.e.cfg.HandshakeTimeout),
		})
	}
	a.stop()
}

func (a *accepted) answer(w wire.Welcome) bool {
	b := a.e.pool.Get()
	b.B = wire.AppendWelcome(b.B, w)
	select {
	case a.welcome <- b:
		return true
	case <-a.over:
		b.Free()
		return false
	}
}

// begin makes this connection the one of a session, if the session is new or
// remembered. It waits for a handler that an earlier connection has called.
func (a *accepted) begin(h *wire.Hello, w *wire.Welcome) error {
	if refused := a.enter(h); refused != nil {
		a.refuse(refused)
		return refused
	}
	in := a.in
	select {
	case in.slot <- struct{}{}:
	case <-a.over:
		return errStopped
	}
	defer func() { <-in.slot }()
	switch {
	case h.Session < in.session:
		// The opener has given this attempt up since, or another process speaks as the node.
		return a.refused(transport.RefusedError{
			Reason: transport.ReasonStale, Peer: h.From, Session: in.session,
			Detail: fmt.Sprintf("session %d of %s, session %d is known already: begin a later one, and see that no other process speaks as this node", h.Session, h.From, in.session),
		})
	case in.jumps(h.Session):
		return a.refused(transport.RefusedError{
			Reason: transport.ReasonMalformed, Peer: h.From,
			Detail: fmt.Sprintf("session %d after session %d: no node begins so many", h.Session, in.session),
		})
	case h.Session > in.session && h.Resumed:
		return nil // The session is not remembered: Known stays false.
	case h.Session > in.session:
		in.session, in.handled = h.Session, 0
	}
	if before := in.conn.Swap(a); before != nil && before != a {
		before.stop()
	}
	a.handled.Store(in.handled)
	a.takes.Store(h.Answers)
	w.Known, w.Acknowledged, w.Answers = true, in.handled, true
	return nil
}

// refused refuses the connection, and returns the refusal as an error.
func (a *accepted) refused(r transport.RefusedError) error {
	a.refuse(&r)
	return &r
}

// join finds or makes the record of the peer's lane. The caller holds Endpoint.mu.
func (a *accepted) join(h *wire.Hello, c *claim) *transport.RefusedError {
	e, k := a.e, key{h.From, h.Lane}
	in := e.in[k]
	if in == nil {
		e.sweep()
		if len(e.in) >= e.inMax && !evict(e.in) {
			return &transport.RefusedError{
				Reason: transport.ReasonConnections, Peer: h.From,
				Detail: fmt.Sprintf("%d inbound sessions are in use already", e.inMax),
			}
		}
		in = &inbound{slot: make(chan struct{}, 1)}
		e.in[k] = in
	}
	c.owner = a.caller.who()
	c.users++
	in.users++
	a.in, a.claim, a.peer, a.class = in, c, h.From, h.Lane
	return nil
}

// sweep forgets sessions whose peers have been away for so long that they have given
// up. It runs when a session is new, which is rare.
func (e *Endpoint) sweep() {
	for k, in := range e.in {
		if in.users == 0 && time.Since(in.left) > 2*e.cfg.GiveUpAfter {
			delete(e.in, k)
		}
	}
}

// upstream takes one message of the opener after the handshake.
func (a *accepted) upstream(b []byte) error {
	if wire.IsSaid(b) {
		return a.hear(b)
	}
	return a.frame(b)
}

// seize waits until no other connection of the session calls handlers, and reports an error
// if that is not for this one to do any more. The caller empties the slot.
func (a *accepted) seize() error {
	select {
	case a.in.slot <- struct{}{}:
	case <-a.over:
		return errStopped
	}
	if a.in.conn.Load() != a {
		<-a.in.slot
		return errStopped
	}
	return nil
}

// frame passes the messages of one frame to their handlers, unless the frame was
// handled before.
func (a *accepted) frame(b []byte) error {
	f, err := wire.ParseFrame(b)
	if err != nil {
		return err
	}
	if err := a.seize(); err != nil {
		return err
	}
	defer func() { <-a.in.slot }()
	switch {
	case f.Number <= a.in.handled:
		a.counts().duplicates.Add(1)
		a.poke()
		return nil
	case f.Number != a.in.handled+1:
		return fmt.Errorf("%w: frame %d after frame %d", wire.ErrMalformed, f.Number, a.in.handled)
	}
	a.begins()
	for service, payload := range f.Envelopes() {
		a.dispatch(service, payload)
	}
	a.counts().framesReceived.Add(1)
	a.counts().bytesReceived.Add(uint64(len(b)))
	a.in.handled = f.Number
	a.handled.Store(f.Number)
	a.busy.Store(false) // After the number: a receipt with an answer then acknowledges this frame.
	a.owe()
	return nil
}

func (a *accepted) dispatch(service uint16, payload []byte) {
	if h := (*a.e.handlers.Load())[transport.Service(service)]; h != nil {
		a.counts().received.Add(1)
		h(a.peer, payload)
		return
	}
	a.counts().unhandledHere.Add(1)
	a.countUnhandled(service)
	if !a.noticed[service] {
		a.noticed[service] = true
		a.e.notices(transport.Unhandled{Peer: a.peer, Lane: a.class, Service: transport.Service(service), Inbound: true})
	}
}

// counts returns the counts of the lanes of the class that the handshake has named.
func (a *accepted) counts() *laneCounts { return a.e.counts.lane(a.class) }

func (a *accepted) countUnhandled(service uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unhandled[service]++
}
