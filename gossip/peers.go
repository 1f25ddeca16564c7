// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import "math/rand/v2"

// peersAmong picks the peers for [State.PeersAmong]. Known are the members that have
// seen the state.
func peersAmong(c *core, known bitset, self NodeID, rnd *rand.Rand, n int, among func(NodeID) bool) []NodeID {
	var unseen, seen []NodeID
	own := &ObserverRows{}
	if i, ok := c.findRows(self); ok {
		own = c.rows[i]
	}
	for i, m := range c.members {
		if m.Node == self || !among(m.Node) {
			continue
		}
		if _, marked := own.find(m.Node); marked {
			continue
		}
		if known.has(i) {
			seen = append(seen, m.Node)
		} else {
			unseen = append(unseen, m.Node)
		}
	}
	bias := unseenBias(len(c.members))
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

// take removes the element at i, and does not keep the order.
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
