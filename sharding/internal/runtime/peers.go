// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/wire"
)

// peers holds what this node keeps of the nodes to which it sends, for as long as a session of
// the lane there lasts. What is kept of a node can be used by whoever has looked it up when it
// is not in the map any more.
type peers struct{ known sync.Map }

// peer is what this node keeps of a node to which it sends. Slots whose cells collect messages
// for the node wait in line for the lane to call; batch.go says what is done then.
type peer struct {
	of   *Node
	node gossip.NodeID
	lane Lane
	// version is that of the protocol between the two nodes. 0: a session has not begun, and
	// only what every version knows may be sent.
	version atomic.Uint32
	over    atomic.Bool // The session has ended, and what follows is kept elsewhere.
	drain   func()      // Has the next slots in line transmit; made once, for all calls of the lane.

	_ [64]byte // What every message reads is not beside what changes with every batch.

	mu    sync.Mutex // Guards the fields below.
	line  []*Slot    // The slots that collect. Bounded by the shards of this node.
	calls int        // How often the lane will call drain.

	batch batch

	replies replies
}

// maxDrain bounds the slots that transmit in one call of the lane: the lane stops to call when
// it has enough for a batch, and goes on with the slots behind them next time.
const maxDrain = 32

// peer returns what this node keeps of another.
func (n *Node) peer(node gossip.NodeID) *peer {
	if p, ok := n.peers.known.Load(node); ok {
		return p.(*peer)
	}
	p := &peer{of: n, node: node, lane: n.Ports.Lane(node)}
	p.drain = p.transmit
	known, _ := n.peers.known.LoadOrStore(node, p)
	return known.(*peer)
}

// keeps reports whether p, which may be nil, is what this node keeps of another.
func (p *peer) keeps(node gossip.NodeID) bool { return p != nil && p.node == node && !p.over.Load() }

// forget drops what this node keeps of another. The replies that wait for its lane are sent, as far
// as the lane takes them.
func (p *peers) forget(node gossip.NodeID) {
	if known, ok := p.known.LoadAndDelete(node); ok {
		old := known.(*peer)
		old.over.Store(true)
		old.sendReplies()
	}
}

// wait puts a slot into the line, unless what is appended to the lane would leave at once.
func (p *peer) wait(sl *Slot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) >= p.calls*maxDrain {
		if !p.lane.Defer(p.drain) {
			return false
		}
		p.calls++
	}
	p.line = append(p.line, sl)
	return true
}

// next takes the slots out of the line that transmit in the present call of the lane.
func (p *peer) next(to []*Slot) []*Slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
	n := min(len(p.line), maxDrain)
	to = append(to[:0], p.line[:n]...)
	rest := copy(p.line, p.line[n:])
	clear(p.line[rest:])
	p.line = p.line[:rest]
	return to
}

// originMap holds what this node keeps of the nodes that send to it.
type originMap struct{ known sync.Map }

// origin is what this node keeps of a node that sends to it.
type origin struct {
	mu      sync.Mutex   // Held while a batch is read, by the one goroutine that reads the connection.
	numbers wire.Numbers // The streams of the node, by number.
}

// of returns what this node keeps of another. When that is new, it forgets those that are no
// members any more: whoever still speaks is made a new record, and sends again what that
// does not know.
func (o *originMap) of(node gossip.NodeID, members Members) *origin {
	if known, ok := o.known.Load(node); ok {
		return known.(*origin)
	}
	o.known.Range(func(other, _ any) bool {
		if !members.IsMember(other.(gossip.NodeID)) {
			o.known.Delete(other)
		}
		return true
	})
	known, _ := o.known.LoadOrStore(node, new(origin))
	return known.(*origin)
}
