// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// mirror is what a subscriber knows from events alone.
type mirror struct {
	t       *testing.T
	self    gossip.NodeID
	sub     *membership.Subscription
	status  map[gossip.NodeID]gossip.Status
	away    map[gossip.NodeID]bool
	leader  gossip.NodeID
	changes int
}

// mirrorOf subscribes to a node.
func mirrorOf(t *testing.T, n *membership.Node) *mirror {
	t.Helper()
	m := &mirror{t: t, self: n.Self(), sub: n.Subscribe()}
	t.Cleanup(m.sub.Close)
	return m
}

// reset takes a snapshot in.
func (m *mirror) reset(v membership.View) {
	m.status, m.away, m.leader = map[gossip.NodeID]gossip.Status{}, map[gossip.NodeID]bool{}, v.Leader
	for _, member := range v.State.Members() {
		m.status[member.Node] = member.Status
	}
	for _, n := range v.State.Unreachable() {
		m.away[n] = true
	}
	delete(m.away, v.Self) // Others may not reach it; no event says so.
}

// drain takes in all events that wait. Each has to follow from what is known.
func (m *mirror) drain() {
	m.t.Helper()
	done, cancel := context.WithCancel(m.t.Context())
	cancel() // Next returns what is there, and waits for nothing.
	for {
		e, err := m.sub.Next(done)
		if err != nil {
			return
		}
		m.changes++
		switch e := e.(type) {
		case membership.Snapshot:
			m.reset(e.View)
		case membership.MemberChanged:
			require.Equal(m.t, m.status[e.Member.Node], e.Previous, "%s", e.Member.Node)
			m.status[e.Member.Node] = e.Member.Status
		case membership.MemberRemoved:
			require.Equal(m.t, m.status[e.Member.Node], e.Previous, "%s", e.Member.Node)
			delete(m.status, e.Member.Node)
			delete(m.away, e.Member.Node)
		case membership.ReachabilityChanged:
			require.NotEqual(m.t, m.self, e.Member.Node, "a node is told that others do not reach itself")
			require.NotEqual(m.t, !e.Reachable, m.away[e.Member.Node], "said before: %s", e.Member.Node)
			delete(m.away, e.Member.Node)
			if !e.Reachable {
				m.away[e.Member.Node] = true
			}
		case membership.LeaderChanged:
			require.NotEqual(m.t, m.leader, e.Leader)
			m.leader = e.Leader
		}
	}
}

// check compares what is known from events with what the node knows.
func (m *mirror) check(n *membership.Node) {
	m.t.Helper()
	synctest.Wait()
	m.drain()
	want := &mirror{}
	want.reset(n.View())
	require.Equal(m.t, want.status, m.status, "%s", n.Self())
	require.Equal(m.t, want.away, m.away, "%s", n.Self())
	require.Equal(m.t, want.leader, m.leader, "%s", n.Self())
}

// covers I25: snapshot and events together are the state, at every moment of a
// history of joins, crashes, restarts, partitions and leaves, on each node.
func TestEventsAddUpToTheState(t *testing.T) {
	for seed := range uint64(3) {
		bubble(t, func(t *testing.T, p *place) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			nodes := p.cluster(5)
			mirrors := map[*membership.Node]*mirror{}
			for range 12 {
				switch k := 1 + rnd.IntN(4); rnd.IntN(4) {
				case 0:
					p.network.Cut(address(1), address(1+k))
				case 1:
					p.network.HealAll()
				case 2:
					_ = nodes[k].Close()
					nodes[k] = p.start(config(k + 1))
				case 3:
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					_ = nodes[k].Leave(ctx)
					cancel()
				}
				for range 10 {
					<-time.After(time.Duration(rnd.Int64N(int64(500 * time.Millisecond))))
					for _, n := range nodes {
						if mirrors[n] == nil {
							mirrors[n] = mirrorOf(t, n)
						}
						mirrors[n].check(n)
					}
				}
			}
			seen := 0
			for _, m := range mirrors {
				seen += m.changes
			}
			require.Greater(t, seen, 40, "too little happened for the test to mean anything")
		})
	}
}
