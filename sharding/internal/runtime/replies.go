// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"

	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// Replies to other nodes: a reply goes at once where the lane is idle. Where it is busy, gather
// puts the reply into the list of the peer, and sendReplies sends that as one envelope, when the
// lane calls, when the list is full, or when the session ends.

// replies are the replies that wait for the lane to one node. Their order does not matter, since
// each belongs to one ask.
type replies struct {
	mu     sync.Mutex // Guards the fields below. Of the lane nothing but Defer is called with it held.
	called bool       // The lane will call.
	list   wire.ReplyList
}

// reply sends a reply: in the list, as long as the lane has enough to do, else by itself with the clock of
// this node.
func (p *peer) reply(reply *protocol.Reply) error {
	if p.gather(reply) {
		return nil
	}
	reply.Clock = p.of.Ports.Clock.Instant()
	return p.respond(func(dst []byte) []byte { return wire.AppendReply(dst, reply) })
}

// gather puts a reply into the list. False: the reply goes by itself, since it would leave at
// once, or the list has no room for it.
func (p *peer) gather(reply *protocol.Reply) bool {
	if p.version.Load() < protocol.VersionReplies {
		return false
	}
	r := &p.replies
	r.mu.Lock()
	// A session that has ended sends its list no more. That is looked at with mu held:
	// what is in it before the end goes with the end.
	if p.over.Load() || !r.called && !p.lane.Defer(p.callReplies) {
		r.mu.Unlock()
		return false
	}
	r.called = true
	added := r.list.Add(reply)
	r.mu.Unlock()
	if !added {
		p.sendReplies()
	}
	return added
}

// callReplies sends the list when the lane calls.
func (p *peer) callReplies() {
	p.replies.mu.Lock()
	p.replies.called = false
	p.replies.mu.Unlock()
	p.sendReplies()
}

// sendReplies sends the list, with the clock of this node. Replies that cannot be sent are
// counted: their asks end with their deadlines.
func (p *peer) sendReplies() {
	r := &p.replies
	r.mu.Lock()
	list := r.list
	r.list = wire.ReplyList{}
	r.mu.Unlock()
	if list.Len() == 0 {
		return
	}
	now := p.of.Ports.Clock.Instant()
	if p.respond(func(dst []byte) []byte { return list.Append(dst, now) }) != nil {
		p.of.unsent(list.Len())
	}
	list.Reset()
	r.mu.Lock()
	if r.list.Len() == 0 {
		r.list = list // For its memory.
	}
	r.mu.Unlock()
}
