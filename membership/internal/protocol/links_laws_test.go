// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// On one state that all have seen, with whatever links broken in whichever direction,
// at most one member acts: as the leader that sees convergence, or as the hub. All
// directed graphs of 3 and 4 nodes.
func TestOnOneStateOneMemberActs(t *testing.T) {
	for n := 3; n <= 4; n++ {
		acted := 0
		for broken := range 1 << (n * (n - 1)) {
			s := seenByAll(n, broken)
			var actors []gossip.NodeID
			for _, m := range s.Members() {
				converged, _ := s.Convergence(m.Node, nil)
				if converged && s.Leader(m.Node) == m.Node || !converged && hubOf(s) == m.Node {
					actors = append(actors, m.Node)
				}
			}
			require.LessOrEqual(t, len(actors), 1, "%d nodes, broken links %b", n, broken)
			acted += len(actors)
		}
		require.Positive(t, acted)
		t.Log(n, "nodes, of", 1<<(n*(n-1)), "graphs somebody acts in", acted)
	}
}

// seenByAll returns a state of n voters with these directed links broken.
func seenByAll(n, broken int) *gossip.State {
	node := func(i int) gossip.NodeID {
		return gossip.NodeID{Address: gossip.Address{Host: fmt.Sprint("10.0.0.", i+1), Port: 7946}, UID: gossip.UID(i + 1)}
	}
	var all []gossip.NodeID
	s := gossip.New(gossip.ClusterID{Born: 1, Nonce: 1})
	for i := range n {
		all = append(all, node(i))
		s = s.Edit(node(0), func(e *gossip.Edit) {
			e.Join(gossip.Member{Node: node(i), Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}})
		})
		s = s.Edit(node(0), func(e *gossip.Edit) { e.SetStatus(node(i), gossip.Up, gossip.UpNumber(i+1)) })
	}
	s = s.Edit(node(0), func(e *gossip.Edit) { e.SetConfig(all) })
	for i := range n {
		s = s.Edit(node(i), func(e *gossip.Edit) {
			for j := range n {
				if bit := i*(n-1) + j; j != i && broken&(1<<(bit-b2i(j > i))) != 0 {
					e.Mark(node(j), gossip.Unreachable)
				}
			}
		})
	}
	for _, id := range all {
		s = s.See(id)
	}
	return s
}

// b2i is 1 for true: the links of a node leave itself out.
func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
