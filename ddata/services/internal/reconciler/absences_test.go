// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

func nodeOf(uid uint64) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: gossip.UID(uid)}
}

// A node is gone only if it was no member twice.
func TestNodesAreGoneOnTheSecondLook(t *testing.T) {
	var a AbsenceTracker
	require.False(t, a.Gone(nodeOf(1), false))
	require.False(t, a.Gone(nodeOf(1), false), "in one round")
	require.False(t, a.Gone(nodeOf(2), true))
	require.True(t, a.Round())
	require.True(t, a.Gone(nodeOf(1), false))
	require.False(t, a.Gone(nodeOf(2), false))
	require.True(t, a.Round())
	require.False(t, a.Gone(nodeOf(2), true))
	require.False(t, a.Round())
	require.False(t, a.Gone(nodeOf(1), false), "it was seen meanwhile")
}
