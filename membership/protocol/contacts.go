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
	// contactsDrawn is how many members a node draws to exchange news with.
	contactsDrawn = 5

	// contactsHeard is how many of those that sent it news it also counts.
	contactsHeard = 8

	// contactKept is how long a drawn contact is kept, and how long ago news of
	// one that was heard may be, before another may take its place.
	contactKept = time.Minute
)

// contacts are the members with which a node of a large cluster exchanges news:
//
//	those that it monitors     there are connections both ways for the heartbeats
//	some that it has drawn     short ways through the cluster
//	some that it has heard     so that each link is used in both directions
//
// With every member in turn, each node would hold a connection to each other one
// after a while, and dial all of them in the seconds in which a cluster forms: a
// hundred nodes need ten thousand connections for that. News needs about log n
// links a node (Ganesh, Kermarrec, Massoulié: Peer-to-Peer Membership Management
// for Gossip-Based Protocols, IEEE Transactions on Computers 52(2), 2003), and
// the ring of the monitors connects all of them in any case. Drawn contacts are
// exchanged one by one, so that no part of the cluster stays apart from another.
type contacts struct {
	drawn   []gossip.NodeID
	drawnAt machine.Instant // When the last one was drawn, or the time for it passed.
	heard   []contact
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

// peers returns up to n members to exchange news with.
func (m *Machine) peers(n int) []gossip.NodeID {
	if len(m.state.Members()) <= m.cfg.FailureDetector.MonitoredByNrOfMembers+1+contactsDrawn {
		return m.state.Peers(m.self, m.deps.Rand, n)
	}
	m.drawContacts()
	return m.state.PeersAmong(m.self, m.deps.Rand, n, m.isContact)
}

// isContact tells whether a member is one of the contacts.
func (m *Machine) isContact(n gossip.NodeID) bool {
	c := &m.contacts
	return m.monitors(n) || slices.Contains(c.drawn, n) ||
		slices.ContainsFunc(c.heard, func(h contact) bool { return h.node == n })
}

// drawContacts draws members in place of those that are missing, and of the one
// that was drawn first when its time has passed.
func (m *Machine) drawContacts() {
	c := &m.contacts
	lost := func(n gossip.NodeID) bool { return !m.lives(n) || m.ownRecord(n) != 0 }
	c.drawn = slices.DeleteFunc(c.drawn, lost)
	c.heard = slices.DeleteFunc(c.heard, func(h contact) bool { return lost(h.node) })
	if m.now.Mono.Sub(c.drawnAt) > contactKept {
		c.drawnAt = m.now.Mono
		c.drawn = slices.Delete(c.drawn, 0, min(1, len(c.drawn)))
	}
	members := m.state.Members()
	// Few of many are taken, so that it rarely needs a second try. Bounded, because
	// almost all may be lost.
	for tries := 4 * contactsDrawn; tries > 0 && len(c.drawn) < contactsDrawn; tries-- {
		n := members[m.deps.Rand.IntN(len(members))].Node
		if n != m.self && !lost(n) && !m.isContact(n) {
			c.drawn = append(c.drawn, n)
		}
	}
}
