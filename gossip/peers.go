// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "math/rand/v2"

// Peers returns up to n different members to gossip with, in random order:
// never self, nor those that self has marked as unreachable. Those that only
// others cannot reach are included, since news may reach them through self.
//
// Each pick prefers members that have not seen s with a probability of 0.8
// up to 400 members. Above, it falls in a straight line to 0.08 at 1,200, so
// that a large cluster does not send everything to the few that lag behind.
func (s *State) Peers(self NodeID, rnd *rand.Rand, n int) []NodeID {
	return s.PeersAmong(self, rnd, n, func(NodeID) bool { return true })
}

// PeersAmong is [State.Peers] restricted to the members for which among is true.
// Among is asked about each member but self, once, in the order of node ids.
func (s *State) PeersAmong(self NodeID, rnd *rand.Rand, n int, among func(NodeID) bool) []NodeID {
	var unseen, seen []NodeID
	own := &ObserverRows{}
	if i, ok := s.findRows(self); ok {
		own = s.rows[i]
	}
	for i, m := range s.members {
		if m.Node == self || !among(m.Node) {
			continue
		}
		if _, marked := own.find(m.Node); marked {
			continue
		}
		if s.seen.has(i) {
			seen = append(seen, m.Node)
		} else {
			unseen = append(unseen, m.Node)
		}
	}
	bias := unseenBias(len(s.members))
	var peers []NodeID
	for len(peers) < n && len(unseen)+len(seen) > 0 {
		i := rnd.IntN(len(unseen) + len(seen))
		if len(unseen) > 0 && rnd.Float64() < bias {
			i = rnd.IntN(len(unseen))
		}
		var peer NodeID
		if i < len(unseen) {
			peer, unseen = take(unseen, i)
		} else {
			peer, seen = take(seen, i-len(unseen))
		}
		peers = append(peers, peer)
	}
	return peers
}

// take removes the element at i, in no order.
func take(nodes []NodeID, i int) (NodeID, []NodeID) {
	n := nodes[i]
	nodes[i] = nodes[len(nodes)-1]
	return n, nodes[:len(nodes)-1]
}

// unseenBias is the probability of preferring a member that has not seen the
// state.
func unseenBias(members int) float64 {
	const (
		high, low   = 0.8, 0.08
		small, huge = 400, 1200
	)
	switch {
	case members <= small:
		return high
	case members >= huge:
		return low
	}
	return high - (high-low)*float64(members-small)/(huge-small)
}
