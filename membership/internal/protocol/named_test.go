// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// restarted is a cluster of four of which the third has crashed, and was started again at its
// address.
func restarted(t *testing.T) (l *loop, nodes []*node, was gossip.NodeID) {
	t.Helper()
	l = newLoop(t)
	nodes = l.cluster(4)
	was = nodes[2].id
	nodes[2].dead = true
	nodes[2] = l.start(3, 33)
	nodes[2].step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	l.until(30*time.Second, func() bool { return l.allUp(4) })
	return l, nodes, was
}

// Who was looked up before a restart is not who lives at the address after it: commands that
// name the one change nothing of the other, and their answer says who lives there.
//
// covers F7, F28, F29.
func TestACommandThatNamesANodeMeetsNoOther(t *testing.T) {
	l, nodes, was := restarted(t)
	before := nodes[0].machine.State()
	nodes[0].step(protocol.Down{Address: was.Address, UID: was.UID, ID: 1})
	nodes[0].step(protocol.Leave{Address: was.Address, UID: was.UID, ID: 2})
	nodes[0].step(protocol.Down{Address: address(2), UID: 22})
	nodes[0].step(protocol.Down{Address: address(9), ID: 3})
	require.Equal(t, uint64(4), nodes[0].machine.Refusals(protocol.RefusedUnknown))
	require.Equal(t, before, nodes[0].machine.State())
	answers := published[protocol.CommandAnswered](nodes[0])
	require.Len(t, answers, 3, "who asked for no answer gets none")
	for i, a := range answers {
		require.Equal(t, uint64(i+1), a.ID)
	}
	for _, a := range answers[:2] {
		require.Equal(t, was, a.Absent.Named)
		require.Equal(t, nodes[2].id, a.Absent.Now)
		require.Equal(t, was, a.Absent.Removed.Node)
		require.NotZero(t, a.Absent.Removed.RemovedAt)
	}
	require.Equal(t, &protocol.Absent{Named: gossip.NodeID{Address: address(9)}}, answers[2].Absent)
	l.run(10 * time.Second)
	require.True(t, l.allUp(4))
	require.Nil(t, nodes[2].stopping)
}

// An address alone means who lives there, an id the one that it names.
//
// covers F28, F29.
func TestACommandMeetsWhoItNames(t *testing.T) {
	l, nodes, _ := restarted(t)
	nodes[0].step(protocol.Leave{Address: address(4), UID: 4, ID: 7})
	nodes[0].step(protocol.Leave{Address: address(4), UID: 4, ID: 8})
	nodes[1].step(protocol.Down{Address: address(3), ID: 9})
	require.Equal(t, []protocol.CommandAnswered{{ID: 7}, {ID: 8}}, published[protocol.CommandAnswered](nodes[0]), "that it leaves already is no error")
	require.Equal(t, []protocol.CommandAnswered{{ID: 9}}, published[protocol.CommandAnswered](nodes[1]))
	l.until(30*time.Second, func() bool {
		return nodes[2].stopping != nil && nodes[3].stopping != nil && len(nodes[0].machine.State().Members()) == 2
	})
	nodes[0].step(protocol.Down{Address: address(4), UID: 4, ID: 10})
	answers := published[protocol.CommandAnswered](nodes[0])
	last := answers[len(answers)-1]
	require.Equal(t, nodes[3].id, last.Absent.Removed.Node)
	require.True(t, last.Absent.Removed.Downed.IsZero(), "it had left")
}

// A node that is no member yet ends by the command to leave that names it, and by no other.
func TestANodeThatIsNoMemberYetObeysItsOwnNameAlone(t *testing.T) {
	l := newLoop(t)
	n := l.start(1, 11)
	n.step(protocol.Join{Seeds: []gossip.Address{address(8)}})
	n.step(protocol.Leave{Address: address(1), UID: 12, ID: 1})
	n.step(protocol.Down{Address: address(1), UID: 11, ID: 2})
	require.Nil(t, n.stopping)
	n.step(protocol.Leave{Address: address(1), UID: 11, ID: 3})
	require.NotNil(t, n.stopping)
	answers := published[protocol.CommandAnswered](n)
	require.Len(t, answers, 3)
	require.NotNil(t, answers[0].Absent)
	require.NotNil(t, answers[1].Absent)
	require.Nil(t, answers[2].Absent)
}
