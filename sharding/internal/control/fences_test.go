// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/control"
)

// A kind that is added after a node was fenced does not wait for that node: all kinds share
// what the control machine knows of fences.
func TestAKindThatIsAddedAfterAFence(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.set(gossip.Down, nodes[0])
	f.remove(nodes[0])
	f.fence(nodes[0])
	later := six()
	later.Name = "later"
	nodes[1].step(control.AddKind{Kind: later})
	f.run(5 * time.Second)
	require.True(t, nodes[1].Inspect("later").Coordinating)
}

// The control machine forgets that a node was fenced when the cluster forgets its tombstone.
// covers I23.
func TestFencesAreForgottenWithTheTombstones(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	f.set(gossip.Down, nodes[1])
	f.remove(nodes[1])
	f.fence(nodes[1])
	f.publish()
	require.Equal(t, 1, nodes[0].Fences())
	f.edit(func(e *gossip.Edit) bool { return e.SetPrunedBefore(time.Unix(2000, 0)) })
	f.publish()
	require.Zero(t, nodes[0].Fences())
}

// A node that hosts is removed, and is not fenced before the coordinator is gone. The next coordinator
// gives its shards to nobody before the fence, which the fleet checks, whenever sharding began there: it
// knew the node as a member that was up, saw it first when it was down, or never saw it.
// covers F35, F38, I1, I22.
func TestANewCoordinatorWaitsForTheFencesOfBefore(t *testing.T) {
	for _, moment := range []string{"up", "down", "removed"} {
		t.Run(moment, func(t *testing.T) {
			f := newFleet(t)
			first, next, cut := f.start(1, six()), f.puppet(2), f.start(3, six())
			f.run(time.Second)
			next.say(first, control.NoRegion{Kind: "k", Term: first.Inspect("k").Term})
			begin := func(now string) {
				if f.run(5 * time.Second); now == moment {
					f.begin(next, six())
					f.run(5 * time.Second)
				}
			}
			begin("up")
			require.NotEmpty(t, cut.hosts())
			cut.puppet = true // It hears nothing any more, and hosts on.
			f.set(gossip.Down, cut)
			begin("down")
			f.remove(cut)
			begin("removed")
			f.set(gossip.Down, first)
			f.remove(first)
			f.fence(first)
			f.run(10 * time.Second)
			require.False(t, next.Inspect("k").Opened)
			f.fence(cut)
			f.run(5 * time.Second)
			f.settled(6, next)
		})
	}
}

// A coordinator without standing may have been replaced. It gives no home to the shards of a node that is
// fenced, and moves none to a node that comes, until it has standing again.
// covers F24, I2, I3.
func TestACoordinatorWithoutStandingAllocatesNothing(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	coordinator, gone := nodes[0], nodes[2]
	coordinator.step(component.Standing{Until: 0})
	kept := nodes[1].hosts()
	f.set(gossip.Down, gone)
	f.remove(gone)
	f.fence(gone)
	comes := f.start(4, six())
	f.run(time.Minute)
	i := coordinator.Inspect("k")
	require.Equal(t, []int{2, 4, 0}, []int{i.Open, i.Serving, i.Moving})
	require.Equal(t, kept, nodes[1].hosts())
	require.Empty(t, comes.hosts())
	coordinator.step(component.Standing{Until: machine.Never})
	f.run(time.Minute)
	f.settled(6, coordinator, nodes[1], comes)
}

// Every order to host that was ever given comes once more, after what it ordered has ended: the shard has
// moved, is in use no more, or has another coordinator. Nothing is hosted again, which the fleet checks:
// epochs rise, and nobody hosts what another one hosts, or what is not in use.
// covers F16, F38, I1, I22.
func TestAnOldOrderHostsNothingAgain(t *testing.T) {
	for _, after := range []struct {
		name string
		used int // How many shards are in use then.
		do   func(f *fleet, nodes []*peer)
	}{
		{"a move", 4, func(f *fleet, _ []*peer) { f.start(3, eight()) }},
		{"fewer are in use", 1, func(f *fleet, nodes []*peer) { scaleTo(f, nodes[0], 1, 1) }},
		{"another coordinator", 4, func(f *fleet, nodes []*peer) { f.leaves(nodes[0]) }},
	} {
		t.Run(after.name, func(t *testing.T) {
			f := newFleet(t)
			var again []func()
			f.drop = func(from, to gossip.NodeID, m control.Message) bool {
				if _, order := m.(control.Host); order {
					again = append(again, func() { f.send(from, to, m) })
				}
				return false
			}
			nodes := f.cluster(2, eight())
			after.do(f, nodes)
			f.run(30 * time.Second)
			f.drop = nil
			require.NotEmpty(t, again)
			for _, repeat := range again {
				repeat()
			}
			f.run(5 * time.Second)
			hosted := 0
			for _, n := range f.nodes {
				require.Empty(t, published[control.Violation](n))
				hosted += len(n.hosts())
			}
			require.Equal(t, after.used, hosted)
		})
	}
}
