// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
	"github.com/quorate/quorate/simulation"
)

func plantedNode(host string, uid gossip.UID) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: host, Port: 1}, UID: uid}
}

// plantedState returns a state of a cluster with two members up, and what is done to
// it.
func plantedState(born int64, edits ...func(*gossip.Edit)) *gossip.State {
	a, b := plantedNode("a", 1), plantedNode("b", 2)
	s := gossip.New(gossip.ClusterID{Born: born, Nonce: 1})
	edits = append([]func(*gossip.Edit){
		func(e *gossip.Edit) {
			e.Join(gossip.Member{Node: a})
			e.Join(gossip.Member{Node: b})
		},
		func(e *gossip.Edit) { e.SetStatus(a, gossip.Up, 1); e.SetStatus(b, gossip.Up, 2) },
	}, edits...)
	for _, edit := range edits {
		s = s.Edit(a, edit)
	}
	return s
}

// Each check of states finds what breaks it: from one state to the next, and by
// itself.
//
// covers I6, I7, I25, I32.
func TestPlantedStatesAreFound(t *testing.T) {
	a, b, again := plantedNode("a", 1), plantedNode("b", 2), plantedNode("b", 3)
	sound := plantedState(1)
	down := plantedState(1, func(e *gossip.Edit) { e.SetStatus(b, gossip.Down, 2) })
	removed := plantedState(1, func(e *gossip.Edit) { e.SetStatus(b, gossip.Down, 2) },
		func(e *gossip.Edit) { e.Remove(b, time.Unix(1, 0)) })
	joined := plantedState(1, func(e *gossip.Edit) { e.Join(gossip.Member{Node: plantedNode("c", 4)}) })
	twice := sound.Merge(gossip.New(sound.Cluster()).Edit(again, func(e *gossip.Edit) { e.Join(gossip.Member{Node: again}) }))
	for _, c := range []struct {
		name, want string
		was, is    *gossip.State
	}{
		{"a status goes back", "I6: at a:1", down, sound},
		{"a removed member comes back", "I6: at a:1", removed, sound},
		{"a member is forgotten", "forgotten without a tombstone", joined, sound},
		{"a node changes its cluster", "I32: a:1", sound, plantedState(2)},
	} {
		require.NoError(t, forwards(a, c.is, c.is), c.name)
		require.ErrorContains(t, forwards(a, c.was, c.is), c.want, c.name)
		events := &Events{last: map[gossip.NodeID]*gossip.State{a: c.was}}
		require.ErrorContains(t, events.changed(a, c.is), "I25: from one event to the next: I", c.name)
	}
	require.NoError(t, oneIncarnation(a, sound))
	require.ErrorContains(t, oneIncarnation(a, twice), "I7: at a:1")
	require.NoError(t, caused(a, nil, plantedState(1, func(e *gossip.Edit) { e.Down(b, "lost") })))
	require.ErrorContains(t, caused(a, sound, plantedState(1, func(e *gossip.Edit) { e.Down(b, "") })), "nobody says why b:1#2 is down")
	require.ErrorContains(t, caused(a, sound, down), "nobody says why b:1#2 is down")
	both := plantedState(1, func(e *gossip.Edit) { e.SetStatus(b, gossip.Down, 2) },
		func(e *gossip.Edit) { e.Join(gossip.Member{Node: again}) })
	require.NotNil(t, both.Member(again))
	require.NoError(t, oneIncarnation(a, both), "the first one is down")
}

// covers I4: a decision about nobody.
func TestPlantedDecisionAboutNobodyIsFound(t *testing.T) {
	w := simulation.New(simulation.Options{})
	c := &Invariants{}
	c.Watch(w)
	n := w.Start(gossip.Address{Host: "a", Port: 1}, func(simulation.Env) []machine.Component { return nil })
	c.states[n.ID()] = plantedState(1)
	decision := machine.Decide{Topic: "downing", Subject: n.ID().String(), Verdict: "keep-side"}
	require.ErrorContains(t, c.decidedOnWhatIs(n, decision), "I4:")
	decision.Subject = "b:1"
	require.NoError(t, c.decidedOnWhatIs(n, decision))
}

// What one node makes and another refuses as malformed is found, and so is what it refuses of itself; what a node
// refuses for another reason is none of it.
func TestPlantedRefusalOfWhatANodeMadeIsFound(t *testing.T) {
	w := simulation.New(simulation.Options{})
	c := &Invariants{}
	c.Watch(w)
	n := w.Start(gossip.Address{Host: "a", Port: 1}, func(simulation.Env) []machine.Component { return nil })
	refusal := protocol.Refused{Refusal: protocol.RefusedMalformed, Peer: plantedNode("b", 2), What: "gossip", Reason: "a count"}
	require.ErrorContains(t, c.observed(simulation.Observation{Node: n, Event: refusal}), "closure: "+n.ID().String()+" refuses gossip of b:1#2 as malformed")
	refusal.Peer = n.ID()
	require.ErrorContains(t, c.observed(simulation.Observation{Node: n, Event: refusal}), "closure: "+n.ID().String())
	refusal.Peer, refusal.Refusal = plantedNode("b", 2), protocol.RefusedMalformed+1
	require.NoError(t, c.observed(simulation.Observation{Node: n, Event: refusal}))
}

// covers I29: one up-number for two members, in states that never meet, and one
// generation of voters that is two.
func TestPlantedNumbersThatAreGivenTwiceAreFound(t *testing.T) {
	w := simulation.New(simulation.Options{})
	c := &Invariants{}
	c.Watch(w)
	a, b := plantedNode("a", 1), plantedNode("b", 2)
	up := func(n gossip.NodeID) *gossip.State {
		return gossip.New(gossip.ClusterID{Born: 1, Nonce: 1}).Edit(a, func(e *gossip.Edit) {
			e.Join(gossip.Member{Node: a})
			e.Join(gossip.Member{Node: b})
			e.SetStatus(n, gossip.Up, 1)
			e.SetConfig([]gossip.NodeID{n})
		})
	}
	require.NoError(t, c.checkAssigned(a, nil, up(a), false))
	require.NoError(t, c.checkAssigned(a, nil, up(a), false), "the same again is the same")
	require.ErrorContains(t, c.checkAssigned(b, nil, up(b), false), "I29: at b:1#2, up-number 1 of b:1#2 was given to a:1#1")
	require.ErrorContains(t, c.checkVoters(b, up(b).Cluster(), up(b).Config()), "I29: at b:1#2, voters")
}
