// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/ddata/internal/protocol"
	"github.com/quorate/quorate/ddata/internal/table"
	"github.com/quorate/quorate/gossip"
	world "github.com/quorate/quorate/simulation"
)

// Buckets that lose their homes: in [Homes] two or three homes of a key end at once. The other nodes have to go on
// within a bound: the set of replicas changes, and keys of other buckets are written. Then the homes come back with
// their disks, and the buckets recover by themselves; or an operator accepts the loss of those buckets, and the disks
// come back later, when what they hold of those buckets counts no more. Groups in memory recover by themselves in any
// case, also if a majority of all nodes ends.

// homesNodes is the usual number of nodes of Homes.
const homesNodes = 6

// homesTimeout is the time within which the other nodes have to go on, and buckets have to recover.
const homesTimeout = 60 * time.Second

// Homes runs replicas of which some homes of a bucket end at once.
func Homes(seed uint64, nodes int, set ...func(*world.Options)) (*Cluster, error) {
	o := options(seed, nodes)
	o.World.Scenario, o.Copies, o.Keys, o.Durable = "data-homes", 3, 20, seed%2 == 0
	o.World.Network.Loss /= 4
	if !o.Durable {
		o.World.Calls = world.Calls{}
	}
	c := New(o, set...)
	if err := c.World.Run(12 * time.Second); err != nil {
		return c, err
	}
	most := 2
	if o.Durable && seed%4 == 0 {
		most = 3
	}
	lost := crashedHomes{c, c.crashHomes(c.rand, most), most == 3}
	if !o.Durable && seed%3 == 0 {
		lost.majority()
	}
	for _, step := range []func() error{
		func() error { return c.within("the sets change although homes are lost", lost.goesOn) }, lost.othersWrite, lost.recover,
	} {
		if err := step(); err != nil {
			return c, err
		}
	}
	c.repair()
	return c, c.Finish(90 * time.Second)
}

// crashedHomes are the nodes that were ended at once, in a cluster that has to go on without them and then to recover.
type crashedHomes struct {
	*Cluster

	nodes     []gossip.Address
	diskLater bool // Their disks come back after the loss was accepted.
}

// within runs the world until holds returns no error, at most for homesTimeout. What says what is waited for.
func (c *Cluster) within(what string, holds func() error) error {
	var why error
	_, err := c.World.RunUntil(homesTimeout, func() bool {
		why = holds()
		return why == nil
	})
	if why != nil {
		for _, at := range c.World.Nodes() {
			why = fmt.Errorf("%w\n%s", why, c.nodes[at.ID()].machine)
		}
		return fmt.Errorf("not within %v: %s: %w", homesTimeout, what, why)
	}
	return err
}

// crashHomes ends homes of a key at once, from two up to most, and returns their addresses. It leaves a winning part of
// the replicas that decide registers.
func (c *Cluster) crashHomes(r *rand.Rand, most int) []gossip.Address {
	nodes := c.World.Nodes()
	if len(nodes) < 4 {
		return nil
	}
	key := fmt.Sprintf("%s%d", growing, r.IntN(c.opt.Keys))
	at := c.nodes[nodes[r.IntN(len(nodes))].ID()]
	var crashed []gossip.Address
	for _, home := range at.machine.Route(0).Homes(table.BucketOf(key)) {
		n := c.World.Node(home.Address)
		if n == nil || n.ID() != home || !c.decides(append(slices.Clone(crashed), home.Address)) {
			continue
		}
		if crashed = append(crashed, home.Address); len(crashed) == most {
			break
		}
	}
	if len(crashed) < 2 {
		return nil
	}
	for _, a := range crashed {
		c.Crash(a)
	}
	return crashed
}

// majority ends further nodes at once until no winning part of the replicas is left that decide registers. At least one
// node is left.
func (c *crashedHomes) majority() {
	for nodes := c.World.Nodes(); len(nodes) > 1 && c.decides(c.nodes); nodes = c.World.Nodes() {
		a := nodes[c.rand.IntN(len(nodes))].ID().Address
		c.nodes = append(c.nodes, a)
		c.Crash(a)
	}
}

// decides reports whether the replicas of members, without those at some addresses, are a winning part of every set in
// use.
func (c *Cluster) decides(without []gossip.Address) bool {
	live := map[protocol.ReplicaID]bool{}
	for _, n := range c.World.Nodes() {
		live[c.nodes[n.ID()].replica] = c.members[n.ID()] != nil && !slices.Contains(without, n.ID().Address)
	}
	in := func(id protocol.ReplicaID) bool { return live[id] }
	for _, n := range c.World.Nodes() {
		for _, r := range c.nodes[n.ID()].machine.Pending(0) {
			for _, set := range []protocol.Set{r.Current, r.Next, r.Old} {
				if len(set) > 0 && !set.Wins(in) {
					return false
				}
			}
		}
	}
	return true
}

// goesOn returns an error until the crashed nodes are removed, and the replicas are those of the members.
func (c crashedHomes) goesOn() error {
	for _, n := range c.sortedMembers() {
		if slices.Contains(c.nodes, n.Address) {
			return fmt.Errorf("%s is a member", n)
		}
	}
	for _, at := range c.World.Nodes() {
		r := c.Cluster.nodes[at.ID()].machine.Register(0)
		if r == nil || r.Phase != protocol.PhaseStable || len(r.Current) != len(c.members) || c.members[at.ID()] == nil {
			return fmt.Errorf("%s has the register %+v, of %d members", at.ID(), r, len(c.members))
		}
	}
	return nil
}

// held returns the buckets that are held back according to any node.
func (c *Cluster) held() map[int]bool {
	all := map[int]bool{}
	for _, n := range c.World.Nodes() {
		if r := c.nodes[n.ID()].machine.Register(0); r != nil {
			for _, h := range r.Held {
				for _, bucket := range h.Buckets {
					all[int(bucket)] = true
				}
			}
		}
	}
	return all
}

// othersWrite waits until a key of a bucket that is not held back was written.
func (c crashedHomes) othersWrite() error {
	held, before := c.held(), c.History.acknowledged()
	if c.Held = len(held); c.Held == table.Buckets { // With few nodes every bucket may have lost its homes.
		return nil
	}
	return c.within("keys of other buckets are written", func() error {
		for key, acked := range c.History.acknowledged() { //quorate:unordered any of them
			if !held[table.BucketOf(key)] && acked > before[key] {
				return nil
			}
		}
		return fmt.Errorf("no write was acknowledged of the keys outside of %d buckets", len(held))
	})
}

// recover waits until no bucket is held back. In a durable group the homes come back, or an operator accepts the loss.
func (c crashedHomes) recover() error {
	if c.opt.Durable && !c.diskLater {
		c.comeBack()
	}
	accepted := time.Duration(0)
	err := c.within("buckets recover", func() error {
		// A node that was not told of the removal yet sees no loss: its operator tries again.
		if now := c.World.Now(); c.diskLater && (accepted == 0 || now-accepted > 5*time.Second) {
			accepted = now
			c.acceptHeld()
		}
		if held := c.held(); len(held) > 0 {
			return fmt.Errorf("%d buckets are held back", len(held))
		}
		return nil
	})
	if err != nil || !c.diskLater || len(c.nodes) == 0 {
		return err
	}
	err = c.World.Run(c.soon(20 * time.Second)) // Clients write to the buckets that have begun anew.
	c.comeBack()
	c.Late++
	return errors.Join(err, c.World.Run(5*time.Second))
}

// comeBack starts the nodes again.
func (c crashedHomes) comeBack() {
	for i := range 2 * c.opt.Nodes {
		if slices.Contains(c.nodes, Address(i)) {
			c.Join(i)
		}
	}
}

// acceptHeld accepts the loss of what the buckets held that are held back.
func (c *Cluster) acceptHeld() bool {
	held := c.held()
	if nodes := c.World.Nodes(); len(held) > 0 {
		c.History.forgiveSome(func(key string) bool { return held[table.BucketOf(key)] })
		c.Rescued++
		nodes[c.rand.IntN(len(nodes))].Input(protocol.Service, protocol.AcceptLoss{})
	}
	return len(held) > 0
}
