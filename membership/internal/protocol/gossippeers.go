// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

const (
	// peersDrawn is how many members a node draws at random to exchange news with.
	peersDrawn = 5

	// peersHeard is how many members that sent this node news are among its peers besides.
	peersHeard = 8

	// peerKept is how long a drawn peer is kept, and how long a member stays a peer after it
	// sent news, before another may take its place.
	peerKept = time.Minute
)

// gossipPeers are the members with which a node of a large cluster exchanges news:
//
//	those that it monitors     there are connections both ways for the heartbeats
//	some that it has drawn     short ways through the cluster
//	some that it has heard     so that each link is used in both directions; the first of
//	                           them is the member that let it in
//
// With every member in turn, each node would hold a connection to each other one
// after a while, and dial all of them in the seconds in which a cluster forms: a
// hundred nodes need ten thousand connections for that. News needs about log n
// links a node (Ganesh, Kermarrec, Massoulié: Peer-to-Peer Membership Management
// for Gossip-Based Protocols, IEEE Transactions on Computers 52(2), 2003), and
// the ring of the monitors connects all of them in any case. Drawn peers are
// exchanged one by one, so that no part of the cluster stays apart from another.
type gossipPeers struct {
	*core

	// monitors tells whether this node monitors another node.
	monitors func(gossip.NodeID) bool

	// drawn are the members that were drawn. drawnAt is when the oldest of them was last
	// given up for its age.
	drawn   []gossip.NodeID
	drawnAt machine.Instant

	// heard are the members that have sent news.
	heard []heardPeer
}

// heardPeer is a member that has sent news, and when it did so last.
type heardPeer struct {
	node gossip.NodeID
	at   machine.Instant
}

// hear notes that a member has sent news.
func (c *gossipPeers) hear(from gossip.NodeID, at machine.Instant) {
	i := slices.IndexFunc(c.heard, func(h heardPeer) bool { return h.node == from })
	if i < 0 && len(c.heard) < peersHeard {
		c.heard = append(c.heard, heardPeer{from, at})
		return
	}
	if i < 0 {
		i = slices.IndexFunc(c.heard, func(h heardPeer) bool { return at.Sub(h.at) > peerKept })
	}
	if i >= 0 {
		c.heard[i] = heardPeer{from, at}
	}
}

// hearSponsor counts the member that let this node in as heard, before any other. The two
// know each other, as the sponsor and its own sponsor do: such pairs connect all who ever
// joined. Without them many nodes that join through one member in a moment may have peers
// only among each other, and news of a sender that is not known as a member is refused.
// Sponsor may be zero, or no member any more.
func (c *gossipPeers) hearSponsor(sponsor gossip.NodeID) {
	if c.state.Member(sponsor) != nil {
		c.hear(sponsor, c.now.Mono)
	}
}

// pick returns up to n members to exchange news with.
func (c *gossipPeers) pick(n int) []gossip.NodeID {
	if len(c.state.Members()) <= c.cfg.FailureDetector.MonitoredByNrOfMembers+1+peersDrawn {
		return c.state.Peers(c.self, c.deps.Rand, n)
	}
	c.draw()
	return c.state.PeersAmong(c.self, c.deps.Rand, n, c.has)
}

// has tells whether a member is one of the peers.
func (c *gossipPeers) has(n gossip.NodeID) bool {
	return c.monitors(n) || slices.Contains(c.drawn, n) ||
		slices.ContainsFunc(c.heard, func(h heardPeer) bool { return h.node == n })
}

// draw draws members in place of those that are lost, and of the oldest one after
// peerKept.
func (c *gossipPeers) draw() {
	lost := func(n gossip.NodeID) bool { return !c.lives(n) || c.ownRecord(n) != 0 }
	c.drawn = slices.DeleteFunc(c.drawn, lost)
	c.heard = slices.DeleteFunc(c.heard, func(h heardPeer) bool { return lost(h.node) })
	if c.now.Mono.Sub(c.drawnAt) > peerKept {
		c.drawnAt = c.now.Mono
		c.drawn = slices.Delete(c.drawn, 0, min(1, len(c.drawn)))
	}
	members := c.state.Members()
	// Few of many are taken, so a second try is rare. The tries are bounded because
	// almost all members may be lost.
	for tries := 4 * peersDrawn; tries > 0 && len(c.drawn) < peersDrawn; tries-- {
		n := members[c.deps.Rand.IntN(len(members))].Node
		if n != c.self && !lost(n) && !c.has(n) {
			c.drawn = append(c.drawn, n)
		}
	}
}
