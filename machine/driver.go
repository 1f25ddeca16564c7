// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
)

// The driver, first its ports and counters, then how components are attached and how
// inputs are posted. At the end its loop: sleep until an input or a timer, read the
// clock, feed the timers that are due, then a batch of inputs; the effects of each
// step are carried out before the next.

// ErrFull is returned by [Handle.Post] when the inbox of the node is full.
// The input is dropped and counted; nothing was fed.
var ErrFull = errors.New("machine: inbox full")

// ErrClosed is returned for inputs after [Driver.Close].
var ErrClosed = errors.New("machine: driver closed")

// ErrTaken is returned by [Driver.Attach] for a name or a service that
// another component of the node has.
var ErrTaken = errors.New("machine: name or service taken")

// InboxDefault is the default number of inputs that may wait for a driver.
const InboxDefault = 4096

// maxBatch is how many inputs are fed with one reading of the clock. A step takes
// microseconds, so that the reading is at most about one millisecond old, and timers
// are fed as promptly.
const maxBatch = 64

// Ports are the functions through which a [Driver] acts. All of them are called on the
// driver's goroutine and must not block, except Call.
type Ports struct {
	// Clock is required.
	Clock Clock

	// Send sends a message of component c. It encodes with c.Codec before it
	// returns: the message belongs to the machine afterwards. Required for
	// components that send.
	Send func(c *Component, s Send)

	// Publish hands an event to the program's subscribers. The other components of the
	// node get the event without it. May be nil.
	Publish func(c *Component, event any)

	// Call performs a strategy call, on a goroutine of its own. It should return when
	// ctx ends; the machine is fed [context.DeadlineExceeded] then in any case. If
	// Call is nil, calls are answered with an error.
	Call func(ctx context.Context, component string, c Call) (any, error)

	// Decide records a decision. May be nil.
	Decide func(component string, now Now, d Decide)

	// Other carries out effects of a package's own types. Such an effect is a defect
	// of the program, and panics, when Other is nil.
	Other func(c *Component, e Effect)
}

// Stats are the counters of a driver. All but Waiting only grow.
type Stats struct {
	Steps     uint64 // Inputs fed, including timers, without events between components.
	Fired     uint64 // Timers fed.
	Refused   uint64 // Inputs refused because the inbox was full.
	Garbled   uint64 // Messages that the codec of their component did not understand.
	Busy      uint64 // Calls answered with [ErrBusy] without being tried.
	Abandoned uint64 // Calls that ignored the end of their context.
	Waiting   int    // Inputs in the inbox now.
}

// Driver runs the components of one node on one goroutine, with one bounded
// inbox, and carries out their effects through [Ports]. It takes no decision.
//
// One goroutine for all components of a node, instead of one each, makes the
// order in which they hear of each other the same in production and in
// simulation, and leaves no queue between them that could fill up. Work that
// may block never happens on it.
//
// A Driver is created by [NewDriver], started once by [Driver.Start] and ended
// by [Driver.Close]. A panic of a machine ends the process.
type Driver struct {
	ports Ports
	group *Group

	// inbox is bounded; when it is full Post refuses and PostWait waits.
	inbox *inbox

	// Touched by the driver's goroutine only, after Start.
	timers  timerQueue
	runtime *time.Timer
	set     Instant // The instant to which runtime is set.
	now     Now
	calls   *executor

	steps, fired, refused, garbled, busy atomic.Uint64

	stop     chan struct{} // Closed by Close: the loop ends.
	done     chan struct{} // Closed when the loop has ended.
	mu       sync.Mutex    // Guards started and closed, and group before Start.
	started  bool
	closed   bool
	closeEnd chan struct{} // Closed when Close has finished.
}

// entry is an input in the inbox, or a component to be attached.
type entry struct {
	to     ID
	in     Input
	fed    chan<- struct{} // Closed when the input has been fed; nil when no caller waits for that.
	attach *attachment
}

type attachment struct {
	component Component
	err       error
	id        ID
	done      chan struct{}
}

// NewDriver returns a driver with room for so many waiting inputs, [InboxDefault] when
// inbox is zero or less. It starts nothing.
func NewDriver(ports Ports, inbox int) *Driver {
	Assert(ports.Clock != nil, "a driver has a clock")
	if inbox <= 0 {
		inbox = InboxDefault
	}
	d := &Driver{
		ports: ports, inbox: newInbox(inbox), set: Never,
		stop: make(chan struct{}), done: make(chan struct{}), closeEnd: make(chan struct{}),
	}
	d.group = NewGroup(carrier{d})
	d.calls = newExecutor(d.perform, d.answer)
	return d
}

// Handle feeds inputs to one component of a running node.
type Handle struct {
	driver    *Driver
	id        ID
	component Component
}

// Attach adds a component to the node, before or after [Driver.Start]. It
// returns when the component is in place and, on a running node, has been fed
// [Started]. Errors: [ErrTaken], [ErrClosed]. It must not be called from a
// port or a machine.
func (d *Driver) Attach(c Component) (*Handle, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, ErrClosed
	}
	a := &attachment{component: c, done: make(chan struct{})}
	if !d.started {
		d.attach(a)
		d.mu.Unlock()
		return d.handle(a)
	}
	d.mu.Unlock()
	if err := d.post(context.Background(), &entry{attach: a}); err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return d.handle(a)
	case <-d.done:
		return nil, ErrClosed
	}
}

func (d *Driver) handle(a *attachment) (*Handle, error) {
	if a.err != nil {
		return nil, a.err
	}
	return &Handle{driver: d, id: a.id, component: a.component}, nil
}

func (d *Driver) attach(a *attachment) {
	defer close(a.done)
	for _, other := range d.group.Components() {
		if other.Name == a.component.Name || a.component.Service != 0 && other.Service == a.component.Service {
			a.err = fmt.Errorf("%w: component %q, service %d", ErrTaken, a.component.Name, a.component.Service)
			return
		}
	}
	a.id = d.group.Attach(d.now, a.component)
}

// Start starts the driver's goroutine. Every component attached so far is fed
// [Started] there. A second Start, and one after Close, does nothing.
func (d *Driver) Start() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.started || d.closed {
		return
	}
	d.started = true
	d.runtime = time.NewTimer(time.Hour)
	go d.run() // Ends when stop is closed; Close waits for done.
}

// Close ends the driver and waits for its goroutines, except for calls that ignore
// their context. Inputs that still wait are dropped. Close may be called more than
// once; every call returns when the driver has ended. It must not be called from a
// port or a machine.
func (d *Driver) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	started := d.started
	d.mu.Unlock()
	if !first {
		<-d.closeEnd
		return nil
	}
	close(d.stop)
	if started {
		<-d.done
	} else {
		close(d.done)
	}
	d.calls.close()
	close(d.closeEnd)
	return nil
}

// Done is closed when the driver's goroutine has ended.
func (d *Driver) Done() <-chan struct{} { return d.done }

// Stats returns the counters.
func (d *Driver) Stats() Stats {
	return Stats{
		Steps: d.steps.Load(), Fired: d.fired.Load(), Refused: d.refused.Load(),
		Garbled: d.garbled.Load(), Busy: d.busy.Load(), Abandoned: d.calls.abandoned.Load(),
		Waiting: d.inbox.waiting(),
	}
}

// Component returns the component that h feeds.
func (h *Handle) Component() Component { return h.component }

// Post feeds an input without waiting. Errors: [ErrFull], [ErrClosed].
func (h *Handle) Post(in Input) error {
	select {
	case <-h.driver.stop:
		return ErrClosed
	default:
	}
	if !h.driver.inbox.offer(&entry{to: h.id, in: in}) {
		h.driver.refused.Add(1)
		return ErrFull
	}
	return nil
}

// PostWait feeds an input and waits for room in the inbox. Errors: that of
// ctx, [ErrClosed]. It must not be called from a port or a machine.
func (h *Handle) PostWait(ctx context.Context, in Input) error {
	return h.driver.post(ctx, &entry{to: h.id, in: in})
}

// post puts an entry into the inbox, and waits for room.
func (d *Driver) post(ctx context.Context, e *entry) error {
	select {
	case <-d.stop:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	default:
	}
	for {
		room := d.inbox.offerOrWait(e)
		if room == nil {
			return nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		case <-d.stop:
			return ErrClosed
		}
	}
}

// Receive decodes a message from another node and feeds it, waiting for room in the
// inbox: when a transport calls it on a connection's goroutine, the sender is slowed
// down. A message that the codec does not understand is counted, and its error
// returned. Frame is not kept.
func (h *Handle) Receive(ctx context.Context, from gossip.NodeID, frame []byte) error {
	message, err := h.decode(from, frame)
	if err != nil {
		return err
	}
	return h.PostWait(ctx, Received{From: from, Message: message})
}

func (h *Handle) decode(from gossip.NodeID, frame []byte) (any, error) {
	message, err := h.component.Codec.Decode(frame)
	if err != nil {
		h.driver.garbled.Add(1)
		return nil, fmt.Errorf("machine: message of %d bytes from %v for %s: %w", len(frame), from, h.component.Name, err)
	}
	return message, nil
}

// Deliver is [Handle.Receive] for messages that are large when decoded: it returns
// only when the machine has taken the message, so that no more of them are in memory
// than there are callers.
func (h *Handle) Deliver(ctx context.Context, from gossip.NodeID, frame []byte) error {
	message, err := h.decode(from, frame)
	if err != nil {
		return err
	}
	fed := make(chan struct{})
	if err := h.driver.post(ctx, &entry{to: h.id, in: Received{From: from, Message: message}, fed: fed}); err != nil {
		return err
	}
	select {
	case <-fed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-h.driver.stop:
		return ErrClosed
	}
}

// run is the driver's goroutine.
func (d *Driver) run() {
	defer close(d.done)
	defer d.runtime.Stop()
	d.now = d.ports.Clock.Now()
	d.group.Start(d.now)
	for {
		d.setRuntime()
		select {
		case <-d.stop:
			return
		case <-d.runtime.C:
			d.set = Never
			d.begin()
		case <-d.inbox.ready:
			d.begin()
			d.batch()
		}
	}
}

// begin reads the clock and feeds the timers that are due. Timers that are armed by
// these steps wait for the next batch, so that a machine that arms timers in the past
// cannot shut out the inbox.
func (d *Driver) begin() {
	d.now = d.ports.Clock.Now()
	last := d.timers.number
	for {
		key, ok := d.timers.take(d.now.Mono, last)
		if !ok {
			return
		}
		d.steps.Add(1)
		d.fired.Add(1)
		d.group.Step(d.now, key.of, Fired{Timer: key.timer})
	}
}

func (d *Driver) batch() {
	for range maxBatch {
		e := d.inbox.take()
		if e == nil {
			return
		}
		d.feed(e)
	}
	d.inbox.goOn()
}

func (d *Driver) feed(e *entry) {
	if e.attach != nil {
		d.attach(e.attach)
		return
	}
	d.steps.Add(1)
	d.group.Step(d.now, e.to, e.in)
	if e.fed != nil {
		close(e.fed)
	}
}

// setRuntime sets the one runtime timer to the earliest timer of the node.
func (d *Driver) setRuntime() {
	next := d.timers.next()
	if next == d.set {
		return
	}
	d.set = next
	if next == Never {
		d.runtime.Stop()
		return
	}
	d.runtime.Reset(max(next.Sub(d.now.Mono), 0))
}

// carrier has the method Carry in place of Driver, whose method set is public.
type carrier struct{ d *Driver }

// Carry carries out one effect.
func (c carrier) Carry(from ID, e Effect) {
	d := c.d
	component := &d.group.Components()[from]
	switch e := e.(type) {
	case Send:
		d.ports.Send(component, e)
	case Arm:
		d.timers.arm(timerKey{of: from, timer: e.Timer}, e.At)
	case Disarm:
		d.timers.disarm(timerKey{of: from, timer: e.Timer})
	case Publish:
		if d.ports.Publish != nil {
			d.ports.Publish(component, e.Event)
		}
	case Call:
		if !d.calls.submit(from, component.Name, e) {
			d.busy.Add(1)
			d.group.Enqueue(from, Called{ID: e.ID, Err: ErrBusy})
		}
	case Decide:
		if d.ports.Decide != nil {
			d.ports.Decide(component.Name, d.now, e)
		}
	default:
		Assert(d.ports.Other != nil, "an effect has somebody to carry it out", "effect", e, "component", component.Name)
		d.ports.Other(component, e)
	}
}

func (d *Driver) perform(ctx context.Context, component string, c Call) (any, error) {
	if d.ports.Call == nil {
		return nil, fmt.Errorf("machine: nothing here answers calls to port %q", c.Port)
	}
	return d.ports.Call(ctx, component, c)
}

// answer feeds the answer of a call. It waits for room in the inbox: each port has one
// call in flight, so that no more goroutines wait here than there are ports.
func (d *Driver) answer(to ID, called Called) {
	_ = d.post(context.Background(), &entry{to: to, in: called}) // A driver that has ended needs no answer.
}
