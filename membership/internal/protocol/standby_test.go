// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// many returns a quiet cluster in which proofs are lent, and its relays in order.
func (l *loop) many(size int) (nodes, relays []*node) {
	l.t.Helper()
	nodes = l.together(size)
	l.until(20*time.Second, func() bool { return l.allUp(size) })
	l.run(5 * time.Second)
	for _, m := range nodes[0].machine.Relays() {
		relays = append(relays, l.nodes[m.Node.Address])
	}
	require.Len(l.t, relays, 5)
	return nodes, relays
}

// suspended runs for a time and returns which of the living nodes did not host all along.
func (l *loop) suspended(d time.Duration) []gossip.NodeID {
	var gone []gossip.NodeID
	for end := l.now + d; l.next(end); {
		for _, n := range l.nodes {
			if !n.dead && !n.hosts() && !slices.Contains(gone, n.id) {
				gone = append(gone, n.id)
			}
		}
	}
	return gone
}

// asks counts who sends questions of relays in some seconds.
func (l *loop) asks(seconds int) map[gossip.NodeID]int {
	asked := map[gossip.NodeID]int{}
	before := l.drop
	l.drop = func(from, to gossip.NodeID, message any) bool {
		if before != nil && before(from, to, message) {
			return true
		}
		if _, ok := message.(protocol.AskStanding); ok {
			asked[from]++
		}
		return false
	}
	l.run(time.Duration(seconds) * time.Second)
	l.drop = before
	return asked
}

// The relays at work die at once, and those that stood by ask before anybody's proof is a
// fence old, long before anybody is accused. covers I27.
func TestRelaysThatStandByTakeOverBeforeStandingIsLost(t *testing.T) {
	for moment := range 8 {
		l := newLoop(t)
		_, relays := l.many(20)
		l.run(time.Duration(moment) * 125 * time.Millisecond)
		require.Len(t, l.asks(4), 2)
		l.drop = func(_, _ gossip.NodeID, message any) bool { // They need not be called.
			given, ok := message.(protocol.GiveStanding)
			return ok && given.Sequence == 0
		}
		relays[0].dead, relays[1].dead = true, true
		require.Empty(t, l.suspended(2900*time.Millisecond), "moment %d", moment)
		require.NotContains(t, l.asks(1), relays[0].id)
	}
}

// A member whose links to the relays at work are broken calls the others, and keeps its
// standing for as long as that lasts. They go on for some time when it is over, and stand
// by again. covers I27.
func TestAMemberWithoutTheFirstRelaysCallsOthers(t *testing.T) {
	l := newLoop(t)
	nodes, relays := l.many(20)
	lonely := nodes[slices.IndexFunc(nodes, func(n *node) bool { return !slices.Contains(relays, n) })]
	apart := func(a, b gossip.NodeID) bool {
		return a == lonely.id && slices.Contains([]gossip.NodeID{relays[0].id, relays[1].id}, b)
	}
	l.drop = func(from, to gossip.NodeID, message any) bool {
		switch message.(type) {
		case protocol.AskStanding, protocol.GiveStanding, protocol.LendStanding:
			return apart(from, to) || apart(to, from)
		}
		return false
	}
	require.Empty(t, l.suspended(70*time.Second))
	require.Len(t, l.asks(4), 5, "those that it called")
	l.drop = nil
	require.Empty(t, l.suspended(40*time.Second))
	require.Len(t, l.asks(4), 2)
}

// While one of the relays at work does not reach a member, another one does in its place,
// and the member calls seldom. covers I28.
func TestAMemberThatHasEnoughRelaysCallsSeldom(t *testing.T) {
	l := newLoop(t)
	nodes, relays := l.many(20)
	lonely := nodes[slices.IndexFunc(nodes, func(n *node) bool { return !slices.Contains(relays, n) })]
	calls := 0
	l.drop = func(from, to gossip.NodeID, message any) bool {
		given, ok := message.(protocol.GiveStanding)
		if ok && given.Sequence == 0 {
			require.Equal(t, lonely.id, from)
			calls++
		}
		_, ask := message.(protocol.AskStanding)
		return ask && from == relays[0].id && to == lonely.id
	}
	require.Empty(t, l.suspended(60*time.Second))
	require.Positive(t, calls)
	require.LessOrEqual(t, calls, 3*6, "each ten seconds, to the three that stand by")
}
