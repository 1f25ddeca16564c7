// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// member returns the i-th node.
func member(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "n", Port: uint16(i + 1)}, UID: gossip.UID(i + 1)}
}

// chronicle has the state of a cluster, which one node writes, and beside it what has
// become of each other node.
type chronicle struct {
	t       *rapid.T
	state   *gossip.State
	removed map[gossip.NodeID]time.Time // When each node was removed; nodes that were pruned are not in it.
	members map[gossip.NodeID]bool
}

func (c *chronicle) edit(do func(*gossip.Edit) bool) {
	c.state = c.state.Edit(member(0), func(e *gossip.Edit) { require.True(c.t, do(e), "the edit was refused") })
}

// advance lets a node join, or removes it.
func (c *chronicle) advance(node gossip.NodeID, now time.Time) {
	_, gone := c.removed[node]
	switch {
	case c.members[node]:
		c.edit(func(e *gossip.Edit) bool { return e.Down(node, "") && e.Remove(node, now) })
		delete(c.members, node)
		c.removed[node] = now
	case !gone:
		c.edit(func(e *gossip.Edit) bool { return e.Join(gossip.Member{Node: node}) })
		c.members[node] = true
	}
}

// prune drops the tombstones from before a moment.
func (c *chronicle) prune(before time.Time) {
	if !before.After(c.state.PrunedBefore()) {
		return
	}
	c.edit(func(e *gossip.Edit) bool { return e.SetPrunedBefore(before) })
	for node, at := range c.removed {
		if at.Before(before) {
			delete(c.removed, node)
		}
	}
}

// A node is fenced from when it is added until the state has forgotten it, however often it
// is added and forgotten. No more fences are kept than the state has members and
// tombstones. covers I23.
func TestFencesAreForgottenWithTheTombstones(t *testing.T) {
	const nodes = 6
	rapid.Check(t, func(rt *rapid.T) {
		c := &chronicle{
			t: rt, state: gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}),
			removed: map[gossip.NodeID]time.Time{}, members: map[gossip.NodeID]bool{},
		}
		c.edit(func(e *gossip.Edit) bool { return e.Join(gossip.Member{Node: member(0)}) })
		var fences component.Fences
		fenced, now := map[gossip.NodeID]bool{}, time.Unix(1000, 0)
		pick := func(t *rapid.T) gossip.NodeID { return member(rapid.IntRange(1, nodes).Draw(t, "node")) }
		forget := func(*rapid.T) {
			fences.Forget(c.state)
			for node := range fenced {
				if _, removed := c.removed[node]; !removed && !c.members[node] {
					delete(fenced, node)
				}
			}
			require.LessOrEqual(rt, fences.Len(), len(c.state.Members())+len(c.state.Tombstones()))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				require.Equal(rt, len(fenced), fences.Len())
				for i := range nodes + 1 {
					require.Equal(rt, fenced[member(i)], fences.Has(member(i)))
				}
			},
			"add": func(t *rapid.T) {
				node := pick(t)
				fences.Add(node)
				fenced[node] = true
			},
			"advance":      func(t *rapid.T) { c.advance(pick(t), now) },
			"advance more": func(t *rapid.T) { c.advance(pick(t), now) },
			"prune":        func(*rapid.T) { c.prune(now) },
			"time":         func(*rapid.T) { now = now.Add(time.Second) },
			"forget":       forget,
			"forget twice": func(t *rapid.T) { forget(t); forget(t) },
		})
	})
}

// With the first state that has pruned the tombstone the node is forgotten, not before.
func TestAFenceLastsAsLongAsTheTombstone(t *testing.T) {
	writer, node := member(0), member(1)
	edit := func(s *gossip.State, do func(*gossip.Edit) bool) *gossip.State {
		return s.Edit(writer, func(e *gossip.Edit) { require.True(t, do(e)) })
	}
	state := edit(gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}), func(e *gossip.Edit) bool {
		return e.Join(gossip.Member{Node: writer}) && e.Join(gossip.Member{Node: node})
	})
	var fences component.Fences
	require.False(t, fences.Has(node))
	fences.Add(node)
	fences.Forget(state)
	require.True(t, fences.Has(node), "the fence came before the removal")
	state = edit(state, func(e *gossip.Edit) bool { return e.Down(node, "") && e.Remove(node, time.Unix(1000, 0)) })
	fences.Forget(state)
	require.True(t, fences.Has(node))
	fences.Forget(edit(state, func(e *gossip.Edit) bool { return e.SetPrunedBefore(time.Unix(2000, 0)) }))
	require.False(t, fences.Has(node))
	require.Zero(t, fences.Len())
}
