// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
)

// peers holds what this node keeps of the nodes to which it sends, for as long as a session of
// the lane there lasts. What is kept of a node can be used by whoever has looked it up when it
// is not in the map any more.
type peers struct{ known sync.Map }

// peer is what this node keeps of a node to which it sends.
type peer struct {
	lane Lane
	// version is that of the protocol between the two nodes. 0: a session has not begun, and
	// only what every version knows may be sent.
	version atomic.Uint32
}

// peer returns what this node keeps of another.
func (n *Node) peer(node gossip.NodeID) *peer {
	if p, ok := n.peers.known.Load(node); ok {
		return p.(*peer)
	}
	p, _ := n.peers.known.LoadOrStore(node, &peer{lane: n.Ports.Lane(node)})
	return p.(*peer)
}

// forget drops what this node keeps of another.
func (p *peers) forget(node gossip.NodeID) { p.known.Delete(node) }
