// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// Among so many voters that proofs are lent no node of a build that lends none is let in,
// and it hears why; among few it is, and then nobody else beyond their number while it is there. covers I33.
func TestBuildsThatLendNothingStayAmongFew(t *testing.T) {
	builds := func(old int) *loop {
		l := newLoop(t)
		l.cfg.FailureDetector.MonitoredByNrOfMembers = 3
		l.speaks = func(i int) uint16 {
			if i == old {
				return 1
			}
			return 2
		}
		l.cluster(4)
		return l
	}
	l := builds(5)
	refused := l.join(5)
	l.until(10*time.Second, func() bool { return refused.stopping != nil })
	require.Equal(t, component.StopRefused, refused.stopping.Reason)
	require.Contains(t, refused.stopping.Detail, "a build without proofs that are lent")
	require.True(t, l.allUp(4))

	l = builds(4)
	waits := l.join(5)
	l.run(20 * time.Second)
	require.Nil(t, waits.stopping)
	require.Nil(t, waits.machine.State().Member(waits.id))
	require.Contains(t, published[protocol.Refused](waits)[0].Reason, address(4).String())
	l.nodes[address(4)].step(protocol.Leave{Address: address(4)})
	l.until(20*time.Second, func() bool {
		m := waits.machine.State().Member(waits.id)
		return m != nil && m.Status == gossip.Up
	})
}
