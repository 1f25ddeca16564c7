// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Moves that are disturbed: first how a node of a fleet crashes or leaves, and a fault at
// each message of moves; then a coordinator that leaves, shards that do not stop, and targets
// that are lost; last what explanations say about a shard and its moves.

// crash ends a node. A little later the node is removed, and fenced.
func (f *fleet) crash(n *peer) {
	n.dead = true
	clear(n.hosting)
	f.after(100*time.Millisecond, func() {
		f.set(gossip.Down, n)
		f.remove(n)
	})
	f.after(200*time.Millisecond, func() { f.fence(n) })
}

// leaves lets a node leave. The node is removed and fenced some time after it has handed
// everything over: before that, members learn one after the other that it exits.
func (f *fleet) leaves(n *peer) {
	f.set(gossip.Leaving, n)
	var look func()
	look = func() {
		if !n.left {
			f.after(10*time.Millisecond, look)
			return
		}
		f.set(gossip.Exiting, n)
		f.after(20*time.Millisecond, func() {
			n.step(component.Stopping{})
			n.dead = true
			f.remove(n)
			f.fence(n)
		})
	}
	f.after(0, look)
}

// isStep reports whether a message is part of a move.
func isStep(m control.Message) bool {
	switch m.(type) {
	case control.Stop, control.ShardsStopped, control.Host, control.Hosting, control.Map, control.Resume, control.Resumed:
		return true
	default:
		return false
	}
}

// At each message of moves something goes wrong: the old home, the new one, or the
// coordinator dies or leaves, one of them has no standing for a while, or messages are lost.
// No shard has two hosts, epochs rise, which the fleet checks at each step, and in the end
// every shard has a home and the load is even. When no node dies, the streams go on.
// covers F35, F37, F38, F39, I1, I21, I22.
func TestFaultsAtEveryStepOfMoves(t *testing.T) {
	type fault struct {
		name  string
		kills bool
		do    func(f *fleet, nodes []*peer, joined *peer) (gone *peer)
	}
	crash := func(pick func([]*peer, *peer) *peer) func(*fleet, []*peer, *peer) *peer {
		return func(f *fleet, nodes []*peer, joined *peer) *peer {
			n := pick(nodes, joined)
			f.crash(n)
			return n
		}
	}
	leave := func(pick func([]*peer, *peer) *peer) func(*fleet, []*peer, *peer) *peer {
		return func(f *fleet, nodes []*peer, joined *peer) *peer {
			n := pick(nodes, joined)
			f.leaves(n)
			return n
		}
	}
	coordinator := func(nodes []*peer, _ *peer) *peer { return nodes[0] }
	source := func(nodes []*peer, _ *peer) *peer { return nodes[1] }
	target := func(_ []*peer, joined *peer) *peer { return joined }
	faults := []fault{
		{"the coordinator dies", true, crash(coordinator)},
		{"a source dies", true, crash(source)},
		{"the target dies", true, crash(target)},
		{"the coordinator leaves", false, leave(coordinator)},
		{"a source leaves", false, leave(source)},
		{"the target leaves", false, leave(target)},
		{"the target loses standing", false, func(f *fleet, _ []*peer, joined *peer) *peer {
			joined.step(component.Standing{Until: 0})
			f.after(time.Second, func() { joined.step(component.Standing{Until: machine.Never}) })
			return nil
		}},
		{"the coordinator loses standing", false, func(f *fleet, nodes []*peer, _ *peer) *peer {
			nodes[0].step(component.Standing{Until: 0})
			f.after(time.Second, func() { nodes[0].step(component.Standing{Until: machine.Never}) })
			return nil
		}},
		{"the message is lost", false, nil},
		{"all messages are lost for a while", false, func(f *fleet, _ []*peer, _ *peer) *peer {
			until := f.now + 700*time.Millisecond
			f.drop = func(_, _ gossip.NodeID, m control.Message) bool { return isStep(m) && f.now < until }
			return nil
		}},
		{"the coordinator and the target leave", false, func(f *fleet, nodes []*peer, joined *peer) *peer {
			f.leaves(nodes[0])
			f.leaves(joined)
			return nil
		}},
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			for at := 1; at <= 45; at++ {
				runFault(t, at, fault.kills, fault.do)
			}
		})
	}
}

// runFault lets a node join a cluster of three, so that shards move to it, and lets the
// fault happen at the at-th message of the moves. A fault that is nil loses the message.
func runFault(t *testing.T, at int, kills bool, do func(*fleet, []*peer, *peer) *peer) {
	t.Helper()
	f := newFleet(t)
	nodes := f.cluster(3, wide(30))
	before := nodes[0].Inspect("k").Homes
	joined := f.start(4, wide(30))
	seen := 0
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		if !isStep(m) {
			return false
		}
		if seen++; seen != at {
			return false
		}
		if do == nil {
			return true
		}
		f.after(0, func() { do(f, nodes, joined) })
		return false
	}
	f.run(10 * time.Second)
	require.GreaterOrEqual(t, seen, at, "there were as many messages")
	var rest []*peer
	for _, n := range append(append([]*peer{}, nodes...), joined) {
		if !n.dead {
			rest = append(rest, n)
		}
	}
	f.settled(30, rest...)
	least, greatest := 30, 0
	for _, n := range spread(rest...) {
		least, greatest = min(least, n), max(greatest, n)
	}
	require.LessOrEqual(t, greatest-least, 1, "at %d: even in the end: %v", at, spread(rest...))
	if kills {
		return
	}
	for _, h := range rest[0].Inspect("k").Homes {
		require.Equal(t, before[h.Shard].Base, h.Base, "at %d: the streams of shard %d go on", at, h.Shard)
	}
}

// A coordinator that leaves waits for the end of its moves before it stops, but not for
// long: stops that take longer are taken back, or left to the next coordinator.
// covers F35, F39.
func TestCoordinatorThatLeavesLetsItsMovesEnd(t *testing.T) {
	for name, takes := range map[string]time.Duration{"quick": 300 * time.Millisecond, "slow": 1400 * time.Millisecond, "never": -1} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			nodes := f.cluster(3, six())
			before := nodes[0].Inspect("k").Homes
			f.stops = func(protocol.ShardID) time.Duration { return takes }
			f.set(gossip.Leaving, nodes[2])
			f.run(100 * time.Millisecond)
			require.Equal(t, 2, nodes[0].Inspect("k").Moving)
			f.set(gossip.Leaving, nodes[0])
			f.run(100 * time.Millisecond)
			require.True(t, nodes[0].Inspect("k").Coordinating)
			require.False(t, nodes[1].Inspect("k").Coordinating)
			f.run(1900 * time.Millisecond)
			require.False(t, nodes[0].Inspect("k").Coordinating)
			require.True(t, nodes[1].Inspect("k").Coordinating)
			f.stops = func(protocol.ShardID) time.Duration { return time.Millisecond }
			f.run(10 * time.Second)
			f.settled(6, nodes[1])
			require.True(t, nodes[0].left)
			require.True(t, nodes[2].left)
			for _, h := range nodes[1].Inspect("k").Homes {
				require.Equal(t, before[h.Shard].Base, h.Base, "the streams go on")
			}
		})
	}
}

// A coordinator that leaves while the old home of its moves is dead stops all the same.
func TestCoordinatorThatLeavesDoesNotWaitForEver(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	f.set(gossip.Leaving, nodes[2])
	nodes[2].dead = true
	f.run(100 * time.Millisecond)
	f.set(gossip.Leaving, nodes[0])
	f.run(2900 * time.Millisecond)
	require.True(t, nodes[0].Inspect("k").Coordinating)
	f.run(600 * time.Millisecond)
	require.False(t, nodes[0].Inspect("k").Coordinating)
}

// When a region leaves, its shards that do not stop do not keep its other shards from
// moving.
// covers F39, I21.
func TestWavesGoOnBesideStuckShards(t *testing.T) {
	f := newFleet(t)
	kind := wide(300)
	kind.Timings.Handoff = time.Minute
	nodes := f.cluster(2, kind)
	f.stops = func(s protocol.ShardID) time.Duration {
		if s%3 == 0 {
			return -1
		}
		return 5 * time.Millisecond
	}
	f.set(gossip.Leaving, nodes[1])
	f.run(4 * time.Second)
	for _, s := range nodes[1].hosts() {
		require.Zero(t, s%3, "everything that stops has moved")
	}
	require.False(t, nodes[1].left)
}

// A node that leaves is not used as a target any more, neither by moves whose shard is
// stopping nor by moves that are only planned. The reason of a move that lost its target
// names both decisions.
func TestTargetsThatGo(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(4, wide(200))
	f.stops = func(protocol.ShardID) time.Duration { return 50 * time.Millisecond }
	f.set(gossip.Leaving, nodes[3])
	f.run(10 * time.Millisecond)
	e := ask(f, nodes[0], 3)
	require.Equal(t, control.PhaseStopping, e.Phase)
	f.set(gossip.Leaving, nodes[1])
	f.run(time.Second)
	f.settled(200, nodes[0], nodes[2])
	require.Equal(t, []int{100, 100}, spread(nodes[0], nodes[2]))

	f.run(time.Second)
	stranded := 0
	for _, ended := range published[control.MoveEnded](nodes[0]) {
		m := ended.Moved
		text := nodes[1].id.String() + " can take it no more; " + nodes[3].id.String() + " is leaving; least-shard: "
		if rest, found := strings.CutPrefix(m.Reason, text); found {
			stranded++
			require.Contains(t, rest, "; least-shard: ", "the decision for the home that it got is told as well")
			require.NotEqual(t, nodes[1].id, m.To)
		}
	}
	require.NotZero(t, stranded, "a move that lost its target says so")
}

// ask returns what a node explains about a shard.
func ask(f *fleet, n *peer, s protocol.ShardID) control.ShardExplanation {
	f.t.Helper()
	before := len(published[control.ShardExplanation](n))
	id := uint64(before + 1)
	n.step(control.Explain{Kind: "k", Shard: s, ID: id})
	f.run(2 * latency)
	all := published[control.ShardExplanation](n)
	require.Len(f.t, all, before+1, "answered once")
	require.Equal(f.t, id, all[before].ID)
	return all[before]
}

// Every node explains what the coordinator knows of a shard: its home and the decision when
// it is at rest; the reason, the target and the deadline during a move; and the outcome
// afterwards.
func TestExplain(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(2, six())
	e := ask(f, nodes[1], 1)
	require.Equal(t, nodes[0].id, e.Coordinator)
	require.Equal(t, term(1, 1), e.Term)
	require.Equal(t, control.PhaseServing, e.Phase)
	require.Equal(t, nodes[1].id, e.Home)
	require.Equal(t, nodes[1].hosting[1].Epoch, e.Epoch)
	require.Equal(t, "least-shard: its share is 3 of 6 shards on 2 regions", e.Decision)
	require.Less(t, e.Since.UnixMilli(), int64(3200))
	require.Empty(t, e.Detail)
	require.Empty(t, e.Moves)

	f.stops = func(protocol.ShardID) time.Duration { return 100 * time.Millisecond }
	f.set(gossip.Leaving, nodes[1])
	f.run(50 * time.Millisecond)
	began := f.now
	e = ask(f, nodes[1], 1)
	require.Equal(t, control.PhaseStopping, e.Phase)
	require.Equal(t, nodes[0].id, e.Target)
	require.Equal(t, nodes[1].id.String()+" is leaving; least-shard: its share is 6 of 6 shards on 1 regions", e.Reason)
	require.InDelta(t, (began + 2950*time.Millisecond).Milliseconds(), e.Deadline.UnixMilli(), 2)
	f.run(time.Second)
	e = ask(f, nodes[0], 1)
	require.Equal(t, nodes[0].id, e.Home)
	require.Zero(t, e.Target)
	require.Len(t, e.Moves, 1)
	m := e.Moves[0]
	require.Equal(t, []any{nodes[1].id, nodes[0].id, control.OutcomeMoved}, []any{m.From, m.To, m.Outcome})
	require.Equal(t, []string{"moved", "called off", "lost", "none"}, []string{
		m.Outcome.String(), control.OutcomeCalledOff.String(), control.OutcomeLost.String(), control.Outcome(0).String(),
	})
	require.Equal(t, "the kind has 6 shards", ask(f, nodes[0], 77).Detail)
}

// An explanation without a home says why: the coordinator waits for regions, it does not
// answer, it does not know the kind, or there is none.
func TestExplainWhatIsAwaited(t *testing.T) {
	f := newFleet(t)
	n := f.start(1, six())
	require.Contains(t, ask(f, n, 0).Detail, "waits for other regions until 1970-01-01T00:00:03Z")
	f.run(5 * time.Second)
	n.step(control.Explain{Kind: "other", ID: 7})
	all := published[control.ShardExplanation](n)
	require.Equal(t, "this node knows nothing of the kind yet", all[len(all)-1].Detail)

	f = newFleet(t)
	silent := f.puppet(1)
	n = f.start(2, six())
	n.step(control.Explain{Kind: "k", ID: 1})
	f.run(time.Second)
	question := last[control.ExplainShard](t, silent)
	require.Equal(t, control.ExplainShard{Kind: "k", ID: 1}, question)
	require.Empty(t, published[control.ShardExplanation](n))
	f.run(2 * time.Second)
	require.Equal(t, "the coordinator should be at n1:1#1, which did not answer within 2s", published[control.ShardExplanation](n)[0].Detail)
	silent.say(n, control.ShardExplanation{Kind: "k", ID: 1})
	require.Len(t, published[control.ShardExplanation](n), 1, "too late")
	for i := range 70 {
		n.step(control.Explain{Kind: "k", ID: uint64(10 + i)})
	}
	require.Len(t, published[control.ShardExplanation](n), 1+70-64, "bounded")
	require.Equal(t, "too many explanations are under way", published[control.ShardExplanation](n)[1].Detail)

	f.set(gossip.Down, silent)
	f.remove(silent)
	require.Contains(t, ask(f, n, 0).Detail, "n2:1#2 does not coordinate the kind; it is younger")
	other := f.start(3, six())
	require.Contains(t, ask(f, other, 0).Detail, "n2:1#2 does not coordinate the kind")
	f.set(gossip.Leaving, n)
	f.set(gossip.Leaving, other)
	require.Contains(t, ask(f, other, 0).Detail, "no coordinator is known")
	require.Contains(t, fmt.Sprint(control.PhaseOpen, control.PhaseReleasing, control.Phase(9)), "open releasing none")
}

// A new coordinator explains which homes it took over from reports.
func TestExplainReportedShards(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	f.crash(nodes[0])
	f.run(300 * time.Millisecond)
	kept := nodes[2].hosts()[0]
	require.Equal(t, "reported by its host to a new coordinator", ask(f, nodes[2], kept).Decision)
}

// An order to stop that comes after it was taken back, as one that a bad link has held up or doubled, stops the shard.
// Nobody has asked for that any more, so the region says it until it is heard: else the shard lived nowhere until the
// coordinator ends.
func TestALateStopWhoseAnswerIsLost(t *testing.T) {
	f := newFleet(t)
	kind := six()
	kind.Timings.Handoff = time.Second
	nodes := f.cluster(2, kind)
	stays := true
	f.stops = func(protocol.ShardID) time.Duration {
		if stays {
			return -1
		}
		return 5 * time.Millisecond
	}
	s := nodes[1].hosts()[0]
	var late control.Stop
	f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
		if stop, is := m.(control.Stop); is {
			late = stop
		}
		return false
	}
	nodes[0].step(control.Move{Kind: "k", Shard: s, To: nodes[0].id, ID: 1})
	f.run(3 * time.Second)
	require.Contains(t, nodes[1].hosting, s, "the move was called off")
	require.Equal(t, s, late.Shards[0].Shard)

	stays = false
	f.dropNext(2)
	nodes[1].step(machine.Received{From: nodes[0].id, Message: late})
	f.run(100 * time.Millisecond)
	require.NotContains(t, nodes[1].hosting, s)
	f.run(10 * time.Second)
	require.True(t, nodes[0].hosting[s].Epoch != protocol.Epoch{} || nodes[1].hosting[s].Epoch != protocol.Epoch{}, "the shard has a home again")
}
