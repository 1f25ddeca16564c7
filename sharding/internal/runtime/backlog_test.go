// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// The backlog keeps frames up to a bound for each node, and hands them out once.
func TestTheBacklogIsBounded(t *testing.T) {
	var b backlog
	one := gossip.NodeID{UID: 1}
	half := []byte(strings.Repeat("x", backlogBytesMax/2))
	require.Zero(t, b.add(one, half, half))
	require.Equal(t, 2, b.add(one, []byte("y"), []byte("z")))
	require.Zero(t, b.add(gossip.NodeID{UID: 2}, half))
	require.Len(t, b.take(one), 2)
	require.Empty(t, b.take(one))
	require.Len(t, b.take(gossip.NodeID{UID: 2}), 1)
	require.Empty(t, b.nodes)
}
