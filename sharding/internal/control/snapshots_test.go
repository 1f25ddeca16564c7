// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// remembers has the entities of each shard give a memory that names the shard.
func (f *fleet) remembers() {
	f.memory = func(s protocol.ShardID) []protocol.Snapshot {
		return []protocol.Snapshot{{Entity: "a", Data: fmt.Append(nil, "shard ", s)}, {Entity: "b", Loss: protocol.LossFailed}}
	}
}

// carries reports whether a message brings a memory.
func carries(m control.Message) bool {
	var all []protocol.Snapshot
	switch m := m.(type) {
	case control.Host:
		for _, s := range m.Shards {
			all = append(all, s.Snapshots...)
		}
	case control.ShardsStopped:
		for _, s := range m.Shards {
			all = append(all, s.Snapshots...)
		}
	}
	for _, s := range all {
		if s.Loss == protocol.LossNone {
			return true
		}
	}
	return false
}

// unpacked expects that no node has a memory in hand.
func (f *fleet) unpacked(nodes ...*peer) {
	f.t.Helper()
	for _, n := range nodes {
		require.Zero(f.t, n.Inspect("k").HeldSnapshots, "%s", n.id)
	}
}

// memoriesAt returns the memory with which the shards came that a node hosts.
func (n *peer) memoriesAt() map[protocol.ShardID]string {
	found := map[protocol.ShardID]string{}
	for s, h := range n.hosting {
		if len(h.Snapshots) > 0 {
			found[s] = string(h.Snapshots[0].Data)
		}
	}
	return found
}

// The memory of a shard goes where the shard goes, a message for each, and nobody keeps it. That
// holds also when messages are lost and repeated.
func TestTheMemoryGoesToTheNextHome(t *testing.T) {
	for name, lose := range map[string]bool{"at once": false, "repeated": true} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			nodes := f.cluster(3, six())
			f.remembers()
			gone := nodes[2].hosts()
			seen := map[string]bool{}
			f.drop = func(_, _ gossip.NodeID, m control.Message) bool {
				first := carries(m) && !seen[fmt.Sprint(m)]
				seen[fmt.Sprint(m)] = true
				return lose && first
			}
			f.set(gossip.Leaving, nodes[2])
			f.run(4 * time.Second)
			all := nodes[0].memoriesAt()
			maps.Copy(all, nodes[1].memoriesAt())
			require.Len(t, all, len(gone))
			for _, s := range gone {
				require.Equal(t, fmt.Sprint("shard ", s), all[s])
			}
			f.unpacked(nodes...)
		})
	}
}

// What cannot be brought to the coordinator, or to the new home, in time stays behind, and the shard
// goes on without it. The home learns what was lost.
func TestAMemoryThatDoesNotArriveHoldsUpNothing(t *testing.T) {
	for name, on := range map[string]func(m control.Message) bool{
		"to the coordinator": func(m control.Message) bool { _, is := m.(control.ShardsStopped); return is },
		"to the new home":    func(m control.Message) bool { _, is := m.(control.Host); return is },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			kind := six()
			kind.Timings.Handoff = time.Minute
			nodes := f.cluster(2, kind)
			f.remembers()
			f.drop = func(_, _ gossip.NodeID, m control.Message) bool { return carries(m) && on(m) }
			stays, goes := nodes[0], nodes[1]
			if name == "to the new home" {
				stays, goes = goes, stays // The coordinator gives a shard of its own node to the other one.
			}
			s := goes.hosts()[0]
			nodes[0].step(control.Move{Kind: "k", Shard: s, To: stays.id, ID: 1})
			f.run(4 * time.Second)
			require.NotContains(t, stays.hosting, s)
			f.run(3 * time.Second)
			require.Contains(t, stays.hosting, s)
			require.Equal(t, []protocol.Snapshot{{Entity: "a", Loss: protocol.LossOnTheWay}, {Entity: "b", Loss: protocol.LossFailed}}, stays.hosting[s].Snapshots)
			f.unpacked(nodes...)
		})
	}
}

// The memory of a shard whose new home dies, and may have begun, is given to nobody else: its streams
// begin anew.
func TestTheMemoryOfAHomeThatDiedIsGone(t *testing.T) {
	f := newFleet(t)
	nodes := f.cluster(3, six())
	f.remembers()
	f.drop = func(from, _ gossip.NodeID, m control.Message) bool {
		_, hosting := m.(control.Hosting)
		return hosting && from == nodes[1].id
	}
	s := nodes[2].hosts()[0]
	nodes[0].step(control.Move{Kind: "k", Shard: s, To: nodes[1].id, ID: 1})
	f.run(time.Second)
	require.NotEmpty(t, nodes[1].hosting[s].Snapshots)
	require.Equal(t, 1, nodes[0].Inspect("k").HeldSnapshots)
	nodes[1].dead = true
	f.set(gossip.Down, nodes[1])
	f.remove(nodes[1])
	f.fence(nodes[1])
	f.run(2 * time.Second)
	for _, n := range []*peer{nodes[0], nodes[2]} {
		if h, hosts := n.hosting[s]; hosts {
			require.Empty(t, h.Snapshots)
			require.Equal(t, h.Epoch, h.Base)
		}
	}
	f.unpacked(nodes[0], nodes[2])
}
