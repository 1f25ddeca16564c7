// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// siege is a cluster of three nodes of which the third is hostile: the test forges its
// messages from the state that all nodes have.
type siege struct {
	*loop
	nodes []*node
}

func besiege(t testing.TB) *siege {
	t.Helper()
	l := newLoop(t)
	return &siege{loop: l, nodes: l.cluster(3)}
}

func (s *siege) rogue() gossip.NodeID { return s.nodes[2].id }

// forge returns the state that all nodes have with changes, as the rogue sends it: with
// one more edit of its own.
func (s *siege) forge(change func(*gossip.Raw)) (*gossip.State, error) {
	p := s.nodes[0].machine.State().Parts()
	p.Members = slices.Clone(p.Members)
	for i, m := range p.Members {
		own := *m
		p.Members[i] = &own
	}
	p.Clock = nil
	for _, n := range s.nodes {
		p.Clock = append(p.Clock, gossip.Dot{Node: n.id, Count: s.nodes[0].machine.State().Clock().Get(n.id)})
	}
	p.Clock[2].Count++
	p.Clock = slices.DeleteFunc(p.Clock, func(d gossip.Dot) bool { return d.Count == 0 })
	p.Seen = []gossip.NodeID{s.rogue()}
	change(&p)
	return gossip.FromParts(p)
}

// say sends a state of the rogue to a node, whole or as a difference.
func (s *siege) say(to *node, state *gossip.State, whole bool) {
	if whole {
		to.step(machine.Received{From: s.rogue(), Message: protocol.GossipState{State: state}})
		return
	}
	delta := state.Delta(to.machine.State().Clock())
	to.step(machine.Received{From: s.rogue(), Message: protocol.GossipDelta{Delta: delta, Digest: state.Digest()}})
}

func (n *node) malformed() uint64 { return n.machine.Refusals(protocol.RefusedMalformed) }

// strangers returns nodes that no member has heard of.
func strangers(n int) []gossip.NodeID {
	nodes := make([]gossip.NodeID, n)
	for i := range nodes {
		nodes[i] = gossip.NodeID{Address: gossip.Address{Host: fmt.Sprintf("x%05d", i), Port: 1}, UID: 1}
	}
	return nodes
}

// What one member says of another and of the cluster, one thing at a time: the
// others refuse it, and count it by its reason; they keep their standing, and a node
// that joins later is up.
// covers I35.
func TestHostileMemberIsRefused(t *testing.T) {
	const end, far = 1 << 62, 7_226_582_400_000 // Far is in 2199.
	for _, c := range []struct {
		name, reason string
		forge        func(p *gossip.Raw)
	}{
		{"upnumber", "last up-number", func(p *gossip.Raw) { p.LastUpNumber = end }},
		{"clock", "clock entry", func(p *gossip.Raw) { p.Clock[len(p.Clock)-1].Count = end }},
		{"clock of another", "clock entry", func(p *gossip.Raw) { p.Clock[0].Count = end }},
		{"config", "generation", func(p *gossip.Raw) {
			p.Config = gossip.Voters{Gen: end, By: p.Members[2].Node.UID, Voters: []gossip.NodeID{p.Members[2].Node}}
		}},
		{"config of the next generation", "not all of those who vote", func(p *gossip.Raw) {
			p.Config = gossip.Voters{Gen: p.Config.Gen + 1, By: p.Members[2].Node.UID, Voters: []gossip.NodeID{p.Members[2].Node}}
		}},
		{"previous voters", "not all of those who vote", func(p *gossip.Raw) {
			p.Config.Gen++
			p.Config.Previous, p.Config.PreviousData = []gossip.NodeID{p.Members[2].Node}, nil
		}},
		{"voters that nobody knows", "whom nobody knows", func(p *gossip.Raw) {
			p.Config.Gen++
			p.Config.Data, p.Config.PreviousData = nil, nil
			p.Config.Previous, p.Config.Voters = p.Config.Voters, append(slices.Clone(p.Config.Voters), strangers(9)...)
			p.Config.PreviousData, p.Config.Data = nil, nil
		}},
		{"downing", "generation", func(p *gossip.Raw) {
			p.Downing = gossip.DowningRegister{Gen: end, DowningStrategy: gossip.DowningStrategy{Name: "down-all"}}
		}},
		{"downing of the next generation", "not loaded", func(p *gossip.Raw) {
			p.Downing = gossip.DowningRegister{Gen: p.Downing.Gen + 1, DowningStrategy: gossip.DowningStrategy{Name: "down-all"}}
		}},
		{"members", "at most", func(p *gossip.Raw) {
			rogue := p.Members[2]
			p.Members, p.Observers, p.Clock = []*gossip.Member{rogue}, nil, p.Clock[len(p.Clock)-1:]
			for _, id := range strangers(gossip.MaxMembers - 2) {
				p.Members = append(p.Members, &gossip.Member{Node: id, Status: gossip.Joining})
			}
		}},
		{"pruned", "pruned before", func(p *gossip.Raw) { p.PrunedBefore = far }},
		{"removed", "removed at", func(p *gossip.Raw) {
			p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: strangers(1)[0], RemovedAt: far})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := besiege(t)
			forged, err := s.forge(c.forge)
			require.NoError(t, err, "it is well formed by itself")
			before := s.nodes[0].machine.State()
			for i, whole := range []bool{true, false} {
				s.say(s.nodes[0], forged, whole)
				s.say(s.nodes[1], forged, whole)
				require.Equal(t, uint64(i+1), s.nodes[0].malformed())
			}
			require.Same(t, before, s.nodes[0].machine.State(), "nothing changes")
			refused := published[protocol.Refused](s.nodes[0])
			require.Contains(t, refused[len(refused)-1].Reason, c.reason)
			require.Equal(t, s.rogue(), refused[len(refused)-1].Peer)

			s.nodes[2].dead = true // It has its say, and goes.
			late := s.join(4)
			s.until(time.Minute, func() bool { return late.sees(3, gossip.Up) })
			s.run(5 * time.Second)
			for _, n := range []*node{s.nodes[0], s.nodes[1], late} {
				require.True(t, n.hosts())
			}
		})
	}
}

// A member can down the others by right: it says so in an edit like any other.
// They stop at once. docs/security.md lists this.
// covers I35.
func TestMemberMayDownTheOthers(t *testing.T) {
	s := besiege(t)
	forged, err := s.forge(func(p *gossip.Raw) { p.Members[0].Status, p.Members[1].Status = gossip.Down, gossip.Down })
	require.NoError(t, err)
	for _, n := range s.nodes[:2] {
		s.say(n, forged, true)
		require.NotNil(t, n.stopping)
		require.Equal(t, component.StopDowned, n.stopping.Reason)
		require.Zero(t, n.malformed())
	}
}

// A node that joins holds the state of its welcome to the same bounds.
// covers I35.
func TestHostileWelcomeIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*gossip.Raw){
		"counts": func(p *gossip.Raw) { p.LastUpNumber = 1 << 62 },
		"no voters": func(p *gossip.Raw) {
			p.Config = gossip.Voters{Gen: p.Config.Gen + 1, By: p.Config.By}
		},
	} {
		t.Run(name, func(t *testing.T) { requireWelcomeIsRefused(t, spoil) })
	}
}

func requireWelcomeIsRefused(t *testing.T, spoil func(*gossip.Raw)) {
	t.Helper()
	l := newLoop(t)
	l.cluster(2)
	l.drop = func(from, to gossip.NodeID, message any) bool {
		welcome, ok := message.(protocol.Welcome)
		if !ok {
			return false
		}
		p := welcome.State.Parts()
		spoil(&p)
		forged, err := gossip.FromParts(p)
		require.NoError(t, err)
		l.after(0, func() {
			l.nodes[to.Address].step(machine.Received{From: from, Message: protocol.Welcome{Attempt: welcome.Attempt, State: forged}})
		})
		return true
	}
	late := l.start(3, 3)
	late.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	l.run(3 * time.Second)
	require.NotZero(t, late.malformed())
	require.Empty(t, late.machine.State().Members(), "it is no member by such a state")
	l.drop = nil
	l.until(time.Minute, func() bool { return late.sees(3, gossip.Up) })
}

// The description that a joiner sends of itself is held to the bounds as well: it becomes
// part of the state of the member that lets it in. covers I35.
func TestHostileJoinerIsRefused(t *testing.T) {
	l := newLoop(t)
	nodes := l.cluster(2)
	l.drop = func(from, to gossip.NodeID, message any) bool {
		request, ok := message.(protocol.JoinRequest)
		if !ok || request.Member.Loaded.Version > 1 {
			return false
		}
		request.Member.Loaded.Version = 1 << 61
		l.send(from, to, request)
		return true
	}
	late := l.start(3, 3)
	late.step(protocol.Join{Seeds: []gossip.Address{address(1)}})
	l.run(3 * time.Second)
	require.NotNil(t, late.stopping)
	require.Equal(t, component.StopRefused, late.stopping.Reason)
	require.NotZero(t, nodes[0].malformed())
	require.True(t, nodes[0].sees(2, gossip.Up))
}

// Epochs of a joiner that leave no room for later ones are not taken over: the records
// of all members would hold a birth that no record may hold, and none could be read
// again.
// covers I35.
func TestAJoinerWhoseEpochsAreTheLastIsRefused(t *testing.T) {
	w := newTown(t, 2)
	w.settle(2)
	last := remembering(1)
	last.EpochBorn = gossip.LatestBirth
	w.disks[address(3)] = last
	late := w.boot(3)
	w.run(10 * time.Second)
	require.NotNil(t, late.stopping)
	require.Equal(t, component.StopRefused, late.stopping.Reason)
	require.NoError(t, w.disks[address(1)].Validate())

	last.EpochBorn--
	w.disks[address(4)] = last
	w.boot(4)
	w.until(20*time.Second, func() bool { return w.nodes[address(4)].sees(3, gossip.Up) })
	for i := range 2 {
		require.Equal(t, int64(gossip.LatestBirth), w.disks[address(i+1)].EpochBorn)
		require.NoError(t, w.disks[address(i+1)].Validate())
	}
}

// forgery reads what a rogue changes in the state that all have, from fuzz bytes.
func forgery(data []byte) func(*gossip.Raw) {
	next := func(limit int) int {
		if len(data) == 0 {
			return 0
		}
		b := data[0]
		data = data[1:]
		return int(b) % (limit + 1)
	}
	more := func(than uint64) uint64 { // No decoder takes more than the last one.
		by := []uint64{1, 2, 3, 4, 9, 1 << 32, 1<<40 - 9, 1 << 40, 1 << 50, 1 << 62}
		return min(than+by[next(len(by)-1)], 1<<62)
	}
	some := func(p *gossip.Raw) (nodes []gossip.NodeID) {
		for _, m := range p.Members {
			if next(3) > 0 {
				nodes = append(nodes, m.Node)
			}
		}
		return append(nodes, strangers(max(next(8)-5, 0))...)
	}
	times := []int64{1, 1_893_553_000_000, 1_893_553_000_000 + gossip.MaxClockSkew.Milliseconds(), 7_226_582_400_000}
	return func(p *gossip.Raw) {
		for range 1 + next(3) {
			m := p.Members[next(2)%len(p.Members)]
			switch next(11) {
			case 0:
				p.LastUpNumber = gossip.UpNumber(more(uint64(p.LastUpNumber)))
			case 1:
				p.LastUpNumber = gossip.UpNumber(more(uint64(p.LastUpNumber)))
				m.UpNumber = p.LastUpNumber
			case 2:
				entry := &p.Clock[next(2)%len(p.Clock)]
				entry.Count = more(entry.Count)
			case 3:
				p.Config = gossip.Voters{Gen: more(p.Config.Gen), By: m.Node.UID, Voters: some(p), Previous: some(p)}
			case 4:
				p.Downing.Gen = more(p.Downing.Gen)
			case 5:
				p.Downing.Gen = more(p.Downing.Gen)
				p.Downing.Previous, p.Downing.Name = p.Downing.DowningStrategy, "down-all"
			case 6:
				m.Loaded.Version = more(m.Loaded.Version)
				m.Loaded.Strategies = m.Loaded.Strategies[:next(1)]
			case 7:
				p.PrunedBefore = times[next(3)]
			case 8:
				gone := strangers(1 + next(1))
				p.Tombstones = nil
				for _, id := range gone {
					p.Tombstones = append(p.Tombstones, gossip.Tombstone{Node: id, Last: more(0), RemovedAt: times[next(3)]})
				}
			case 9:
				m.Status = gossip.Status(1 + next(8))
				if m.Status < gossip.Up {
					m.UpNumber = 0
				}
			case 11:
				p.EpochBorn = append(times, gossip.LatestBirth-1, gossip.LatestBirth)[next(5)]
			case 10:
				p.Members = append(p.Members, &gossip.Member{
					Node: strangers(9)[next(8)], Status: gossip.Up, UpNumber: 1, Loaded: m.Loaded,
				})
			}
		}
	}
}

// Whatever a member sends, a node refuses it and keeps its state, or passes on a state
// from which another node with the same knowledge refuses nothing. Nor do the two refuse
// anything of each other while they go on. covers I35.
func FuzzClosure(f *testing.F) {
	f.Add([]byte{})
	for typ := range byte(12) {
		for _, b := range []byte{0, 1, 5, 7, 8, 9, 255} {
			f.Add([]byte{0, 0, typ, b, b, b, b, b, b, b, b})
			f.Add([]byte{1, 2, typ, b, 1, 1, 1, b, 1, 1, 1, 1, 9, b, b})
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := besiege(t)
		forged, err := s.forge(forgery(data))
		if err != nil {
			return
		}
		a, b := s.nodes[0], s.nodes[1]
		before := a.machine.State()
		s.say(a, forged, len(data)%2 == 0)
		if a.malformed() > 0 {
			require.Same(t, before, a.machine.State(), "what is refused changes nothing")
			return
		}
		if a.dead || b.dead {
			return
		}
		state, err := gossip.FromParts(a.machine.State().Parts())
		require.NoError(t, err)
		b.step(machine.Received{From: a.id, Message: protocol.GossipState{State: state}})
		require.Zero(t, b.malformed(), "refused what %v made of it", a.id)
		s.nodes[2].dead = true
		s.drop = func(from, _ gossip.NodeID, message any) bool {
			require.NoError(t, decodes(message), "what %v says", from)
			return false
		}
		late := s.join(4)
		s.run(20 * time.Second)
		require.Zero(t, a.malformed()+b.malformed()+late.malformed())
	})
}

// decodes says why a receiver could not decode a message, as the codec checks it.
func decodes(message any) error {
	switch msg := message.(type) {
	case protocol.GossipState:
		_, err := gossip.FromParts(msg.State.Parts())
		return err
	case protocol.Welcome:
		_, err := gossip.FromParts(msg.State.Parts())
		return err
	case protocol.GossipDelta:
		return msg.Delta.Validate()
	case protocol.InitJoin:
		return msg.Claim.Record.Validate()
	case protocol.InitJoinAck:
		return msg.Claim.Record.Validate()
	case protocol.InitJoinNack:
		return msg.Claim.Record.Validate()
	case protocol.JoinRequest:
		return msg.Claim.Record.Validate()
	}
	return nil
}
