// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

func listOf(at ...int) []gossip.Address {
	var all []gossip.Address
	for _, i := range at {
		all = append(all, nodeAt(i).Address)
	}
	return all
}

func votersAt(at ...int) []gossip.NodeID {
	var all []gossip.NodeID
	for _, i := range at {
		all = append(all, nodeAt(i))
	}
	return all
}

// What tells two deployments of one name apart, row by row: who asks, what the cluster of the
// member that answers is like, and whether they have to do with each other. The member is node
// 1, and the node that asks node 9.
func TestWhoIsRelatedToACluster(t *testing.T) {
	cluster := gossip.ClusterID{Born: bornAt, Nonce: 7}
	memory := func(lineage uint64, yielded gossip.ClusterID) Record {
		r := remembers(9, 1, 1, 2, 3)
		r.Cluster, r.Yielded.To = gossip.ClusterID{Born: bornAt, Nonce: lineage}, yielded
		return r
	}
	for name, c := range map[string]struct {
		asker   Claim
		list    []gossip.Address // Of the member.
		found   bool
		voters  []gossip.NodeID
		removed []int
		wants   bool
	}{
		"a new node with the list of the others": {asker: Claim{List: listOf(1, 2, 3)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3), wants: true},
		"with a longer list":                     {asker: Claim{List: listOf(1, 2, 3, 4, 5, 6, 7)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3), wants: true},
		"with a list of strangers":               {asker: Claim{List: listOf(1, 5, 6)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3)},
		"with a list of removed members":         {asker: Claim{List: listOf(5, 6)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3), removed: []int{5, 6}, wants: true},
		"half of its list is known":              {asker: Claim{List: listOf(1, 5)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3)},
		"without a list":                         {asker: Claim{}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3)},
		"itself alone, listed there":             {asker: Claim{List: listOf(9)}, list: listOf(1, 2, 9), voters: votersAt(1, 2), wants: true},
		"itself alone, not listed there":         {asker: Claim{List: listOf(9)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3)},
		"it found members":                       {asker: Claim{List: listOf(1, 2, 9), Found: true}, list: listOf(1, 2), found: true, voters: votersAt(1, 2), wants: true},
		"it found many new ones that the member has found too": {
			asker: Claim{List: listOf(1, 4, 5, 9), Found: true}, list: listOf(1, 4, 5, 9), found: true, voters: votersAt(1), wants: true,
		},
		"it found many new ones that the member has not found": {
			asker: Claim{List: listOf(1, 4, 5, 9), Found: true}, list: listOf(1), found: true, voters: votersAt(1),
		},
		"a wrong entry and its own reused address": {
			asker: Claim{List: listOf(1, 8, 9), Found: true}, list: listOf(1, 2, 9), found: true, voters: votersAt(1, 2),
		},
		"it remembers the lineage":              {asker: Claim{List: listOf(8), Record: memory(7, gossip.ClusterID{})}, list: listOf(1), voters: votersAt(1), wants: true},
		"it remembers another one, same list":   {asker: Claim{List: listOf(1, 2), Record: memory(8, gossip.ClusterID{})}, list: listOf(1, 2), voters: votersAt(1, 2), wants: true},
		"the voters of its record are known":    {asker: Claim{List: listOf(8), Record: memory(8, gossip.ClusterID{})}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3)},
		"it remembers that it yielded to it":    {asker: Claim{List: listOf(8), Record: memory(8, cluster)}, list: listOf(1, 2, 3), voters: votersAt(1, 2, 3), wants: true},
		"it yielded to one of the same lineage": {asker: Claim{List: listOf(8), Record: memory(8, gossip.ClusterID{Born: 1, Nonce: 5, Origin: 7})}, list: listOf(1), voters: votersAt(1), wants: true},
	} {
		t.Run(name, func(t *testing.T) {
			member := Claim{List: c.list, Found: c.found, Cluster: cluster, Standing: true, Voters: c.voters}
			s := member.knownAddresses(nodeAt(1).Address)
			s.members, s.removed = addressSetOf(addressesOf(c.voters)), addressSetOf(listOf(c.removed...))
			for a := range s.members { //quorate:unordered a set
				s.now[a] = true
			}
			e := s.evidence(nodeAt(9).Address, c.asker)
			require.Equal(t, c.wants, c.asker.isRelatedTo(member, e), "%b", e)
		})
	}
}

// Two nodes in no cluster, at addresses 1 and 2, say the same of each other.
func TestWhichNodesInNoClusterAreRelated(t *testing.T) {
	record := func(lineage uint64, voters ...int) Record {
		r := remembers(1, 1, voters...)
		r.Cluster.Nonce = lineage
		return r
	}
	for name, c := range map[string]struct {
		a, b  Claim
		wants bool
	}{
		"one list":                       {Claim{List: listOf(1, 2, 3)}, Claim{List: listOf(1, 2, 3)}, true},
		"one knows the other's list":     {Claim{List: listOf(1)}, Claim{List: listOf(1, 2, 3)}, true},
		"lists of others":                {Claim{List: listOf(1, 5, 6)}, Claim{List: listOf(2, 7, 8)}, false},
		"found by both":                  {Claim{List: listOf(1, 2), Found: true}, Claim{List: listOf(1, 2), Found: true}, true},
		"found by one alone":             {Claim{List: listOf(1, 2), Found: true}, Claim{List: listOf(2, 8, 9), Found: true}, false},
		"nothing found yet":              {Claim{Found: true}, Claim{List: listOf(1, 2), Found: true}, false},
		"one lineage, lists of others":   {Claim{List: listOf(5), Record: record(7, 1)}, Claim{List: listOf(6), Record: record(7, 1)}, true},
		"two lineages, lists of others":  {Claim{List: listOf(5), Record: record(7, 8)}, Claim{List: listOf(6), Record: record(8, 9)}, false},
		"its voters are known by a list": {Claim{List: listOf(5), Record: record(7, 1, 2)}, Claim{List: listOf(1, 2)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.wants, areRelated(c.a, nodeAt(1).Address, c.b, nodeAt(2).Address))
			require.Equal(t, c.wants, areRelated(c.b, nodeAt(2).Address, c.a, nodeAt(1).Address))
		})
	}
}

// Of two clusters each knows the same of whether they are related and which goes on.
func TestWhichClustersAreRelatedAndWhichGoesOn(t *testing.T) {
	a := Claim{Cluster: gossip.ClusterID{Born: 1, Nonce: 1}}
	b := Claim{Cluster: gossip.ClusterID{Born: 2, Nonce: 2}}
	same := Claim{Cluster: gossip.ClusterID{Born: 2, Nonce: 2, Origin: 1}}
	require.True(t, areRelatedClusters(a, 0, same, 0), "one lineage")
	require.True(t, areRelatedClusters(a, ListListed, b, 0), "a list of one in the list of the other")
	require.True(t, areRelatedClusters(a, 0, b, ListListed))
	require.True(t, areRelatedClusters(a, VotersListed, b, VotersListed), "the voters of both")
	require.False(t, areRelatedClusters(a, VotersListed, b, 0), "the voters of one, which may be at reused addresses")
	require.False(t, areRelatedClusters(a, ListKnown|ListNow|ListMembers|AddressListed|AddressKnown, b, VotersListed))

	old := rank{3, a.Cluster}
	require.True(t, rank{4, b.Cluster}.before(old), "more voters")
	require.True(t, old.before(rank{3, b.Cluster}), "the older one")
	require.True(t, old.before(rank{3, gossip.ClusterID{Born: 1, Nonce: 9}}), "the lower nonce")
	require.False(t, old.before(old))
}
