// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport/session"
)

// A connection is two streams, each a bounded queue of messages under way; a pipe is one end of both. First the
// stream, then the pipe.

var errReset = errors.New("memory: connection reset")

// streamMessages is how many messages may be under way in one direction before Send
// blocks: enough not to switch goroutines for each message, few enough that the window
// of a lane fills soon.
const streamMessages = 16

// stream is one direction of a connection.
type stream struct {
	mu             sync.Mutex
	changed        *sync.Cond // Signals that a field below has changed.
	messages       []arriving
	latency        func() time.Duration // Nil for none.
	cut            bool
	broken         bool // Reset: both ends fail at once.
	senderClosed   bool // The sender has closed.
	receiverClosed bool // The receiver has closed.
}

// arriving is a message under way.
type arriving struct {
	b  *session.Buffer
	at time.Time // When it is there; the zero time is at once.
}

func newStream(latency func() time.Duration) *stream {
	s := &stream{latency: latency}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *stream) setCut(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
	s.changed.Broadcast()
}

func (s *stream) setLatency(d func() time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	s.changed.Broadcast()
}

func (s *stream) closeSender() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.senderClosed = true
	s.changed.Broadcast()
}

func (s *stream) closeReceiver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receiverClosed = true
	s.changed.Broadcast()
}

// send takes over b. As long as the link is cut, a receiver that has closed is not
// noticed.
func (s *stream) send(b *session.Buffer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.broken || s.senderClosed || s.receiverClosed && !s.cut {
			b.Free()
			return errReset
		}
		if len(s.messages) < streamMessages {
			s.messages = append(s.messages, arriving{b, s.arrival()})
			s.changed.Broadcast()
			return nil
		}
		s.changed.Wait()
	}
}

// arrival returns when a message is there that is sent now: not before those that were sent before it.
func (s *stream) arrival() (at time.Time) {
	if s.latency == nil {
		return at
	}
	at = time.Now().Add(s.latency())
	if n := len(s.messages); n > 0 && at.Before(s.messages[n-1].at) {
		return s.messages[n-1].at
	}
	return at
}

// wait waits until a message may have arrived.
func (s *stream) wait() {
	if !s.cut && len(s.messages) > 0 {
		// Owner: wait, which ends it.
		timer := time.AfterFunc(time.Until(s.messages[0].at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changed.Broadcast()
		})
		defer timer.Stop()
	}
	s.changed.Wait()
}

func (s *stream) recv(in *session.Incoming) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken || s.receiverClosed:
			return errReset
		case !s.cut && len(s.messages) > 0 && !time.Now().Before(s.messages[0].at):
			b := s.messages[0].b
			s.messages = append(s.messages[:0], s.messages[1:]...)
			in.Bytes, in.Owner = b.B, b
			s.changed.Broadcast()
			return nil
		case !s.cut && s.senderClosed && len(s.messages) == 0:
			return io.EOF
		}
		s.wait()
	}
}

// duplex is a connection on a network, in both directions.
type duplex struct {
	network  *Network
	from, to gossip.Address
	up, down *stream
}

// pipe is one end of a connection.
type pipe struct {
	d       *duplex
	out, in *stream
}

var _ session.Pipe = (*pipe)(nil)

func (p *pipe) Send(b *session.Buffer) error    { return p.out.send(b) }
func (p *pipe) Recv(in *session.Incoming) error { return p.in.recv(in) }

// Close ends both directions at this end. The other end notices when it has read what
// was sent, or not at all while the link is cut.
func (p *pipe) Close() {
	p.out.closeSender()
	p.in.closeReceiver()
	p.d.network.settle(p.d)
}

// settle forgets a connection that both ends have closed.
func (n *Network) settle(d *duplex) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if d.up.closed() && d.down.closed() {
		delete(n.pipes, d)
	}
}

func (s *stream) closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.senderClosed && s.receiverClosed
}
