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
	"github.com/quorate/quorate/sharding"
)

// A call of Exchange has three goroutines: that of the call waits for the end and looks whether the client
// may still ask (Exchange, await), one reads requests and hands them on ([exchange.read]), and one writes
// outcomes ([exchange.write]). An outcome comes to the outbox ([exchange.put]) from whatever goroutine has it.

const (
	// frameBytes is how many bytes of replies go into one message, unless it is one reply.
	frameBytes = 64 << 10
	// recheck is how often a client is looked at again.
	recheck = 5 * time.Second
)

// exchange is one call of Exchange.
type exchange struct {
	s      *Server
	stream grpc.BidiStreamingServer[clientv1.Requests, clientv1.Outcomes]
	ctx    context.Context //nolint:containedctx // The life of the call.
	waits  sync.WaitGroup  // Requests that wait for room.
	wake   chan struct{}   // Has a token when the writer has something to do. Capacity one.
	ended  chan struct{}   // Closed when over is set.

	mu     sync.Mutex // Guards what follows. Held for bookkeeping only: outcomes come from under other locks.
	outbox []outcome
	open   int       // Requests without an outcome that was written.
	unread int       // Bytes of replies in the outbox.
	since  time.Time // When the writer began to send; zero while it does not.
	half   bool      // The client sends no more.
	closed bool      // The writer has ended: outcomes are not for anybody any more.
	over   error     // Why the call ends; nil while it goes on.
}

// Exchange carries many requests of one client.
func (s *Server) Exchange(stream grpc.BidiStreamingServer[clientv1.Requests, clientv1.Outcomes]) error {
	if _, err := s.admit(stream.Context()); err != nil {
		return err
	}
	if s.ending() {
		return errEnding
	}
	s.counters.calls.Add(1)
	defer s.counters.calls.Add(-1)
	err := stream.Send(&clientv1.Outcomes{Welcome: &clientv1.Welcome{
		Node:         s.host.Sharding().Node().Self().Address.String(),
		Window:       uint32(s.cfg.Window),                     //nolint:gosec // In its range.
		PayloadBytes: uint32(sharding.EncodedBytesMax(s.host)), //nolint:gosec // In its range.
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	x := &exchange{s: s, stream: stream, ctx: ctx, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	// Both are owned by the call and end with it: gRPC ends what they wait for when this function has
	// returned. Close waits for them.
	s.running.Go(x.read)
	s.running.Go(x.write)
	return x.await()
}

// errEnding ends the calls of clients when the node does.
var errEnding = status.Error(codes.Unavailable, "the node ends")

// await returns why the call ends, when it does.
func (x *exchange) await() error {
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
			if err := x.stalled(); err != nil {
				return err
			}
		}
	}
}

// stalled returns an error if the client does not read.
func (x *exchange) stalled() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.since.IsZero() || time.Since(x.since) < x.s.cfg.WriteTimeout {
		return nil
	}
	return x.s.cut("it has left outcomes unread for gateway.write-timeout")
}

// cut counts a client that does not read, and returns the status that it is closed with.
func (s *Server) cut(why string) error {
	s.counters.cut.Add(1)
	s.say("the gateway closes a client that does not read", "reason", why)
	return status.Error(codes.ResourceExhausted, why)
}

// end ends the call.
func (x *exchange) end(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.endLocked(err)
}

// endLocked is end for those who hold mu.
func (x *exchange) endLocked(err error) {
	if x.over == nil {
		x.over = err
		close(x.ended)
	}
}

// why is the status of a call that has ended: nil if all is done.
func (x *exchange) why() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if errors.Is(x.over, io.EOF) {
		return nil
	}
	return x.over
}

// read hands requests on until the client sends no more. A codec of the program that ends the
// goroutine, by runtime.Goexit, ends the call.
func (x *exchange) read() {
	err := errDeserted
	defer func() {
		if !errors.Is(err, io.EOF) {
			x.end(err)
		}
		x.waits.Wait()
	}()
	for {
		var in *clientv1.Requests
		if in, err = x.stream.Recv(); err != nil {
			break
		}
		err = errDeserted
		for _, r := range in.GetRequests() {
			if !x.enter() {
				err = status.Errorf(codes.ResourceExhausted, "more than %d requests without an outcome", x.s.cfg.Window)
				return
			}
			if wait := x.s.begin(x.ctx, r, x.put); wait != nil {
				// Owned by the call: ends with its context, and read waits for it. There are as many as
				// the window at most.
				x.waits.Go(wait)
			}
		}
	}
	if errors.Is(err, io.EOF) {
		x.mu.Lock()
		x.half = true
		x.mu.Unlock()
		x.signal()
	}
}

// errDeserted ends a call whose goroutine was ended by the program.
var errDeserted = status.Error(codes.Internal, "a codec has ended its goroutine")

// enter counts a request, or reports that the client has too many.
func (x *exchange) enter() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open >= x.s.cfg.Window {
		return false
	}
	x.open++
	return true
}

// put adds an outcome to the outbox. It is called on any goroutine, also with locks of package sharding held, and waits for
// nothing.
func (x *exchange) put(o outcome) {
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		x.s.settle(o)
		return
	}
	x.outbox = append(x.outbox, o)
	x.unread += o.ask.Bytes()
	cut := x.over == nil && x.unread > x.s.cfg.UnreadBytes && len(x.outbox) > 1
	if cut {
		x.endLocked(errUnread)
	}
	x.mu.Unlock()
	x.signal()
}

// errUnread ends the call of a client that does not read.
var errUnread = status.Error(codes.ResourceExhausted, "more replies wait for the client to read them than gateway.unread-bytes")

func (x *exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default: // A token is there already.
	}
}

// write writes outcomes until the call ends.
func (x *exchange) write() {
	err := errDeserted
	defer func() {
		x.end(err)
		x.abandon()
	}()
	told := false
	var taken []outcome
	for {
		select {
		case <-x.wake:
		case <-x.ctx.Done():
			err = context.Cause(x.ctx)
			return
		}
		runtime.Gosched() // Whoever answers at this moment comes along.
		taken = x.take(taken)
		going := x.s.ending() && !told
		told = told || going
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

// take takes what is in the outbox, and leaves the memory of what was taken before there.
func (x *exchange) take(before []outcome) []outcome {
	clear(before)
	x.mu.Lock()
	defer x.mu.Unlock()
	taken := x.outbox
	x.outbox, x.unread = before[:0], 0
	return taken
}

// finished reports whether the client sends no more, and all requests have their outcomes. A client that was
// told that the node ends sends no more by itself: what it had sent before that is sent back.
func (x *exchange) finished() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open == 0 && x.half
}

// abandon counts the requests as done whose outcomes nobody gets, also those that end later.
func (x *exchange) abandon() {
	x.mu.Lock()
	rest := x.outbox
	x.outbox, x.closed = nil, true
	x.mu.Unlock()
	x.s.settle(rest...)
}

// send sends outcomes, in as many messages as they need. All of them count as done afterwards.
func (x *exchange) send(taken []outcome, going bool) error {
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
		x.sending(time.Now(), 0)
		err := x.stream.Send(out)
		x.sending(time.Time{}, n)
		x.s.settle(taken[:n]...)
		taken = taken[n:]
		if err != nil {
			x.s.settle(taken...)
			return err
		}
	}
	return nil
}

// sending notes since when the writer waits for the client, and how many outcomes were sent.
func (x *exchange) sending(since time.Time, sent int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.since = since
	x.open -= sent
}
