// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// A member that was declared down lives, and has not heard it. Nothing that it says is taken: the state
// stays as it is, and all that it is answered is that it is down.
//
// covers F25, I7.
func TestWhatADownedMemberSaysIsNotTaken(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(4)
	to, deaf, downed := nodes[0], nodes[2], nodes[3]
	l.drop = func(from, to gossip.NodeID, message any) bool { // It is not removed, since not all have heard that it is down.
		return isGossip(message) && (from == downed.id || to == downed.id || to == deaf.id)
	}
	downed.step(protocol.Leave{Address: nodes[1].id.Address})
	to.step(protocol.Down{Address: downed.id.Address})
	said := downed.machine.State()
	require.Equal(t, gossip.Leaving, said.Member(nodes[1].id).Status)
	asks := []any{
		protocol.GossipState{State: said},
		protocol.GossipDelta{Delta: said.Delta(to.machine.State().Clock()), Digest: said.Digest()},
		protocol.GossipStatus{Digest: said.Digest()},
		protocol.Heartbeat{Sequence: 1000, Fingerprint: said.Fingerprint(), Shared: true},
		protocol.AskStanding{Sequence: 1000},
		protocol.Reached{Nodes: []gossip.UID{9}},
		protocol.AskDowning{Question: 1},
	}
	for i, message := range append(asks,
		protocol.HeartbeatReply{Sequence: 1, Known: true, Standing: true},
		protocol.GiveStanding{Sequence: 1, Known: true, Standing: true},
		protocol.LendStanding{Question: 1, Standing: true},
		protocol.DowningAnswer{Question: 1},
	) {
		t.Run(fmt.Sprintf("%T", message), func(t *testing.T) {
			before, standing := to.machine.State(), to.until
			var answers []any
			l.drop = func(from, of gossip.NodeID, message any) bool {
				if from == to.id && of == downed.id {
					answers = append(answers, message)
				}
				return true
			}
			to.step(machine.Received{From: downed.id, Message: message})
			require.Same(t, before, to.machine.State())
			require.Equal(t, standing, to.until)
			if i >= len(asks) {
				require.Empty(t, answers)
				return
			}
			require.Len(t, answers, 1)
			require.IsType(t, protocol.NotMember{}, answers[0])
			require.Equal(t, gossip.Down, answers[0].(protocol.NotMember).Status)
		})
	}
	l.run(time.Second)
	require.Equal(t, gossip.Up, statusAt(to, nodes[1]))
}
