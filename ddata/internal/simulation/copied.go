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
// ([twins.oneHeard]). After a while an operator ends that (part): stops the copy, stops it
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

// twins are the two members of which one has a copy of the disk of the other.
type twins struct {
	*Cluster

	now   twin
	hears map[gossip.NodeID]bool // The nodes that have heard the first one.
}

// twinFor is how long two members claim one replica before an operator acts: longer than it
// takes until all have heard of the copy.
const twinFor = 10 * time.Second

// copyDisk starts a node with a copy of the disk of a member, at an address that has none.
func (t *twins) copyDisk(r *rand.Rand) {
	var free []gossip.Address
	for i := range 2 * t.opt.Nodes {
		if a := Address(i); t.World.Node(a) == nil && t.disks[a] == nil {
			free = append(free, a)
		}
	}
	var up []*world.Node
	for _, n := range t.World.Nodes() {
		if m := t.members[n.ID()]; m != nil && m.Status == gossip.Up && t.disks[n.ID().Address].now.meta.Register != nil {
			up = append(up, n)
		}
	}
	if len(free) == 0 || len(up) < 3 || t.ageing() {
		return
	}
	n, at := up[r.IntN(len(up))], free[r.IntN(len(free))]
	d := *t.disks[n.ID().Address]
	t.now = twin{first: n.ID(), at: at, was: copied{d.id, d.now}}
	clear(t.hears)
	d.old, d.answered = true, true
	t.disks[at] = &d
	t.Copied++
	t.Join(number(at))
	t.World.After(twinFor, func() { t.part(r.IntN(3)) })
}

// part ends that two members claim one replica. The first is only stopped if the others can go
// on without it, and one of them knows that the copy lacks something.
func (t *twins) part(how int) {
	w := t.now
	first := t.World.Node(w.first.Address)
	if !t.twinned() {
		return
	}
	if how == 2 || first == nil || !t.remembered(first, w.was) || !t.mayLose(first) {
		t.stopOne()
		return
	}
	t.Crash(w.first.Address)
	if how == 1 {
		t.World.After(time.Second, func() { t.Join(number(w.first.Address)) })
		t.World.After(twinFor, t.stopOne)
		return
	}
	t.LoseDisk(w.first.Address)
	t.outlived()
}

// stopOne has an operator stop the node that is not heard, and empty its disk: that which has
// been up for less long.
func (t *twins) stopOne() {
	w := t.now
	if !t.twinned() {
		return
	}
	if t.disks[w.at].id != w.was.id { // It was recognised as older, and is another replica now.
		t.Aged++
		t.Recognised++
		t.now = twin{}
		return
	}
	if t.upFor(w.at) < t.upFor(w.first.Address) {
		t.Crash(w.first.Address)
		t.LoseDisk(w.first.Address)
		t.outlived()
		return
	}
	t.Crash(w.at)
	t.LoseDisk(w.at)
	t.now = twin{}
}

// upFor returns the number of the member at an address, which is the lower the longer it has
// been up; the greatest for none.
func (t *twins) upFor(a gossip.Address) gossip.UpNumber {
	if n := t.World.Node(a); n != nil && t.members[n.ID()] != nil {
		return t.members[n.ID()].UpNumber
	}
	return math.MaxUint64
}

// outlived expects that the copy, which goes on alone, is recognised as older.
func (t *twins) outlived() {
	t.restored, t.now = t.now.at, twin{}
	t.Aged++
}

// twinned reports whether a node runs, or is to run, with a copy of the disk of another one.
func (t *twins) twinned() bool { return t.now.at != gossip.Address{} }

// isTwin reports whether that is a certain node.
func (t *twins) isTwin(n *world.Node) bool { return t.twinned() && n.ID().Address == t.now.at }

// oneHeard checks that a node that knows both members hears the one whose disk was copied.
func (t *twins) oneHeard(n *world.Node) error {
	first := t.World.Node(t.now.first.Address)
	if !t.twinned() || t.isTwin(n) || t.members[t.now.first] == nil || first == nil || first.ID() != t.now.first {
		return nil
	}
	if t.nodes[n.ID()].machine.Counts().Claims > 0 && !t.now.refused {
		t.now.refused = true
		t.Refused++
	}
	switch heard, known := t.nodes[n.ID()].machine.Route(0).Node(t.now.was.id); {
	case known && heard == t.now.first:
		t.hears[n.ID()] = true
	case known && heard.Address == t.now.at && t.hears[n.ID()]:
		return fmt.Errorf("%s hears %s for the replica %x, which is that of %s: its disk was copied", n.ID(), heard, uint64(t.now.was.id), t.now.first)
	}
	return nil
}
