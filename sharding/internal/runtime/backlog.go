// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"sync"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// maxBacklogBytes bounds the frames that wait for the lane to one node, in bytes.
const maxBacklogBytes = 4 << 20

// backlog keeps the replies and acknowledgements for which a lane was too full, until the
// lane has room: without it a reply would be lost, and an acknowledgement made up for only
// when its origin transmits again. Messages do not come here, they wait in their cells.
type backlog struct {
	mu    sync.Mutex // Guards nodes; held for bookkeeping only.
	nodes map[gossip.NodeID]*frameQueue
}

// frameQueue holds the frames that wait for the lane to one node, encoded. Their order does
// not matter: a reply belongs to one ask, and an older acknowledgement says nothing
// that a newer acknowledgement does not.
type frameQueue struct {
	frames [][]byte
	bytes  int
}

// add keeps frames for a node, as many as there is place for, and returns the number of
// frames that were lost because there was none.
func (b *backlog) add(to gossip.NodeID, frames ...[]byte) (lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.nodes[to]
	if w == nil {
		w = new(frameQueue)
		if b.nodes == nil {
			b.nodes = make(map[gossip.NodeID]*frameQueue)
		}
		b.nodes[to] = w
	}
	for _, f := range frames {
		if w.bytes+len(f) > maxBacklogBytes {
			lost++
			continue
		}
		w.frames = append(w.frames, f)
		w.bytes += len(f)
	}
	return lost
}

// take removes and returns the frames that wait for a node.
func (b *backlog) take(to gossip.NodeID) [][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.nodes[to]
	if w == nil {
		return nil
	}
	delete(b.nodes, to)
	return w.frames
}

// respond sends a reply or an acknowledgement, now or when its lane has room. The
// error is that of a lane that refuses the frame for another reason than that it is full.
// A frame for which the backlog has no place is counted, and no error.
func (p *peer) respond(encode func([]byte) []byte) error {
	n := p.of
	err := p.lane.Append(protocol.MessageService, encode)
	if err == nil || errors.Is(err, transport.ErrTooLarge) {
		return err
	}
	if !errors.Is(err, transport.ErrFull) {
		n.peers.forget(p.node) // A lane that was never connected ends without a word.
		return err
	}
	n.unsent(n.backlog.add(p.node, encode(nil)))
	n.Ports.AwaitRoom(p.node)
	return nil
}

// answer sends a frame that no ask waits for. A frame that cannot be sent is counted.
func (n *Node) answer(to gossip.NodeID, encode func(dst []byte) []byte) {
	if n.peer(to).respond(encode) != nil {
		n.unsent(1)
	}
}

// unsent counts frames that were lost; mostly there are none.
func (n *Node) unsent(frames int) {
	if frames > 0 {
		n.Ports.Notes.Unsent(frames)
	}
}

// catchUp sends the frames that wait for a node, as far as its lane takes them. A frame
// that the lane refuses for another reason than that it is full is dropped and counted.
func (n *Node) catchUp(to gossip.NodeID) {
	frames := n.backlog.take(to)
	if len(frames) == 0 {
		return
	}
	lane := n.peer(to).lane
	for i, f := range frames {
		err := lane.Append(protocol.MessageService, func(dst []byte) []byte { return append(dst, f...) })
		if errors.Is(err, transport.ErrFull) {
			n.unsent(n.backlog.add(to, frames[i:]...))
			n.Ports.AwaitRoom(to)
			return
		}
		if err != nil {
			n.unsent(1)
		}
	}
}
