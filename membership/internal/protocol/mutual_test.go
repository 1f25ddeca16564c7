// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/membership/internal/protocol"
)

// beats counts the heartbeats that are sent in ten seconds.
func (l *loop) beats() int {
	l.run(3 * time.Second)
	clear(l.sent)
	l.run(10 * time.Second)
	return l.sent["Heartbeat"]
}

// On a ring of nodes that all know of such rings, eight of the nine that a node monitors
// monitor it, so that four begin, and one exchange serves both. covers I28.
func TestNodesOnARingMonitorEachOther(t *testing.T) {
	l := newLoop(t)
	l.many(20)
	require.Equal(t, 20*(4+1)*10, l.beats())
}

// While one member is of a version before, all use the ring that it knows, and accuse nobody
// when that changes, with its coming and with its going. covers I33.
func TestTheRingIsOneThatAllMembersKnow(t *testing.T) {
	const older = 16
	l := newLoop(t)
	l.speaks = func(i int) uint16 {
		if i == older {
			return 3
		}
		return 4
	}
	l.many(15)
	mutual := l.beats()
	require.Equal(t, 15*(4+1)*10, mutual)
	l.join(older)
	l.until(20*time.Second, func() bool { return l.allUp(16) })
	require.Greater(t, l.beats(), 16*6*10, "few monitor each other")
	l.nodes[address(older)].step(protocol.Leave{Address: address(older)})
	l.until(30*time.Second, func() bool { return l.nodes[address(older)].stopping != nil && l.allUp(15) })
	delete(l.nodes, address(older))
	require.Equal(t, mutual, l.beats())
	for _, n := range l.nodes {
		require.Empty(t, n.machine.State().Unreachable())
		for _, d := range n.decisions {
			require.NotEqual(t, "unreachable", d.Verdict, "%v of %v", n.id, d.Subject)
		}
	}
}
