// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Where a minority may be kept, a member that lives and is downed by command ends by its own
// word as soon as it hears of the command, and no strategy is asked, although it is the
// oldest.
//
// covers F29.
func TestAMemberThatHearsOfACommandEndsByItsOwnWord(t *testing.T) {
	l := newLoop(t)
	l.calls = func(n *node, _ machine.Call) { t.Errorf("%v asks the strategy", n.id) }
	nodes := l.cluster(4, calledStrategy(downing.Class{Pure: true}))
	var told []gossip.Cause
	l.drop = func(from, _ gossip.NodeID, _ any) bool {
		if m := nodes[2].machine.State().Member(nodes[0].id); from == nodes[0].id && m != nil && m.Status == gossip.Down {
			told = append(told, m.Downed)
		}
		return false
	}
	nodes[1].step(protocol.Down{Address: address(1)})
	l.run(time.Second)
	require.NotNil(t, nodes[0].stopping)
	require.Equal(t, "by itself: command: Down was called on "+nodes[1].id.String(), nodes[0].stopping.Detail)
	l.run(time.Second)
	require.True(t, nodes[3].sees(3, gossip.Up))
	tomb, _ := nodes[3].machine.State().Removed(nodes[0].id)
	require.Equal(t, gossip.Cause{By: nodes[0].id, Why: "command: Down was called on " + nodes[1].id.String()}, tomb.Downed)
	l.run(20 * time.Second)
	require.Len(t, hosting(nodes), 3)
}

// One that does not hear of it is up until the strategy has been asked, which is told of the
// command. Without an answer the side hosts only as long as with any lost member.
//
// covers F14, F29, I1, I2.
func TestACommandThatIsNotHeardNeedsTheStrategy(t *testing.T) {
	for _, kept := range []bool{true, false} {
		l := newLoop(t)
		asked := 0
		nodes := l.cluster(3, calledStrategy(downing.Class{Pure: true}))
		answer := keepOnly(func(a gossip.Address) bool { return kept == (a != address(3)) })
		l.calls = func(n *node, c machine.Call) {
			if view := viewOf(c); n != nodes[2] {
				require.Len(t, view.Commanded(), 1)
				require.Equal(t, nodes[2].id, view.Commanded()[0].Node)
				asked++
			}
			answer(n, c)
		}
		third := func(a gossip.Address) bool { return a == address(3) }
		l.cut = func(from, to gossip.Address) bool { return third(from) != third(to) }
		l.run(time.Second)
		nodes[1].step(protocol.Down{Address: address(3)})
		for range 2500 {
			l.run(10 * time.Millisecond)
			require.False(t, nodes[2].hosts() && nodes[0].sees(2, gossip.Up) && nodes[0].hosts(), "two sides at %v", l.now)
		}
		require.Positive(t, asked)
		require.Equal(t, kept, nodes[0].hosts() && nodes[1].hosts())
		require.Equal(t, !kept, nodes[2].hosts())
	}
}

// A command is refused where it has been given, and on a member by whose records nobody goes.
func TestACommandThatChangesNothingIsRefused(t *testing.T) {
	l := newLoop(t)
	l.calls = keepOnly(func(gossip.Address) bool { return true })
	nodes := l.cluster(4, calledStrategy(downing.Class{Pure: true}))
	nodes[3].dead = true
	for range 2 {
		nodes[0].step(protocol.Down{Address: address(4)})
	}
	require.Equal(t, uint64(1), nodes[0].machine.Refusals(protocol.RefusedUnknown))
	l.until(20*time.Second, func() bool { return nodes[0].sees(3, gossip.Up) })

	nodes[2].step(protocol.Leave{Address: address(3)})
	l.until(10*time.Second, func() bool { return statusAt(nodes[2], nodes[2]) == gossip.Exiting })
	nodes[2].step(protocol.Down{Address: address(2)})
	require.Equal(t, uint64(1), nodes[2].machine.Refusals(protocol.RefusedNotReady))
	l.run(10 * time.Second)
	require.Nil(t, nodes[1].stopping)
}
