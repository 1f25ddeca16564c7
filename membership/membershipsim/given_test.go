// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/membership/membershipsim"
	"github.com/quorate/quorate/simulation"
)

// isGossip reports whether a message carries news: heartbeats do not.
func isGossip(message any) bool {
	switch message.(type) {
	case protocol.GossipStatus, protocol.GossipDelta, protocol.GossipState:
		return true
	}
	return false
}

func requireUntil(t *testing.T, w *simulation.World, done func() bool) {
	t.Helper()
	_, err := w.RunUntil(time.Minute, done)
	require.NoError(t, err)
}

// A leader makes a joiner up and dies before anybody else hears of it. The
// joiner's heartbeats pass, its gossip does not, for as long as it takes the others
// to remove the leader and to make another node up. What the first leader gave is
// outbid: each up-number has one member, in all states, and no generation of the
// voters comes twice.
// covers F15, I29.
func TestWhatADeadLeaderGaveIsOutbid(t *testing.T) {
	for seed := range uint64(5) {
		p := formed(t, seed+1, 4, membershipsim.Config{})
		w := p.world
		leader, second, joiner, other := address(0), address(1), address(5), address(4)
		up := func(at, of gossip.Address) bool {
			n := w.Node(at)
			if n == nil {
				return false
			}
			m := membershipsim.MachineOf(n).State().ByAddress(of)
			return m != nil && m.Status == gossip.Up
		}
		heard := w.Network().Lose("gossip of a joiner and its leader once it is up", func(from, to gossip.Address, message any) bool {
			return isGossip(message) && (from == leader && to != joiner && up(leader, joiner) ||
				(from == joiner || to == joiner && from != leader) && up(joiner, joiner))
		})
		p.start(5)
		requireUntil(t, w, func() bool { return up(joiner, joiner) })
		require.False(t, up(second, joiner), "nobody else has heard of it")
		w.Crash(leader)
		require.NoError(t, w.Run(5*time.Second)) // A node that joins earlier ends, as one does not hear of it for too long.
		p.start(4)
		requireUntil(t, w, func() bool { return up(second, other) })
		require.NotNil(t, w.Node(joiner), "it is not cut off")
		heard()
		requireSettled(t, w, time.Minute)
		require.Len(t, membershipsim.MachineOf(w.Node(second)).State().Members(), 5)
	}
}
