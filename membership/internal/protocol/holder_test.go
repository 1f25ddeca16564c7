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
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// holding is a strategy that keeps others out for 40 s after it kept a side.
func holding() func(*protocol.Config, *protocol.Dependencies) {
	return func(_ *protocol.Config, d *protocol.Dependencies) {
		d.Downing.Decide, d.Downing.Class, d.Downing.Keeps, d.Downing.Load = nil, downing.Class{}, 40*time.Second, 7
	}
}

// A strategy that keeps others out for a while is told when its decision needs that no longer:
// when those it has downed are removed, and not before.
func TestAStrategyIsToldThatItsDecisionIsSettled(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4, holding())
	answers(l, 10*time.Millisecond, map[gossip.Address]func(downing.View) any{
		address(1): func(v downing.View) any { return keepLost(v) },
	})
	nodes[3].dead = true
	deaf := true
	l.drop = func(_, to gossip.NodeID, message any) bool { // The third node hears no gossip of the decision.
		_, gossips := message.(protocol.GossipState)
		_, differs := message.(protocol.GossipDelta)
		return deaf && to == nodes[2].id && (gossips || differs) && nodes[0].machine.State().Member(nodes[3].id).Status == gossip.Down
	}
	l.until(20*time.Second, func() bool { return nodes[0].machine.State().Member(nodes[3].id).Status == gossip.Down })
	l.run(2 * time.Second)
	require.Empty(t, published[protocol.Settled](nodes[0]))
	deaf = false
	l.until(20*time.Second, func() bool { return len(published[protocol.Settled](nodes[0])) == 1 })
	require.Nil(t, nodes[0].machine.State().Member(nodes[3].id))
	require.Empty(t, published[protocol.Settled](nodes[1]), "it was not asked")
	l.run(30 * time.Second)
	require.Equal(t, []protocol.Settled{{Load: 7}}, published[protocol.Settled](nodes[0]))
}

// A side that lost the others too long ago is not kept, be it that the strategy says so now: it
// may have kept another side and let it go since. The side waits, and goes.
func TestASideIsNotKeptByOldNews(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		kept  bool
	}{{20 * time.Second, true}, {32 * time.Second, false}} {
		l := newLoop(t)
		nodes := l.cluster(4, holding())
		from := l.now + c.after
		l.calls = func(n *node, call machine.Call) {
			view := viewOf(call)
			l.after(10*time.Millisecond, func() {
				called := machine.Called{ID: call.ID, Err: errors.New("the store is away")}
				if l.now >= from {
					called = machine.Called{ID: call.ID, Result: keepLost(view)}
				}
				n.step(called)
			})
		}
		nodes[3].dead = true
		l.run(60 * time.Second)
		require.Equal(t, c.kept, nodes[0].stopping == nil)
		if !c.kept {
			require.Contains(t, nodes[0].verdicts()[nodes[0].id.String()+" unanswered"],
				"and within 30s it could have kept another side and let it go")
		}
	}
}
