// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// keepOnly answers calls like a witness that can be reached only by the nodes for which
// keep is true: it keeps their side; the others get no answer.
func keepOnly(keep func(gossip.Address) bool) func(*node, machine.Call) {
	return func(n *node, c machine.Call) {
		view := viewOf(c)
		n.loop.after(50*time.Millisecond, func() {
			if !keep(view.Self.Address) {
				n.step(machine.Called{ID: c.ID, Err: errors.New("the witness is away")})
				return
			}
			decision := downing.Decision{Verdict: downing.KeepSide, Reason: "the witness keeps it"}
			for _, m := range view.Side().Lost() {
				decision.Down = append(decision.Down, m.Node)
			}
			n.step(machine.Called{ID: c.ID, Result: decision})
		})
	}
}

func viewOf(c machine.Call) downing.View { return c.Request.(protocol.DowningRequest).View }

// A strategy may let a side without a majority survive. The majority, which gets no
// answer, has stopped hosting before the others have the word that they may take
// over; they then host. Of the splits of larger clusters only some are run.
func TestMajorityThatLosesStopsHostingBeforeTheMinorityTakesOver(t *testing.T) {
	for size := 3; size <= 5; size++ {
		for split := 1; split < 1<<size-1; split += 1 << (size - 3) {
			l := newLoop(t)
			var nodes []*node
			kept := func(a gossip.Address) bool {
				for i, n := range nodes {
					if n.id.Address == a {
						return split&(1<<i) != 0
					}
				}
				return false
			}
			l.calls = keepOnly(kept)
			nodes = l.cluster(size, calledStrategy(downing.Class{Pure: true}))
			l.run(time.Duration(split) * 137 * time.Millisecond)
			l.cut = func(from, to gossip.Address) bool { return kept(from) != kept(to) }
			checkTakeOver(l, nodes)
			l.run(25 * time.Second)
			for _, n := range nodes {
				require.Equal(t, kept(n.id.Address), n.hosts(), "split %b of %d: %v", split, size, n.id)
			}
			l.run(30 * time.Second)
			for _, n := range nodes {
				require.Equal(t, !kept(n.id.Address), n.stopping != nil, "split %b of %d: %v", split, size, n.id)
			}
		}
	}
}

// The same where the majority goes on hearing answers to its own heartbeats, up to
// the moment in which the others accuse it: their own are lost, and all other news.
func TestMajorityThatIsAccusedUnheardStopsHostingInTime(t *testing.T) {
	for size := 3; size <= 5; size++ {
		l := newLoop(t)
		kept := func(a gossip.Address) bool { return a == address(1) || a == address(2) && size > 3 }
		l.calls = keepOnly(kept)
		nodes := l.cluster(size, calledStrategy(downing.Class{Pure: true}))
		l.drop = func(from, to gossip.NodeID, message any) bool {
			_, asks := message.(protocol.Heartbeat)
			_, answers := message.(protocol.HeartbeatReply)
			return kept(from.Address) && !kept(to.Address) && !answers || !kept(from.Address) && kept(to.Address) && !asks
		}
		checkTakeOver(l, nodes)
		l.run(25 * time.Second)
		for _, n := range nodes {
			require.Equal(t, kept(n.id.Address), n.hosts(), "%v of %d", n.id, size)
		}
	}
}

// In an ordinary failover the survivors come to their decision before the margin
// has passed, and never stop hosting.
func TestSurvivorsOfACrashHostThroughoutWithAnyStrategy(t *testing.T) {
	for size := 3; size <= 5; size++ {
		l := newLoop(t)
		l.calls = keepOnly(func(gossip.Address) bool { return true })
		nodes := l.cluster(size, calledStrategy(downing.Class{Pure: true}))
		nodes[size-1].dead = true
		for range 2500 {
			l.run(10 * time.Millisecond)
			for _, n := range nodes[:size-1] {
				require.True(t, n.hosts(), "%v at %v", n.id, l.now)
			}
		}
		for _, n := range nodes[:size-1] {
			require.True(t, n.sees(size-1, gossip.Up))
		}
	}
}

// A side is cut off, and the strategy has kept the others, which go on and let a newcomer
// in. Then all nodes that were on the other side before are started again and reach only
// the side that was not kept. That side neither lets them in nor takes their predecessors
// for dead: otherwise it would take itself for the whole cluster, while the newcomer goes
// on by the decision of the strategy.
func TestASideWithoutTheWordOfItsStrategyTakesNobodyIn(t *testing.T) {
	for _, c := range []struct{ size, lost int }{{2, 1}, {3, 1}, {3, 2}, {4, 2}, {5, 1}, {5, 3}, {5, 4}} {
		t.Run(fmt.Sprintf("%d of %d", c.lost, c.size), func(t *testing.T) {
			l := newLoop(t)
			lost := func(a gossip.Address) bool { return slices.Contains(addresses(1, c.lost), a) }
			l.calls = keepOnly(func(a gossip.Address) bool { return !lost(a) })
			asked := calledStrategy(downing.Class{Pure: true})
			nodes := l.cluster(c.size, asked)
			l.cut = func(from, to gossip.Address) bool { return lost(from) != lost(to) }
			l.run(16 * time.Second)

			newcomer := l.start(c.size+1, 100, asked)
			newcomer.step(protocol.Join{Seeds: addresses(c.lost+1, c.size)})
			l.until(10*time.Second, newcomer.hosts)
			l.cut = func(from, to gossip.Address) bool {
				return (from == newcomer.id.Address) != (to == newcomer.id.Address)
			}
			for i := c.lost + 1; i <= c.size; i++ {
				nodes[i-1].dead = true
				nodes[i-1] = l.start(i, gossip.UID(200+i), asked)
				nodes[i-1].step(protocol.Join{Seeds: addresses(1, c.lost)})
			}
			for range 6000 {
				l.run(10 * time.Millisecond)
				require.False(t, newcomer.hosts() && len(hosting(nodes)) > 0, "two sides host at %v\n%s", l.now, l)
			}
			require.True(t, newcomer.hosts(), "it has the word of the strategy")
			for i, n := range nodes {
				require.Equal(t, i < c.lost, n.stopping != nil, "who had no word for long ends, and whoever waits for a cluster waits: %v", n.id)
			}
		})
	}
}

func addresses(from, to int) []gossip.Address {
	var all []gossip.Address
	for i := from; i <= to; i++ {
		all = append(all, address(i))
	}
	return all
}

// Three of five nodes and one that joins stand still, while the strategy keeps the two
// others. The leader of the three comes back with a state that all had seen, hears more
// than half of the voters, and has marked none unreachable yet; all the same it does
// nothing before it has heard every node.
func TestALeaderThatStoodStillWaitsForTheWordOfAll(t *testing.T) {
	l := newLoop(t)
	kept := func(a gossip.Address) bool { return slices.Contains(addresses(4, 5), a) }
	l.calls = keepOnly(kept)
	asked := calledStrategy(downing.Class{Pure: true})
	nodes := l.cluster(5, asked)
	leader := nodes[0]
	l.drop = func(from, to gossip.NodeID, message any) bool {
		_, answers := message.(protocol.HeartbeatReply)
		return from.Address == address(6) && to == leader.id && (answers || isGossip(message))
	}
	joiner := l.join(6, asked)
	l.until(5*time.Second, func() bool { return statusAt(nodes[4], joiner) == gossip.Joining })
	l.run(2 * time.Second)
	require.Equal(t, gossip.Joining, statusAt(leader, joiner))
	still := []*node{leader, nodes[1], nodes[2], joiner}
	for _, n := range still {
		n.freeze()
	}
	l.cut = func(from, to gossip.Address) bool { return kept(from) != kept(to) }
	l.run(20 * time.Second)
	require.True(t, nodes[3].hosts() && nodes[4].sees(2, gossip.Up), l.describe())
	l.drop = nil
	for _, n := range still {
		n.thaw()
	}
	l.run(30 * time.Second)
	require.Less(t, statusAt(leader, joiner), gossip.Up)
}
