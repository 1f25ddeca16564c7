// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// Disks that are put back to an older state: backup copies one, and older puts the copy back, if the protocol promises
// to recognise that; backupAll and restoreAll do so with all disks at once, which has to work without an operator.

// Older is [Chaos] with durable replicas whose disks are put back to older states, one at a time or all at once.
func Older(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	o.World.Scenario, o.Durable = "data-older", true
	o.World.Calls = world.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.05, Hang: 0.01, Late: 0.01}
	c := New(o, set...)
	c.diskAges = true
	return runChaos(c)
}

// diskSnapshot is a disk as it was at some time.
type diskSnapshot struct {
	id      protocol.ReplicaID
	content content
}

// ageFaults are the faults by which disks are put back to older states.
func (c *Cluster) ageFaults() []world.Fault {
	return []world.Fault{
		{Name: "backup", Weight: 15, Inject: func(_ *world.World, r *rand.Rand) { c.backup(r) }},
		{Name: "older", Weight: 30, Inject: c.older},
		{Name: "backup-all", Weight: 3, Inject: func(*world.World, *rand.Rand) { c.backupAll() }},
		{Name: "restore-all", Weight: 3, Inject: func(w *world.World, _ *rand.Rand) { c.restoreAll(w) }},
	}
}

// backup copies a disk.
func (c *Cluster) backup(r *rand.Rand) {
	all := c.addresses()
	if len(all) == 0 {
		return
	}
	a := all[r.IntN(len(all))]
	c.copies[a] = diskSnapshot{c.disks[a].id, c.disks[a].now}
}

// addresses returns the addresses with disks, sorted.
func (c *Cluster) addresses() []gossip.Address {
	return slices.SortedFunc(maps.Keys(c.disks), gossip.Address.Compare)
}

// backupAll copies all disks at the same time.
func (c *Cluster) backupAll() {
	c.whole, c.unsettled = map[gossip.Address]diskSnapshot{}, c.History.unsettled()
	for a, d := range c.disks { //quorate:unordered each by itself
		c.whole[a] = diskSnapshot{d.id, d.now}
	}
}

// older crashes a node, and starts it again with a copy of its disk.
func (c *Cluster) older(w *world.World, _ *rand.Rand) {
	for _, n := range w.Nodes() {
		a := n.ID().Address
		was, ok := c.copies[a]
		if !ok || !c.covered(n, was) {
			continue
		}
		delete(c.copies, a)
		c.Crash(a)
		c.disks[a].id, c.disks[a].now, c.disks[a].old = was.id, was.content, true
		c.restored = a
		c.Aged++
		c.World.After(time.Second, func() { c.Join(number(a)) })
		return
	}
}

// number is the i for which Address returns an address.
func number(a gossip.Address) (i int) {
	if _, err := fmt.Sscanf(a.Host, "n%d", &i); err != nil {
		panic(err)
	}
	return i
}

// covered reports whether a node may be started again with a copy of its disk: the others can go on without it, and one
// of them knows that the copy is older.
func (c *Cluster) covered(n *world.Node, was diskSnapshot) bool {
	id := c.nodes[n.ID()].replica
	if c.ageing() || was.id != id || c.members[n.ID()] == nil || !c.mayLose(n) {
		return false
	}
	return c.remembered(n, was)
}

// remembered reports whether another member knows that a copy of the disk of a node is older.
func (c *Cluster) remembered(n *world.Node, was diskSnapshot) bool {
	for _, o := range c.World.Nodes() {
		if m := c.members[o.ID()]; o != n && m != nil && m.Status == gossip.Up && c.nodes[o.ID()].machine.Remembers(0, was.id) > was.content.meta.Written {
			return true
		}
	}
	return false
}

// ageing reports whether a disk was put back and not recognised yet, or two members claim to be one replica. As long as
// that is so no other node fails for good: the protocol promises nothing for two such faults at a time.
func (c *Cluster) ageing() bool { return c.restored != gossip.Address{} || c.copied.active() }

// isOlder reports whether a node has an older disk, recognised or not.
func isOlder(c *Cluster, n *world.Node) bool {
	return n.ID().Address == c.restored || c.nodes[n.ID()].machine.Older(0)
}

// renewed notes under which id a replica goes on.
func (c *Cluster) renewed(n *world.Node, id protocol.ReplicaID) {
	if c.nodes[n.ID()].replica == id {
		return
	}
	c.nodes[n.ID()].replica = id
	if a := n.ID().Address; c.restored == a {
		c.restored = gossip.Address{}
		c.Recognised++
	}
}

// restoreAll crashes all nodes and starts them with copies of the same time. What was done since is lost, as whoever
// does that intends.
func (c *Cluster) restoreAll(w *world.World) {
	if len(c.whole) == 0 || c.ageing() {
		return
	}
	for _, n := range w.Nodes() {
		c.Crash(n.ID().Address)
	}
	for _, a := range c.addresses() {
		was, ok := c.whole[a]
		if !ok {
			c.LoseDisk(a)
			continue
		}
		c.disks[a].id, c.disks[a].now, c.disks[a].old = was.id, was.content, true
		c.World.After(c.soon(time.Second), func() { c.Join(number(a)) })
	}
	c.whole = nil
	clear(c.copies)
	clear(c.registers)
	c.History.forgive()
	c.History.unsettle(c.unsettled)
	c.Restored++
}

// checkNeverOlder checks that a disk that was never put back is not taken for an older one.
func (k checker) checkNeverOlder(n *world.Node) error {
	c := k.c
	if c.opt.Durable && c.nodes[n.ID()].machine.Counts().Aged > 0 && !c.disks[n.ID().Address].old {
		return fmt.Errorf("%s is said to have an older disk, which it has not", n.ID())
	}
	return nil
}
