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
	// contactsDrawn is how many members a node draws at random to exchange news with.
	contactsDrawn = 5

	// contactsHeard is how many members that sent this node news are contacts besides.
	contactsHeard = 8

	// contactKept is how long a drawn contact is kept, and how long a member stays a
	// contact after it sent news, before another may take its place.
	contactKept = time.Minute
)

// contacts are the members with which a node of a large cluster exchanges news:
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
// the ring of the monitors connects all of them in any case. Drawn contacts are
// exchanged one by one, so that no part of the cluster stays apart from another.
type contacts struct {
	*core

	// monitors tells whether this node monitors another node.
	monitors func(gossip.NodeID) bool

	// drawn are the members that were drawn. drawnAt is when the oldest of them was last
	// given up for its age.
	drawn   []gossip.NodeID
	drawnAt machine.Instant

	// heard are the members that have sent news.
	heard []contact
}

type contact struct {
	node gossip.NodeID
	at   machine.Instant
}

// hear notes that a member has sent news.
func (c *contacts) hear(from gossip.NodeID, at machine.Instant) {
	i := slices.IndexFunc(c.heard, func(h contact) bool { return h.node == from })
	if i < 0 && len(c.heard) < contactsHeard {
		c.heard = append(c.heard, contact{from, at})
		return
	}
	if i < 0 {
		i = slices.IndexFunc(c.heard, func(h contact) bool { return at.Sub(h.at) > contactKept })
	}
	if i >= 0 {
		c.heard[i] = contact{from, at}
	}
}

// hearSponsor counts the member that let this node in as heard, before any other. The two
// know each other, and so do those that it was let in by in turn: all who ever joined hang
// together by such pairs. Without them the many that join by one member in a moment may
// have contacts only among each other, and news is not taken from somebody of whom one has
// not heard. Sponsor may be zero, or no member any more.
func (c *contacts) hearSponsor(sponsor gossip.NodeID) {
	if c.state.Member(sponsor) != nil {
		c.hear(sponsor, c.now.Mono)
	}
}

// peers returns up to n members to exchange news with.
func (c *contacts) peers(n int) []gossip.NodeID {
	if len(c.state.Members()) <= c.cfg.FailureDetector.MonitoredByNrOfMembers+1+contactsDrawn {
		return c.state.Peers(c.self, c.deps.Rand, n)
	}
	c.drawContacts()
	return c.state.PeersAmong(c.self, c.deps.Rand, n, c.isContact)
}

// isContact tells whether a member is one of the contacts.
func (c *contacts) isContact(n gossip.NodeID) bool {
	return c.monitors(n) || slices.Contains(c.drawn, n) ||
		slices.ContainsFunc(c.heard, func(h contact) bool { return h.node == n })
}

// drawContacts draws members in place of missing ones, and of the oldest one when its
// time has passed.
func (c *contacts) drawContacts() {
	lost := func(n gossip.NodeID) bool { return !c.lives(n) || c.ownRecord(n) != 0 }
	c.drawn = slices.DeleteFunc(c.drawn, lost)
	c.heard = slices.DeleteFunc(c.heard, func(h contact) bool { return lost(h.node) })
	if c.now.Mono.Sub(c.drawnAt) > contactKept {
		c.drawnAt = c.now.Mono
		c.drawn = slices.Delete(c.drawn, 0, min(1, len(c.drawn)))
	}
	members := c.state.Members()
	// Few of many are taken, so a second try is rare. The tries are bounded because
	// almost all members may be lost.
	for tries := 4 * contactsDrawn; tries > 0 && len(c.drawn) < contactsDrawn; tries-- {
		n := members[c.deps.Rand.IntN(len(members))].Node
		if n != c.self && !lost(n) && !c.isContact(n) {
			c.drawn = append(c.drawn, n)
		}
	}
}
