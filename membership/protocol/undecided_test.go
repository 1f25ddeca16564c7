// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
	"github.com/quorate/quorate/membership/protocol"
)

// keepOnly answers calls like a witness that only the nodes for which keep is
// true can reach: it keeps their side; the others get no answer.
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
