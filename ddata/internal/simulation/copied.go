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
// members claim to be one replica. The other nodes have to believe the first one and not the copy
// ([copiedNodes.checkHeard]). After a while an operator ends that ([copiedNodes.endOne]): by stopping the copy; by
// starting the first one again, and then stopping the copy; or by stopping the first one for good, after which the copy
// has to be recognised as older.

// Copied is Chaos with durable replicas whose disks are copied for other nodes.
func Copied(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	o.World.Scenario, o.Durable = "data-copied", true
	o.World.Calls = world.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.05, Hang: 0.01, Late: 0.01}
	c := New(o, set...)
	c.diskCopies = true
	return runChaos(c)
}

// copiedNode is a node that was started with a copy of the disk of another one; zero: there is none.
type copiedNode struct {
	first gossip.NodeID  // The member whose disk was copied.
	at    gossip.Address // Where the copy runs.
	disk  diskSnapshot

	refused bool // A node has noticed that two members claim one replica.
}

// copiedNodes are the nodes of a cluster of which one may have a copy of the disk of another one.
type copiedNodes struct {
	*Cluster

	now   copiedNode
	hears map[gossip.NodeID]bool // The nodes that believe the first one to be the replica.
}

// claimTime is for how long two members claim to be one replica before an operator acts: longer than it takes until all
// nodes know of both.
const claimTime = 10 * time.Second

// copyDisk starts a node with a copy of the disk of a member, at an address that has none.
func (t *copiedNodes) copyDisk(r *rand.Rand) {
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
	t.now = copiedNode{first: n.ID(), at: at, disk: diskSnapshot{d.id, d.now}}
	clear(t.hears)
	d.old, d.answered = true, true
	t.disks[at] = &d
	t.Copied++
	t.Join(number(at))
	t.World.After(claimTime, func() { t.endOne(r.IntN(3)) })
}

// endOne ends one of two members that claim to be one replica, in one of three ways. The first one is stopped only if
// the others can go on without it, and one of them knows that the copy lacks something.
func (t *copiedNodes) endOne(how int) {
	w := t.now
	first := t.World.Node(w.first.Address)
	if !t.active() {
		return
	}
	if how == 2 || first == nil || !t.remembered(first, w.disk) || !t.mayLose(first) {
		t.stopOne()
		return
	}
	t.Crash(w.first.Address)
	if how == 1 {
		t.World.After(time.Second, func() { t.Join(number(w.first.Address)) })
		t.World.After(claimTime, t.stopOne)
		return
	}
	t.LoseDisk(w.first.Address)
	t.expectOlder()
}

// stopOne has an operator stop the one of the two nodes that is not believed, which has been up for less long, and
// empty its disk.
func (t *copiedNodes) stopOne() {
	w := t.now
	if !t.active() {
		return
	}
	if t.disks[w.at].id != w.disk.id { // It was recognised as older, and is another replica now.
		t.Aged++
		t.Recognised++
		t.now = copiedNode{}
		return
	}
	if t.upNumber(w.at) < t.upNumber(w.first.Address) {
		t.Crash(w.first.Address)
		t.LoseDisk(w.first.Address)
		t.expectOlder()
		return
	}
	t.Crash(w.at)
	t.LoseDisk(w.at)
	t.now = copiedNode{}
}

// upNumber returns the up-number of the member at an address: the lower it is, the longer the member has been up.
// Without a member it is the greatest number.
func (t *copiedNodes) upNumber(a gossip.Address) gossip.UpNumber {
	if n := t.World.Node(a); n != nil && t.members[n.ID()] != nil {
		return t.members[n.ID()].UpNumber
	}
	return math.MaxUint64
}

// expectOlder notes that the copy, which goes on alone, has to be recognised as older.
func (t *copiedNodes) expectOlder() {
	t.restored, t.now = t.now.at, copiedNode{}
	t.Aged++
}

// active reports whether a node runs, or is to run, with a copy of the disk of another one.
func (t *copiedNodes) active() bool { return t.now.at != gossip.Address{} }

// isCopy reports whether a node is the one with the copy.
func (t *copiedNodes) isCopy(n *world.Node) bool { return t.active() && n.ID().Address == t.now.at }

// checkHeard checks that a node which has believed the first one does not come to believe the copy.
func (t *copiedNodes) checkHeard(n *world.Node) error {
	first := t.World.Node(t.now.first.Address)
	if !t.active() || t.isCopy(n) || t.members[t.now.first] == nil || first == nil || first.ID() != t.now.first {
		return nil
	}
	if t.nodes[n.ID()].machine.Counts().Claims > 0 && !t.now.refused {
		t.now.refused = true
		t.Refused++
	}
	switch heard, known := t.nodes[n.ID()].machine.Route(0).Node(t.now.disk.id); {
	case known && heard == t.now.first:
		t.hears[n.ID()] = true
	case known && heard.Address == t.now.at && t.hears[n.ID()]:
		return fmt.Errorf("%s hears %s for the replica %x, which is that of %s: its disk was copied", n.ID(), heard, uint64(t.now.disk.id), t.now.first)
	}
	return nil
}
