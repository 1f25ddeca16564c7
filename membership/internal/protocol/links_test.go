// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// brokenBetween cuts links, each between two numbers of nodes, in the direction given
// or in both.
func brokenBetween(both bool, links ...[2]int) func(from, to gossip.Address) bool {
	return func(from, to gossip.Address) bool {
		return slices.ContainsFunc(links, func(l [2]int) bool {
			a, b := address(l[0]), address(l[1])
			return from == a && to == b || both && from == b && to == a
		})
	}
}

// covers F12, I13: a split of which the side that wins has lost a link too. The side
// goes on with its link; when the lost are removed one end of it goes, so that all who
// are left reach each other. Nobody starts anew.
func TestASideThatWinsWithABrokenLinkGoesOn(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		lost int // The last ones of them.
		link [2]int
		left []int
	}{
		{"three of five", 5, 2, [2]int{1, 2}, []int{1, 3}},
		{"three of five, the last two", 5, 2, [2]int{2, 3}, []int{1, 2}},
		{"four of seven", 7, 3, [2]int{1, 4}, []int{1, 2, 3}},
		{"three of four", 4, 1, [2]int{1, 3}, []int{1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoop(t)
			nodes := l.cluster(c.n)
			lost := func(a gossip.Address) bool {
				return slices.ContainsFunc(nodes[c.n-c.lost:], func(n *node) bool { return n.id.Address == a })
			}
			link := brokenBetween(true, c.link)
			l.cut = func(from, to gossip.Address) bool { return lost(from) != lost(to) || link(from, to) }
			l.run(40 * time.Second)
			var left []int
			for i, n := range nodes {
				if n.hosts() {
					left = append(left, i+1)
				}
			}
			require.Equal(t, c.left, left, l.describe())
			for _, i := range left {
				require.True(t, nodes[i-1].sees(len(left), gossip.Up), l.describe())
			}
		})
	}
}
