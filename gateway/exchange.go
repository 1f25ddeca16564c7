// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/gateway/internal/exchange"
	"github.com/quorate/quorate/sharding"
)

// A call of Exchange has three goroutines: that of the call waits for the end and looks whether the client
// may still ask (exchange, await), one reads requests and hands them on ([call.read]), and one writes
// outcomes ([call.write]). An outcome comes to the outbox ([call.put]) from whatever goroutine has it.
// What is decided of them is decided by the machine of internal/exchange, stepped with a lock.

const (
	// frameBytes is how many bytes of replies go into one message, unless it is one reply.
	frameBytes = 64 << 10
	// recheck is how often a client is looked at again.
	recheck = 5 * time.Second
)

// call is one call of Exchange: it carries out what its machine decides (internal/exchange).
type call struct {
	s      *Server
	stream grpc.ServerStream
	ctx    context.Context //nolint:containedctx // The life of the call.
	waits  sync.WaitGroup  // Requests that wait for room.
	wake   chan struct{}   // Has a token when the writer has something to do. Capacity one.
	ended  chan struct{}   // Closed when the machine has ended the call.
	began  time.Time       // From when on the machine counts time.

	mu      sync.Mutex // Guards what follows. Held for steps of the machine only: outcomes come from under other locks.
	machine *exchange.Call[outcome]
	over    bool // Whether ended is closed.
}

// exchange carries many requests of one client.
func (s *Server) exchange(stream grpc.ServerStream) error {
	s.counters.calls.Add(1)
	defer s.counters.calls.Add(-1)
	err := stream.SendMsg(&clientv1.Outcomes{Welcome: &clientv1.Welcome{
		Node:         s.host.Sharding().Node().Self().Address.String(),
		Window:       uint32(s.cfg.Window),
		PayloadBytes: uint32(sharding.EncodedBytesMax(s.host)),
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	x := &call{
		s: s, stream: stream, ctx: ctx, wake: make(chan struct{}, 1), ended: make(chan struct{}), began: time.Now(),
		machine: exchange.New[outcome](exchange.Config{Window: s.cfg.Window, UnreadBytes: s.cfg.UnreadBytes, WriteTimeout: s.cfg.WriteTimeout}),
	}
	// Both are owned by the call and end with it: gRPC ends what they wait for when this function has
	// returned. Close waits for them.
	s.running.Go(x.read)
	s.running.Go(x.write)
	return x.await()
}

// errEnding ends the calls of clients when the node does.
var errEnding = status.Error(codes.Unavailable, "the node ends")

// await returns why the call ends, when it does.
func (x *call) await() error {
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	stalled := time.NewTicker(x.s.cfg.WriteTimeout / 4)
	defer stalled.Stop()
	going := x.s.going
	for {
		select {
		case <-x.ended:
			return x.why()
		case <-x.ctx.Done():
			return context.Cause(x.ctx)
		case <-x.s.ctx.Done():
			return errEnding
		case <-going:
			going = nil
			x.signal()
		case <-tick.C:
			if _, err := x.s.admit(x.ctx); err != nil {
				return err
			}
		case <-stalled.C:
			x.mu.Lock()
			x.machine.Look(x.now())
			x.unlock()
		}
	}
}

// unlock ends a step of the machine, and the call if the machine has ended that.
func (x *call) unlock() {
	if !x.over && x.machine.Over() != nil {
		x.over = true
		close(x.ended)
	}
	x.mu.Unlock()
}

// now is the time of the machine.
func (x *call) now() exchange.Instant { return exchange.Instant(time.Since(x.began)) + 1 }

// end ends the call.
func (x *call) end(err error) {
	x.mu.Lock()
	x.machine.End(err)
	x.unlock()
}

// why is the status of a call that has ended: nil if all is done.
func (x *call) why() error {
	x.mu.Lock()
	over := x.machine.Over()
	x.mu.Unlock()
	switch {
	case errors.Is(over, io.EOF):
		return nil
	case errors.Is(over, exchange.ErrWindow):
		return status.Errorf(codes.ResourceExhausted, "more than %d requests without an outcome", x.s.cfg.Window)
	case errors.Is(over, exchange.ErrStalled):
		return x.s.cut("it has left outcomes unread for gateway.write-timeout")
	case errors.Is(over, exchange.ErrUnread):
		return x.s.cut("more replies wait for the client to read them than gateway.unread-bytes")
	}
	return over
}

// cut counts a client that does not read, and returns the status that it is closed with.
func (s *Server) cut(why string) error {
	s.counters.cut.Add(1)
	s.log.Warn("the gateway closes a client that does not read", "reason", why)
	return status.Error(codes.ResourceExhausted, why)
}

// read hands requests on until the client sends no more. A codec of the program that ends the
// goroutine, by runtime.Goexit, ends the call.
func (x *call) read() {
	err := errDeserted
	defer func() {
		if !errors.Is(err, io.EOF) {
			x.end(err)
		}
		x.waits.Wait()
	}()
	for {
		err = errDeserted
		err = receiveOf(x.ctx, x.stream.RecvMsg, func(b []byte) error { return malformed(eachRequest(b, x.begin)) })
		if err != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		x.mu.Lock()
		x.machine.Half()
		x.unlock()
		x.signal()
	}
}

// errDeserted ends a call whose goroutine was ended by the program.
var errDeserted = status.Error(codes.Internal, "a codec has ended its goroutine")

// begin hands a request on, or returns why the call ends instead.
func (x *call) begin(r *clientv1.Request) error {
	if err := x.enter(); err != nil {
		return err
	}
	if wait := x.s.begin(x.ctx, r, x.put); wait != nil {
		// Owned by the call: ends with its context, and read waits for it. There are as many as
		// the window at most.
		x.waits.Go(wait)
	}
	return nil
}

// enter takes a request, or returns why the call ends instead.
func (x *call) enter() error {
	x.mu.Lock()
	defer x.unlock()
	return x.machine.Enter()
}

// put adds an outcome to the outbox. It is called on any goroutine, also with locks of package sharding held, and waits
// for nothing.
func (x *call) put(o outcome) {
	x.mu.Lock()
	kept := x.machine.Put(o, o.ask.Bytes())
	x.unlock()
	if !kept {
		x.s.settle(o)
		return
	}
	x.signal()
}

func (x *call) signal() {
	select {
	case x.wake <- struct{}{}:
	default: // A token is there already.
	}
}

// write writes outcomes until the call ends.
func (x *call) write() {
	err := errDeserted
	defer func() {
		x.end(err)
		x.abandon()
	}()
	var taken []outcome
	var going bool
	for {
		select {
		case <-x.wake:
		case <-x.ctx.Done():
			err = context.Cause(x.ctx)
			return
		}
		runtime.Gosched() // Whoever answers at this moment comes along.
		x.mu.Lock()
		taken, going = x.machine.Take(taken, x.s.ending())
		x.unlock()
		if failed := x.send(taken, going); failed != nil {
			err = failed
			return
		}
		if x.finished() {
			err = io.EOF
			return
		}
	}
}

// finished reports whether nothing is left to be done.
func (x *call) finished() bool {
	x.mu.Lock()
	defer x.unlock()
	return x.machine.Finished()
}

// abandon counts the requests as done whose outcomes nobody gets, also those that end later.
func (x *call) abandon() {
	x.mu.Lock()
	rest := x.machine.Abandon()
	x.unlock()
	x.s.settle(rest...)
}

// send sends outcomes, in as many messages as they need. All of them count as done afterwards.
func (x *call) send(taken []outcome, going bool) error {
	for len(taken) > 0 || going {
		values := make([]clientv1.Outcome, len(taken))
		out := &clientv1.Outcomes{Going: going, Outcomes: make([]*clientv1.Outcome, 0, len(taken))}
		going = false
		for bytes, n := 0, 0; n < len(taken) && bytes < frameBytes; n++ {
			v := &values[n]
			taken[n].fill(v)
			bytes += len(v.GetPayload()) + len(v.GetDetail())
			out.Outcomes = append(out.GetOutcomes(), v)
		}
		n := len(out.GetOutcomes())
		x.mu.Lock()
		x.machine.Sending(x.now())
		x.unlock()
		err := x.stream.SendMsg(out)
		x.mu.Lock()
		x.machine.Sent(n)
		x.unlock()
		x.s.settle(taken[:n]...)
		taken = taken[n:]
		if err != nil {
			x.s.settle(taken...)
			return err
		}
	}
	return nil
}
