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

// A component that is attached late is told the state, the standing, and which removed
// nodes can be hosting nothing any more; not those whose fence is still to come.
func TestAttachedComponentHearsWhatItMissed(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(3)
	n := nodes[0]
	told := func() (fenced []gossip.NodeID, standing bool) {
		n.events, n.times = nil, nil
		n.step(machine.Attached{Name: "late", Service: 9})
		require.IsType(t, component.Changed{}, n.events[0])
		for _, e := range n.events[1:] {
			switch e := e.(type) {
			case component.Fenced:
				fenced = append(fenced, e.Node)
			case component.Standing:
				standing = true
			}
		}
		return fenced, standing
	}
	fenced, standing := told()
	require.True(t, standing)
	require.Empty(t, fenced)

	n.step(protocol.Down{Address: nodes[2].id.Address})
	l.run(500 * time.Millisecond)
	_, removed := n.machine.Snapshot().State.Removed(nodes[2].id)
	require.True(t, removed)
	fenced, _ = told()
	require.Empty(t, fenced, "it may still have standing")
	l.run(5 * time.Second)
	fenced, _ = told()
	require.Equal(t, []gossip.NodeID{nodes[2].id}, fenced)
}
