// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// A certificate lets a node connect, and the handshake of joining makes it a member.
// Before that it is a stranger, and after its removal it is one again: no service but
// membership's own takes its frames, which are dropped before they are looked into.
//
// In good health this affects a node that has just joined, until the news of it has come
// here. A component that is served from the control lane drops the node's frames:
// coordination repeats itself, and the news may be behind the frames on the same lane. A
// component that takes frames from the transport itself has the connection wait for the
// news first, which holds up only the sender. Frames that are dropped in the end, and the
// last frames of a node that was just removed, are transmitted again by their origin for
// as long as it runs.

const (
	// strangerPatience is how long the frames of a node wait for the news of its joining.
	// The news is pushed, and repeated by the next rounds of gossip.
	strangerPatience = 2 * time.Second
	// strangerGrace is how long the news of a member may take. A node that is known by
	// then, or was removed, is not worth a line in the log.
	strangerGrace = 5 * time.Second
	// strangerEvery is how often the frames of a stranger that keeps sending are logged.
	strangerEvery = time.Minute
	// maxStrangers bounds the strangers that are told apart. Identities cost a stranger
	// nothing, so the frames of further strangers are counted but not logged.
	maxStrangers = 64
)

// strangerFilter drops the frames of nodes that are no members: it knows which nodes are, at the cost of a look-up for
// each frame, and counts and logs what other nodes send.
type strangerFilter struct {
	log    *slog.Logger
	source func(gossip.NodeID) transport.Source

	state atomic.Pointer[gossip.State]
	count atomic.Uint64

	mu    sync.Mutex // Guards all below.
	seen  map[gossip.NodeID]*strangerRecord
	news  chan struct{} // Closed with the next state; nil while no goroutine waits.
	ended bool
}

// strangerRecord counts what a stranger has sent since the last line of the log about it.
type strangerRecord struct {
	frames  uint64
	service transport.Service // Service of the last frame.
	source  transport.Source
	timer   *time.Timer
}

// learn takes the present state of the cluster.
func (s *strangerFilter) learn(state *gossip.State) {
	s.state.Store(state)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// next returns a channel that is closed when the next state is learnt. A caller gets the
// channel before it looks at the present state, so that it misses no state in between.
func (s *strangerFilter) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return s.news
}

// member reports whether a node is a member in the state that this node knows.
func (s *strangerFilter) member(node gossip.NodeID) bool {
	state := s.state.Load()
	return state != nil && state.Member(node) != nil
}

// keepOut returns a handler that gets only the frames of members.
func (s *strangerFilter) keepOut(service transport.Service, h transport.Handler) transport.Handler {
	return func(from gossip.NodeID, frame []byte) {
		if s.member(from) {
			h(from, frame)
			return
		}
		s.note(from, service)
	}
}

// keepWaiting is keepOut for lanes that do not carry the news of members: frames of a
// node wait for the news that it has joined, until ctx ends. Frames are dropped at once
// if earlier ones of the node have waited in vain, or if the node was removed.
func (s *strangerFilter) keepWaiting(ctx context.Context, service transport.Service, h transport.Handler) transport.Handler {
	return func(from gossip.NodeID, frame []byte) {
		if s.member(from) || s.worthWaiting(from) && s.await(ctx, from) {
			h(from, frame)
			return
		}
		s.note(from, service)
	}
}

// worthWaiting reports whether the news that a node has joined may be on its way.
func (s *strangerFilter) worthWaiting(from gossip.NodeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[from] == nil && len(s.seen) < maxStrangers && !s.familiar(from)
}

// await waits until a node is a member.
func (s *strangerFilter) await(ctx context.Context, from gossip.NodeID) bool {
	ctx, cancel := context.WithTimeout(ctx, strangerPatience)
	defer cancel()
	for {
		next := s.next()
		if s.member(from) {
			return true
		}
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}

// note counts a frame that is dropped.
func (s *strangerFilter) note(from gossip.NodeID, service transport.Service) {
	s.count.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.seen[from]
	switch {
	case s.ended:
		return
	case v == nil && len(s.seen) >= maxStrangers:
		return
	case v == nil:
		if s.seen == nil {
			s.seen = make(map[gossip.NodeID]*strangerRecord)
		}
		// The function of the timer runs on a goroutine of the runtime for the time of
		// one line.
		v = &strangerRecord{source: s.source(from)}
		v.timer = time.AfterFunc(strangerGrace, func() { s.tell(from, v) })
		s.seen[from] = v
	}
	v.frames, v.service = v.frames+1, service
}

// tell logs what a stranger has sent, unless it has turned out to be a member, and again
// for as long as the stranger keeps sending.
func (s *strangerFilter) tell(from gossip.NodeID, v *strangerRecord) {
	known := s.familiar(from)
	s.mu.Lock()
	frames, service := v.frames, v.service
	switch v.frames = 0; {
	case frames == 0 || known || s.ended:
		delete(s.seen, from)
	default:
		v.timer.Reset(strangerEvery)
	}
	s.mu.Unlock()
	if frames > 0 && !known {
		s.log.Warn("messages of a stranger dropped: it is no member of this cluster", "peer", from.String(),
			"address", v.source.Address, "certificate", v.source.Certificate, "service", service, "count", frames)
	}
}

// familiar reports whether a node is a member, or was one.
func (s *strangerFilter) familiar(node gossip.NodeID) bool {
	state := s.state.Load()
	if state == nil {
		return false
	}
	_, removed := state.Removed(node)
	return removed || state.Member(node) != nil
}

// end drops what was not logged yet.
func (s *strangerFilter) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, v := range s.seen {
		v.timer.Stop()
	}
}

// membersTransport is a transport whose handlers get only the frames of members.
type membersTransport struct {
	transport.Transport

	strangers *strangerFilter
	ctx       context.Context //nolint:containedctx // The life of the node.
}

// Handle registers the handler of a service, for the frames of members.
func (t membersTransport) Handle(s transport.Service, h transport.Handler) {
	if s != protocol.Service && h != nil {
		h = t.strangers.keepWaiting(t.ctx, s, h)
	}
	t.Transport.Handle(s, h)
}

// IsMember reports whether a node is a member of the cluster in the state that this node
// knows: it has joined, and is not removed.
func (n *Node) IsMember(node gossip.NodeID) bool { return n.strangers.member(node) }

// WasMember reports whether a node is a member, or was one and is removed, as far as this
// node remembers.
func (n *Node) WasMember(node gossip.NodeID) bool { return n.strangers.familiar(node) }

// Source returns where the connections of a peer come from, for people.
func (n *Node) Source(peer gossip.NodeID) transport.Source {
	if t, ok := n.transport.(transport.Sourcer); ok {
		return t.Source(peer)
	}
	return transport.Source{}
}
