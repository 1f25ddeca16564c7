// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// Disks that are copied: copyDisk starts a node with a copy of the disk of a member, so that two
// members claim to be one replica. The others have to hear the first and not the copy
// ([Cluster.oneHeard]). After a while an operator ends that (part): stops the copy, stops it
// after the first has started again, or stops the first for good, whereupon the copy has to be
// recognised as older.

// Copied is Chaos with durable replicas whose disks are copied for other nodes.
func Copied(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	o.World.Scenario, o.Durable = "data-copied", true
	o.World.Calls = world.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.05, Hang: 0.01, Late: 0.01}
	c := New(o, set...)
	c.copying = true
	return suffer(c)
}

// twin is a node that has started with a copy of the disk of another one. While there is none
// its fields are zero.
type twin struct {
	first gossip.NodeID // The member whose disk was copied.
	at    gossip.Address
	was   copied

	refused bool // A node has noticed that two members claim one replica.
}

// twinFor is how long two members claim one replica before an operator acts: longer than it
// takes until all have heard of the copy.
const twinFor = 10 * time.Second

// copyDisk starts a node with a copy of the disk of a member, at an address that has none.
func (c *Cluster) copyDisk(r *rand.Rand) {
	var free []gossip.Address
	for i := range 2 * c.opt.Nodes {
		if a := Address(i); c.World.Node(a) == nil && c.disks[a] == nil {
			free = append(free, a)
		}
	}
	var up []*world.Node
	for _, n := range c.World.Nodes() {
		if m := c.members[n.ID()]; m != nil && m.Status == gossip.Up && c.disks[n.ID().Address].now.meta.Register != nil {
			up = append(up, n)
		}
	}
	if len(free) == 0 || len(up) < 3 || c.ageing() {
		return
	}
	n, at := up[r.IntN(len(up))], free[r.IntN(len(free))]
	d := *c.disks[n.ID().Address]
	c.twin = twin{first: n.ID(), at: at, was: copied{d.id, d.now}}
	clear(c.hears)
	d.old, d.answered = true, true
	c.disks[at] = &d
	c.Copied++
	c.Join(number(at))
	c.World.After(twinFor, func() { c.part(r.IntN(3)) })
}

// part ends that two members claim one replica. The first is only stopped if the others can go
// on without it, and one of them knows that the copy lacks something.
func (c *Cluster) part(how int) {
	t := c.twin
	first := c.World.Node(t.first.Address)
	if !c.twinned() {
		return
	}
	if how == 2 || first == nil || !c.remembered(first, t.was) || !c.mayLose(first) {
		c.stopOne()
		return
	}
	c.Crash(t.first.Address)
	if how == 1 {
		c.World.After(time.Second, func() { c.Join(number(t.first.Address)) })
		c.World.After(twinFor, c.stopOne)
		return
	}
	c.LoseDisk(t.first.Address)
	c.outlived()
}

// stopOne has an operator stop the node that is not heard, and empty its disk: that which has
// been up for less long.
func (c *Cluster) stopOne() {
	t := c.twin
	if !c.twinned() {
		return
	}
	if c.disks[t.at].id != t.was.id { // It was recognised as older, and is another replica now.
		c.Aged++
		c.Recognised++
		c.twin = twin{}
		return
	}
	if c.upFor(t.at) < c.upFor(t.first.Address) {
		c.Crash(t.first.Address)
		c.LoseDisk(t.first.Address)
		c.outlived()
		return
	}
	c.Crash(t.at)
	c.LoseDisk(t.at)
	c.twin = twin{}
}

// upFor returns the number of the member at an address, which is the lower the longer it has
// been up; the greatest for none.
func (c *Cluster) upFor(a gossip.Address) gossip.UpNumber {
	if n := c.World.Node(a); n != nil && c.members[n.ID()] != nil {
		return c.members[n.ID()].UpNumber
	}
	return math.MaxUint64
}

// outlived expects that the copy, which goes on alone, is recognised as older.
func (c *Cluster) outlived() {
	c.restored, c.twin = c.twin.at, twin{}
	c.Aged++
}

// twinned reports whether a node runs, or is to run, with a copy of the disk of another one.
func (c *Cluster) twinned() bool { return c.twin.at != gossip.Address{} }

// isTwin reports whether that is a certain node.
func (c *Cluster) isTwin(n *world.Node) bool { return c.twinned() && n.ID().Address == c.twin.at }

// oneHeard checks that a node that knows both members hears the one whose disk was copied.
func (c *Cluster) oneHeard(n *world.Node) error {
	first := c.World.Node(c.twin.first.Address)
	if !c.twinned() || c.isTwin(n) || c.members[c.twin.first] == nil || first == nil || first.ID() != c.twin.first {
		return nil
	}
	if c.nodes[n.ID()].machine.Counts().Claims > 0 && !c.twin.refused {
		c.twin.refused = true
		c.Refused++
	}
	switch heard, known := c.nodes[n.ID()].machine.Route(0).Node(c.twin.was.id); {
	case known && heard == c.twin.first:
		c.hears[n.ID()] = true
	case known && heard.Address == c.twin.at && c.hears[n.ID()]:
		return fmt.Errorf("%s hears %s for the replica %x, which is that of %s: its disk was copied", n.ID(), heard, uint64(c.twin.was.id), c.twin.first)
	}
	return nil
}
