// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Node is what the kinds of one node share: the ports, what is known of other nodes, and
// what waits for their lanes.
type Node struct {
	Ports Ports

	kinds       atomic.Pointer[kindMap]
	adding      sync.Mutex // Held while a kind is added.
	clocks      peerClocks
	backlog     backlog
	acks        dueAcks
	peers       peers
	origins     originMap
	limits      deadlines
	decoders    sync.Pool
	messages    messagePool
	chunks      chunkPool
	flushes     atomic.Uint64 // How often cells were flushed: the first cell of a flush depends on the number.
	generations atomic.Uint64 // The last generation of numbers of streams that was begun, to any node.
}

// kindMap are the regions of a node. The value is replaced, never changed.
type kindMap struct {
	named   map[string]*Region
	ordered []*Region // By name.
}

// NewNode returns a node without kinds.
func NewNode(p Ports) *Node {
	n := &Node{Ports: p}
	n.kinds.Store(new(kindMap))
	return n
}

// Region returns the region of a kind, nil if the kind does not run here.
func (n *Node) Region(kind string) *Region { return n.kinds.Load().named[kind] }

// add makes a region known.
func (n *Node) add(r *Region) {
	n.adding.Lock()
	defer n.adding.Unlock()
	next := &kindMap{
		named:   map[string]*Region{r.name: r},
		ordered: append(slices.Clone(n.kinds.Load().ordered), r),
	}
	for _, o := range n.kinds.Load().ordered {
		next.named[o.name] = o
	}
	slices.SortFunc(next.ordered, func(a, b *Region) int { return strings.Compare(a.name, b.name) })
	n.kinds.Store(next)
}

// eachSlot calls f for every slot of every kind.
func (n *Node) eachSlot(f func(*Slot)) {
	for _, r := range n.kinds.Load().ordered {
		r.EachSlot(f)
	}
}

// Apply feeds an input of the control machine to the cell of a shard.
func (n *Node) Apply(kind string, shard protocol.ShardID, in protocol.CellInput) {
	if r := n.Region(kind); r != nil {
		if sl := r.Slot(shard); sl != nil {
			sl.Apply(in)
		}
	}
}

// ApplyAll feeds an input of the control machine to all cells of a kind, or of all kinds if
// the kind is empty.
func (n *Node) ApplyAll(kind string, in protocol.CellInput) {
	n.eachSlot(func(sl *Slot) {
		if kind == "" || kind == sl.region.name {
			sl.Apply(in)
		}
	})
}

// Abandon ends all cells of a node that has ended.
func (n *Node) Abandon() {
	n.eachSlot((*Slot).abandon)
	n.limits.end()
}

// Connected says that a session of the lane to a node has begun, and which version of the
// protocol between nodes the two speak: the session takes what waits.
func (n *Node) Connected(peer gossip.NodeID, version uint16) {
	n.peer(peer).version.Store(uint32(version))
	n.Flush(peer)
}

// Disconnected says that the session of the lane to a node has ended, and may have lost
// messages.
func (n *Node) Disconnected(peer gossip.NodeID) {
	n.clocks.forget(peer)
	n.peers.forget(peer)
	n.eachSlot(func(sl *Slot) { sl.Step(func(c *cell.Cell, _ *cell.Actions) { c.Broken(peer) }) })
	// An append begins the next session, or says why there is none.
	n.Flush(peer)
}

// Flush sends the replies that wait for a node, and lets every cell transmit what waits for
// that node. Each flush begins with another cell: a lane that is always full must not serve
// the first cells alone.
func (n *Node) Flush(to gossip.NodeID) {
	n.catchUp(to)
	turn, now := n.flushes.Add(1), n.Ports.Clock.Instant()
	for _, r := range n.kinds.Load().ordered {
		slots := r.layouts.Load().slots
		count := uint64(len(slots))
		for i := range count {
			if !slots[(turn*61+i)%count].flush(now, to) {
				return // The lane is full again; the next flush begins with another cell.
			}
		}
	}
}

// ClockOf returns what the clock of a node shows at least, when that of this node shows
// now; 0 when that is not known.
func (n *Node) ClockOf(node gossip.NodeID, now machine.Instant) machine.Instant {
	return n.clocks.at(node, now)
}
