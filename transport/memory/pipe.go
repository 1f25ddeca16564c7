// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"io"
	"sync"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport/session"
)

var errReset = errors.New("memory: connection reset")

// streamMessages is how many messages are under way in one direction before
// Send blocks: enough not to switch goroutines for each, few enough that the
// window of a lane fills soon.
const streamMessages = 16

// stream is one direction of a connection.
type stream struct {
	mu       sync.Mutex
	look     *sync.Cond // Something below has changed.
	messages []*session.Buffer
	cut      bool
	broken   bool // Reset: both ends fail at once.
	noMore   bool // The sender has closed.
	deaf     bool // The receiver has closed.
}

func newStream() *stream {
	s := &stream{}
	s.look = sync.NewCond(&s.mu)
	return s
}

func (s *stream) setCut(cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = cut
	s.look.Broadcast()
}

func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	s.look.Broadcast()
}

func (s *stream) closeSender() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noMore = true
	s.look.Broadcast()
}

func (s *stream) closeReceiver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = true
	s.look.Broadcast()
}

// send takes over b. A receiver that has gone is not noticed through a cut.
func (s *stream) send(b *session.Buffer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.broken || s.noMore || s.deaf && !s.cut {
			b.Free()
			return errReset
		}
		if len(s.messages) < streamMessages {
			s.messages = append(s.messages, b)
			s.look.Broadcast()
			return nil
		}
		s.look.Wait()
	}
}

func (s *stream) recv(in *session.Incoming) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.broken || s.deaf:
			return errReset
		case !s.cut && len(s.messages) > 0:
			b := s.messages[0]
			s.messages = append(s.messages[:0], s.messages[1:]...)
			in.Bytes, in.Owner = b.B, b
			s.look.Broadcast()
			return nil
		case !s.cut && s.noMore:
			return io.EOF
		}
		s.look.Wait()
	}
}

// duplex is a connection, and its place on the network.
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

// Close ends both directions here. The other end notices when it has read what
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
	return s.noMore && s.deaf
}
