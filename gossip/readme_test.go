// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// The claim in the README's example, checked here because the example is a
// program of its own.
func TestReadmeExample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "// true: b has not seen it, but b is only Joining")
	a, b := node(0), node(1)
	s := gossip.New(gossip.ClusterID{Born: 1}).Edit(a, func(e *gossip.Edit) {
		e.Join(gossip.Member{Node: a})
		e.SetStatus(a, gossip.Up, 1)
		e.Join(gossip.Member{Node: b})
	})
	converged, _ := s.Convergence(a, nil)
	require.True(t, converged)
	require.Len(t, s.Merge(gossip.New(gossip.ClusterID{}).Merge(s).See(b)).SeenBy(), 2)
}
