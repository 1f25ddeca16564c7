// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// claims are the replicas that several members claim to be at a time: somebody has copied a
// disk, or lies. Two stores under one name would be counted as one, so that two majorities
// need not meet. The member that has been up for longer is heard and the other is not, on all
// nodes the same. A disk that has moved is heard as soon as its first node is no member any
// more.
type claims struct {
	group   *group
	refused map[gossip.NodeID]claim // The claims that are not believed, by the node that makes them.
}

// claim says which replica a node claims to be, and which node is believed to be that replica.
type claim struct {
	id ReplicaID
	of gossip.NodeID
}

func newClaims(g *group) claims { return claims{group: g, refused: map[gossip.NodeID]claim{}} }

// refuse reports whether a message in the name of a replica is not heard, since that is the
// replica of another member.
func (c *claims) refuse(by gossip.NodeID, id ReplicaID) bool {
	g := c.group
	of := g.m.cfg.Self
	if p := g.peers[id]; id != g.self || !g.member() {
		// At one address the younger node counts: it has started again.
		if p == nil || p.node == by || p.node.Address == by.Address {
			return false
		}
		of = p.node
		if c.older(by, of) {
			c.refused[of] = claim{id, by}
			return false
		}
		c.verify(p)
	}
	c.refused[by] = claim{id, of}
	return true
}

// verify asks who is believed to be a replica, now and then, whether that is still so: its
// store may have begun anew under another id, which is told to those alone who hold copies.
func (c *claims) verify(p *peer) {
	now := c.group.m.now.Mono
	if p.verified != 0 && now.Sub(p.verified) < c.group.m.cfg.Timing.Gather {
		return
	}
	p.verified = now
	c.group.send(p, Hello{Ask: true})
}

// older reports whether a node has been up for longer than another. One that is joining is the
// younger one.
func (c *claims) older(a, b gossip.NodeID) bool {
	x, y := c.group.m.state.Member(a), c.group.m.state.Member(b)
	if x == nil || y == nil {
		return x != nil
	}
	return x.UpNumber != 0 && (y.UpNumber == 0 || x.UpNumber < y.UpNumber)
}

// membersChanged forgets claims of which one node is no member any more.
func (c *claims) membersChanged() {
	for by, of := range c.refused { //quorate:unordered each by itself
		if c.group.m.state.Member(by) == nil || c.group.m.state.Member(of.of) == nil {
			delete(c.refused, by)
		}
	}
}

// String names, for people, the nodes that claim to be one replica, and says what to do. It is
// empty while no two nodes do.
func (c *claims) String() string {
	var all []string
	for by, of := range c.refused { //quorate:unordered sorted below
		all = append(all, fmt.Sprintf("%s claims to be the replica %x, which is that of %s: one of their disks is a copy: stop that node and empty its directory", by, uint64(of.id), of.of))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
