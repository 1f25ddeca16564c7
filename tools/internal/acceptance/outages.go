// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"slices"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata/store"
)

// Events in which all nodes end, or a disk or a store comes back as it was. What is in memory alone ends then; of all
// else the documentation says what comes back (docs/operations.md, "Backup of what matters").

// grace is how long the operator waits until what a dead process had under way is over.
const grace = 10 * time.Second

// orderly is how long a shutdown in order takes at most: the leave-timeout, as the settings have it, and some seconds
// (docs/operations.md, "Stopping a whole cluster").
const orderly = 25 * time.Second

// end ends all nodes: in order, or at one moment, as without power.
func (o operator) end() {
	all := o.nodes()
	for _, n := range all {
		o.gone(n)
	}
	if o.rand.IntN(2) == 0 {
		o.note("the whole cluster is stopped in order")
		began := time.Now()
		o.c.Shutdown()
		if took := time.Since(began); took > orderly {
			o.violation("a shutdown in order has taken %v", took)
		}
	} else {
		o.note("the power fails")
		for _, m := range o.machines {
			m.disk.Crash()
		}
		o.c.Kill(all...)
	}
	o.pause(grace, 2*grace)
	for _, p := range o.keepers() {
		p.ended()
	}
}

// keepers are the programs whose users know what outlives the nodes.
func (o operator) keepers() (all []keeper) {
	for _, p := range o.programs {
		if k, is := p.(keeper); is {
			all = append(all, k)
		}
	}
	return all
}

// nodes are those of all machines.
func (o operator) nodes() (all []*clustertest.Node) {
	for _, m := range o.machines {
		all = append(all, m.node)
	}
	return all
}

func (o operator) outage() {
	o.end()
	o.restart()
}

// All disks and the stores are put back as they were while no node ran. What the nodes remember beside it is not.
func (o operator) restore() {
	o.end()
	backups := []func(){o.states.backUp()}
	for _, p := range o.keepers() {
		backups = append(backups, p.copied())
	}
	images := map[*machine]store.Image{}
	for _, m := range o.machines {
		images[m] = m.disk.Image()
	}
	o.restart()
	o.whole("a stop for a backup")
	o.pause(5*time.Second, 30*time.Second)
	if o.rand.IntN(2) == 0 {
		o.crash()
		o.whole("a crash after a backup")
	}
	o.end()
	o.note("the backup is put back")
	for m, image := range images {
		m.disk.Restore(image)
	}
	for _, restore := range backups {
		restore()
	}
	o.restart()
}

// One disk comes back as it was: the others know of more (docs/ddata.md, "Disks that come back older").
func (o operator) olderDisk() {
	m := o.one()
	image := m.disk.Image()
	o.pause(5*time.Second, 20*time.Second)
	if o.rand.IntN(2) == 0 { // The disk has been replaced meanwhile, and its replica is another one.
		o.kill(m)
		o.wipe(m)
		o.start(m)
		o.whole("a crash before a disk comes back")
	}
	o.kill(m)
	o.note("%s has the disk of before", m.address)
	m.disk.Restore(image)
	o.pause(0, 15*time.Second)
	o.start(m)
}

// Another deployment of the same name, with a list and a cluster of its own, gets the address of a machine that is
// listed here. Nobody of either ends for that, and neither takes the other in (docs/bootstrap.md).
func (o operator) foreign() {
	m := o.machines[o.rand.IntN(seedsListed)]
	theirs := []*machine{o.machine("10.9.0.1:7946"), o.machine("10.9.0.2:7946"), o.machine(m.address)}
	var list []string
	for _, f := range theirs {
		list = append(list, f.address)
	}
	o.kill(m)
	for i, f := range theirs {
		f.seeds = list
		if i == 2 {
			o.pause(0, 30*time.Second)
		}
		o.boot(f)
	}
	o.pause(20*time.Second, 60*time.Second)
	ours := slices.DeleteFunc(slices.Clone(o.machines), func(other *machine) bool { return other == m })
	for _, other := range slices.Concat(ours, theirs) {
		if !other.runs() {
			o.violation("%s has ended, since %s has the address of another cluster: %v", other.address, m.address, other.node.Err())
		}
	}
	o.apart(ours, theirs)
	var nodes []*clustertest.Node
	for _, f := range theirs {
		nodes = append(nodes, f.node)
	}
	o.c.Kill(slices.DeleteFunc(nodes, func(n *clustertest.Node) bool { return !n.Running() })...)
	o.again(m)
}

// apart demands that nobody of one cluster is a member of the other.
func (o operator) apart(ours, theirs []*machine) {
	for _, a := range ours {
		for _, b := range theirs {
			if a.runs() && b.runs() && a.node.Membership().State().Cluster() == b.node.Membership().State().Cluster() {
				o.violation("%s and %s are one cluster", a.address, b.address)
			}
		}
	}
}
