// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"cmp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
)

func nodeOf(uid int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "a", Port: 1}, UID: gossip.UID(uid)}
}

// drawSome draws a sorted list of some of the numbers from 1 to 8, at least one.
func drawSome(t *rapid.T, label string) []int {
	list := rapid.SliceOfNDistinct(rapid.IntRange(1, 8), 1, 8, rapid.ID[int]).Draw(t, label)
	slices.Sort(list)
	return list
}

// Between two turns of anybody each that was there all along has had a turn, whoever comes
// and goes.
func TestARotationIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r rotation[int]
		served := map[int]int{} // When each was served last.
		since := map[int]int{}  // Since when each is there without a break.
		for now := 1; now <= 60; now++ {
			var list []int
			if now == 1 || rapid.IntRange(0, 3).Draw(t, "changes") == 0 {
				list = drawSome(t, "list")
			} else {
				for k := range since {
					list = append(list, k)
				}
				slices.Sort(list)
			}
			for k := range since {
				if !slices.Contains(list, k) {
					delete(since, k)
				}
			}
			for _, k := range list {
				if since[k] == 0 {
					since[k] = now
				}
			}
			chosen := list[r.next(list, cmp.Compare[int])]
			if before := served[chosen]; before > 0 {
				for k, from := range since {
					require.False(t, k != chosen && from <= before && served[k] < before, "%d had two turns while %d waited", chosen, k)
				}
			}
			served[chosen] = now
		}
	})
}

// A plan names each node once, all nodes with subscribers in no group, and one node of each
// group; over as many messages as a group has nodes each of them gets one.
func TestPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodesOf := func(uids []int) (nodes []gossip.NodeID) {
			for _, uid := range uids {
				nodes = append(nodes, nodeOf(uid))
			}
			return nodes
		}
		var groups []groupRoute
		for i := range rapid.IntRange(0, 4).Draw(t, "groups") {
			groups = append(groups, groupRoute{"g" + strconv.Itoa(i), nodesOf(drawSome(t, "nodes"))})
		}
		plain, state := nodesOf(drawSome(t, "plain")), turns{}
		for range rapid.IntRange(0, 9).Draw(t, "before") {
			plan(plain, groups, state)
		}
		got := map[string]map[gossip.NodeID]int{}
		for range 8 * 7 * 5 * 3 { // A multiple of each number of nodes.
			seen, plains := map[gossip.NodeID]bool{}, 0
			of := map[string]int{}
			for _, target := range plan(plain, groups, state) {
				require.False(t, seen[target.node])
				seen[target.node] = true
				if target.plain {
					plains++
					require.Contains(t, plain, target.node)
				}
				for _, g := range target.groups {
					of[g]++
					if got[g] == nil {
						got[g] = map[gossip.NodeID]int{}
					}
					got[g][target.node]++
				}
			}
			require.Equal(t, len(plain), plains)
			for _, g := range groups {
				require.Equal(t, 1, of[g.name])
			}
		}
		for _, g := range groups {
			require.Len(t, got[g.name], len(g.nodes))
			for _, n := range got[g.name] {
				require.Equal(t, 8*7*5*3/len(g.nodes), n)
			}
		}
		state.keep(groups[:len(groups)/2])
		require.Len(t, state, len(groups)/2)
	})
}

// Whatever comes and is read, an inbox holds no more than its room, what is read is in order
// and complete but for what is counted as dropped.
func TestAnInboxLosesNothingSilently(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &inbox{max: rapid.IntRange(1, 4).Draw(t, "room"), policy: Policy(rapid.IntRange(0, int(policies)-1).Draw(t, "policy")), wake: make(chan struct{}, 1)}
		offered, refusals := 0, 0
		var read []int
		takeAll := func() {
			queue, full, ended := b.take(nil)
			require.False(t, ended)
			require.Equal(t, len(queue) >= b.max, full)
			for _, it := range queue {
				n, err := strconv.Atoi(string(it.data))
				require.NoError(t, err)
				read = append(read, n)
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			it := item{data: []byte(strconv.Itoa(offered))}
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				takeAll()
			case 1, 2, 3:
				offered++
				v, s := b.offerRemote(it)
				require.NotEqual(t, refused, v)
				_, waiting := b.losses()
				require.Equal(t, s != open, waiting >= b.max && b.policy <= Fail)
			default:
				room := b.hasRoom()
				v := b.offer(it)
				require.Equal(t, room, v == taken)
				offered++
				if v == refused {
					require.LessOrEqual(t, b.policy, Fail)
					refusals++
				}
			}
			if lost, waiting := b.losses(); b.policy != Block {
				require.LessOrEqual(t, waiting, b.max)
			} else {
				require.Zero(t, lost)
				require.Equal(t, offered-refusals, waiting+len(read))
			}
		}
		takeAll()
		lost, _ := b.losses()
		require.True(t, slices.IsSorted(read))
		require.Equal(t, offered-refusals, len(read)+int(lost))
	})
}

// What comes to a subscriber that blocks beyond its room is bounded by its bytes.
func TestWhatIsOnItsWayIsBounded(t *testing.T) {
	b := &inbox{max: 1, policy: Block, wake: make(chan struct{}, 1)}
	big := item{data: make([]byte, 1<<20)}
	for range 17 { // One has room, and with what each takes beside its data 15 more.
		_, s := b.offerRemote(big)
		require.Equal(t, blocking, s)
	}
	lost, waiting := b.losses()
	require.EqualValues(t, 1, lost)
	require.Equal(t, 16, waiting)
	b.take(nil)
	for range 16 {
		v, _ := b.offerRemote(big)
		require.Equal(t, taken, v)
	}
}

// What a member says of the room in its topics is kept for topics of this node alone, and for as long as they are
// known.
func TestAMemberPausesOnlyTopicsOfThisNode(t *testing.T) {
	p, from := new(PubSub), nodeOf(1)
	e := &peer{p: p, node: from}
	p.peers.Store(from, e)
	p.known("mine")
	in := frameReader{p: p, from: from}
	for i := range 10_000 {
		in.signal(strconv.Itoa(i), maxState)
	}
	in.signal("mine", maxState)
	require.LessOrEqual(t, len(e.paused), 1)
	for range 2 * idleTicks {
		subject{p}.Tick()
	}
	require.Empty(t, e.paused)
}
