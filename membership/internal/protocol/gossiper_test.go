// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Two nodes know what the other does not, and all differences are lost on the way: what
// they ask each other then is a repair and no conversation, however short the way is.
// When differences arrive again the repair is done by the next round.
func TestStatusesDoNotAnswerEachOtherWithoutEnd(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	l.drop = func(_, _ gossip.NodeID, message any) bool {
		switch message.(type) {
		case protocol.GossipDelta, protocol.GossipState:
			return true
		}
		return false
	}
	for i, n := range nodes {
		n.step(component.Services{Service: machine.Service(100 + i)})
	}
	l.latency = 100 * time.Microsecond
	l.run(time.Second)
	clear(l.sent)
	l.run(10 * time.Second)
	rounds, pairs := 3*int(10*time.Second/l.cfg.GossipIntervalUnconverged), 6
	require.LessOrEqual(t, l.sent["GossipStatus"], rounds+pairs*int(10*time.Second/l.cfg.PushInterval), "%v", l.sent)
	l.drop = nil
	l.run(time.Second)
	for _, n := range nodes {
		require.True(t, n.machine.Snapshot().Converged, l.describe())
	}
}
