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

// Disks that come back older: backup copies one, older puts the copy back under its node, as
// long as the promise of the protocol covers that; backupAll and restoreAll do so with all of
// them at once, which has to work without anybody's help.

// Older is Chaos with durable replicas whose disks are put back to older states, one at a
// time or all together.
func Older(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	o.World.Scenario, o.Durable = "data-older", true
	o.World.Calls = world.Calls{Min: time.Millisecond, Max: 30 * time.Millisecond, Fail: 0.05, Hang: 0.01, Late: 0.01}
	c := New(o, set...)
	c.ages = true
	return suffer(c)
}

// copied is a disk as it was.
type copied struct {
	id  protocol.ReplicaID
	was content
}

// ageFaults are the faults by which disks come back older.
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
	c.copies[a] = copied{c.disks[a].id, c.disks[a].now}
}

// addresses returns the addresses with disks, sorted.
func (c *Cluster) addresses() []gossip.Address {
	return slices.SortedFunc(maps.Keys(c.disks), gossip.Address.Compare)
}

// backupAll copies all disks at one moment.
func (c *Cluster) backupAll() {
	c.whole, c.unsettled = map[gossip.Address]copied{}, c.History.unsettled()
	for a, d := range c.disks { //quorate:unordered each by itself
		c.whole[a] = copied{d.id, d.now}
	}
}

// older kills a node and starts it again with the copy of its disk.
func (c *Cluster) older(w *world.World, _ *rand.Rand) {
	for _, n := range w.Nodes() {
		a := n.ID().Address
		was, ok := c.copies[a]
		if !ok || !c.covered(n, was) {
			continue
		}
		delete(c.copies, a)
		c.Crash(a)
		c.disks[a].id, c.disks[a].now, c.disks[a].old = was.id, was.was, true
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

// covered reports whether a replica may come back with a copy of its disk: the others can go
// on without it, and one that stays knows that the copy is older.
func (c *Cluster) covered(n *world.Node, was copied) bool {
	id := c.nodes[n.ID()].replica
	if c.ageing() || was.id != id || c.members[n.ID()] == nil || !c.mayLose(n) {
		return false
	}
	return c.remembered(n, was)
}

// remembered reports whether a member beside a node knows that a copy of its disk is older.
func (c *Cluster) remembered(n *world.Node, was copied) bool {
	for _, o := range c.World.Nodes() {
		if m := c.members[o.ID()]; o != n && m != nil && m.Status == gossip.Up && c.nodes[o.ID()].machine.Remembers(0, was.id) > was.was.meta.Written {
			return true
		}
	}
	return false
}

// ageing reports whether a replica is on its way back with an older disk, or two members claim
// to be one replica. Until that is over nobody else fails for good: two faults at a time are more than is promised.
func (c *Cluster) ageing() bool { return c.restored != gossip.Address{} || c.twins.twinned() }

// isOlder reports whether a replica has an older disk, also while nobody has recognised that.
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

// restoreAll kills all nodes and starts them with the copies of one moment. What was done
// since is lost, by the will of whoever restores.
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
		c.disks[a].id, c.disks[a].now, c.disks[a].old = was.id, was.was, true
		c.World.After(c.soon(time.Second), func() { c.Join(number(a)) })
	}
	c.whole = nil
	clear(c.copies)
	clear(c.chosen)
	c.History.forgive()
	c.History.unsettle(c.unsettled)
	c.Restored++
}

// young checks that a replica whose disk was never put back is not taken for one.
func (k checker) young(n *world.Node) error {
	c := k.c
	if c.opt.Durable && c.nodes[n.ID()].machine.Counts().Aged > 0 && !c.disks[n.ID().Address].old {
		return fmt.Errorf("%s is said to have an older disk, which it has not", n.ID())
	}
	return nil
}
