// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The number of shards in use, and its changes: first one that nothing disturbs, then what is refused,
// then nodes that stop too late, leave, die or come in the middle of a change.

// eight is a kind with eight shards, of which four are in use.
func eight() control.KindConfig {
	k := six()
	k.Settings.Shards, k.Scale = 8, 4
	return k
}

// scaleTo asks a node for a change, or with a count of 0 how things are, and returns the answer.
func scaleTo(f *fleet, n *peer, base uint64, count uint32) control.ScaleAnswered {
	f.t.Helper()
	before := len(published[control.ScaleAnswered](n))
	n.step(control.SetScale{Kind: "k", ID: 7, Base: base, Count: count})
	f.run(10 * time.Millisecond)
	all := published[control.ScaleAnswered](n)
	require.Len(f.t, all, before+1)
	return all[before]
}

// inUse requires that the first shards are hosted, once each and evenly, under a revision that all nodes know.
func inUse(f *fleet, revision uint64, count int, nodes ...*peer) {
	f.t.Helper()
	hosted := map[protocol.ShardID]gossip.NodeID{}
	for _, n := range nodes {
		require.Equal(f.t, control.Scale{Revision: revision, Count: uint32(count)}, n.scale, "%s", n.id)
		require.LessOrEqual(f.t, len(n.hosts()), (count+len(nodes)-1)/len(nodes), "%s hosts %v", n.id, n.hosts())
		for _, s := range n.hosts() {
			require.NotContains(f.t, hosted, s)
			hosted[s] = n.id
		}
	}
	require.Len(f.t, hosted, count)
}

// The first number is that of the configuration. A change has all shards stop, then as many as are asked for
// start, on all nodes alike, whichever node was asked.
func TestTheNumberInUseIsChanged(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, eight())
	inUse(f, 1, 4, nodes...)
	for i, count := range []uint32{7, 1, 8, 3} {
		base := uint64(i + 1)
		a := scaleTo(f, nodes[i%3], base, count)
		require.Equal(t, control.ScaleAccepted, a.Refusal, a.Detail)
		f.run(2 * time.Second)
		inUse(f, base+1, int(count), nodes...)
		a = scaleTo(f, nodes[(i+1)%3], 0, 0)
		require.True(t, a.Told)
		require.Equal(t, control.Scale{Revision: base + 1, Count: count}, a.Current)
	}
	i := nodes[0].Inspect("k")
	require.Equal(t, []int{0, 3, 0}, []int{i.Open, i.Serving, i.Moving}, "what is not in use is not missed")
	require.False(t, i.Rescaling)
	require.Contains(t, nodes[0].decided("rescale"), "k: counts: every region knows revision 5, of which 3 shards are in use")
}

// A node that joins later learns the number, whatever it was configured with, and so does a coordinator
// that comes after all that knew the first number.
func TestTheNumberInUseOutlivesEveryNodeThatSawItsChange(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, eight())
	scaleTo(f, nodes[0], 1, 6)
	f.run(2 * time.Second)
	other := eight()
	other.Scale = 2
	for i := range 2 {
		nodes = append(nodes, f.start(3+i, other))
	}
	f.run(time.Minute)
	inUse(f, 2, 6, nodes...)
	f.remove(nodes[0])
	f.fence(nodes[0])
	f.run(10 * time.Second)
	f.set(gossip.Leaving, nodes[1])
	f.run(10 * time.Second)
	require.True(t, nodes[1].left)
	f.remove(nodes[1])
	f.fence(nodes[1])
	f.run(20 * time.Second)
	inUse(f, 2, 6, nodes[2:]...)
}

func TestWhatAChangeOfTheNumberRefuses(t *testing.T) {
	f := newFleet(t)
	f.stops = func(protocol.ShardID) time.Duration { return time.Second }
	nodes := f.cluster(2, eight())
	refused := func(base uint64, count uint32, want control.ScaleRefusal, detail string) {
		t.Helper()
		a := scaleTo(f, nodes[1], base, count)
		require.Equal(t, want, a.Refusal)
		require.Contains(t, a.Detail, detail)
	}
	refused(1, 9, control.ScaleOutOfRange, "9 is above 8")
	refused(0, 5, control.ScaleStale, "the revision is 1, with 4 in use")
	refused(1, 4, control.ScaleAccepted, "")
	f.run(2 * time.Second)
	inUse(f, 1, 4, nodes...)
	refused(1, 6, control.ScaleAccepted, "")
	refused(1, 6, control.ScaleAccepted, "")
	refused(1, 5, control.ScaleBusy, "the change to 6 is under way")
	require.True(t, nodes[0].Inspect("k").Rescaling)
	f.run(5 * time.Second)
	refused(1, 6, control.ScaleAccepted, "")
	refused(1, 5, control.ScaleStale, "the revision is 2")
	inUse(f, 2, 6, nodes...)

	f = newFleet(t)
	nodes = f.cluster(2, six())
	refused(0, 5, control.ScaleFixed, "no region has said")
	lone := f.start(9)
	before := len(published[control.ScaleAnswered](lone))
	lone.step(control.SetScale{Kind: "unknown", ID: 1, Count: 2})
	require.Equal(t, control.ScaleUnavailable, published[control.ScaleAnswered](lone)[before].Refusal)
}

// While one instance does not stop, the others wait; after the limit the change is called off, all run as
// before, and a later one succeeds.
func TestAChangeIsCalledOffWhenAnInstanceDoesNotStop(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, eight())
	stuck := true
	f.stops = func(s protocol.ShardID) time.Duration {
		if stuck && s == 2 {
			return -1
		}
		return 10 * time.Millisecond
	}
	require.Equal(t, control.ScaleAccepted, scaleTo(f, nodes[0], 1, 6).Refusal)
	f.run(2 * time.Second)
	require.Len(t, append(nodes[0].hosts(), nodes[1].hosts()...), 1)
	f.run(5 * time.Second)
	inUse(f, 1, 4, nodes...)
	a := scaleTo(f, nodes[1], 0, 0)
	require.EqualValues(t, 2, a.CalledOff)
	require.Contains(t, a.Detail, "did not stop all that they run within the handoff timeout")
	stuck = false
	f.run(5 * time.Second)
	require.Equal(t, control.ScaleAccepted, scaleTo(f, nodes[0], 1, 6).Refusal)
	f.run(5 * time.Second)
	inUse(f, 2, 6, nodes...)
}

// Whatever becomes of the coordinator's node, and whenever, instances of two revisions never run
// together, and in the end one number counts everywhere: the old one or the new one.
func TestTheCoordinatorGoesInTheMiddleOfAChange(t *testing.T) {
	for _, dies := range []bool{true, false} {
		for step := range 40 {
			t.Run(fmt.Sprintf("dies=%t/%d", dies, step), func(t *testing.T) {
				f := newFleet(t)
				nodes := f.cluster(3, eight())
				require.Equal(t, control.ScaleAccepted, scaleTo(f, nodes[1], 1, 8).Refusal)
				f.run(time.Duration(step) * time.Millisecond)
				if dies {
					f.remove(nodes[0])
					f.run(3 * time.Second)
					f.fence(nodes[0])
				} else {
					f.set(gossip.Leaving, nodes[0])
					f.run(10 * time.Second)
					require.True(t, nodes[0].left)
					f.remove(nodes[0])
					f.fence(nodes[0])
				}
				f.run(30 * time.Second)
				a := scaleTo(f, nodes[2], 0, 0)
				require.True(t, a.Told)
				inUse(f, a.Current.Revision, int(a.Current.Count), nodes[1:]...)
				require.Equal(t, map[uint64]uint32{1: 4, 2: 8}[a.Current.Revision], a.Current.Count)
			})
		}
	}
}

// A region that does not hear of a revision holds all up: nobody runs anything until it knows, or is gone.
func TestNothingRunsUntilEveryRegionKnows(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, eight())
	f.drop = func(_, to gossip.NodeID, m control.Message) bool {
		_, tells := m.(control.TellScale)
		return tells && to == nodes[2].id
	}
	scaleTo(f, nodes[0], 1, 6)
	f.run(5 * time.Second)
	for _, n := range nodes {
		require.Empty(t, n.hosts())
	}
	f.drop = nil
	f.run(2 * time.Second)
	inUse(f, 2, 6, nodes...)
}

// What was in use and is not any more keeps no node from leaving.
func TestANodeLeavesAfterAShrink(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, eight())
	scaleTo(f, nodes[0], 1, 1)
	f.run(2 * time.Second)
	inUse(f, 2, 1, nodes...)
	for _, n := range nodes[1:] {
		f.set(gossip.Leaving, n)
		f.run(2 * time.Second)
		require.True(t, n.left, "%s", n.id)
		f.remove(n)
		f.fence(n)
	}
	f.run(5 * time.Second)
	inUse(f, 2, 1, nodes[0])
}
