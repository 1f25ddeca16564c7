// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

const (
	// owedMax bounds the answers that one push carries besides the random
	// members: whoever told this node something gets back what it lacks.
	owedMax = 8

	// lastWordFanout is the number of members that a node tells last when it
	// learns that it is down.
	lastWordFanout = 5
)

// spreading is how news leaves this node.
//
//	change -> wait push-delay -> differences to random members and to those owed
//	round  -> digest to one random member: repairs what a push lost
type spreading struct {
	// known is what each member is believed to know. It may be wrong, since a
	// message may be lost; then the difference is not understood and the answer
	// sets it right.
	known map[gossip.NodeID]gossip.Digest

	// askedBack is when this node last told each member what it knows because of what
	// the member had sent.
	askedBack map[gossip.NodeID]machine.Instant

	owed   []gossip.NodeID // Who lacks news that this node has.
	pushed *gossip.State   // The state that the last push spread.
	base   gossip.Digest   // Its digest: what a member is believed to know of whom nothing is known.
	lastAt machine.Instant // The time of the last push.
	ever   bool            // Whether there was one.
	armed  bool

	unconverged bool            // Whether rounds are quick.
	askedAt     machine.Instant // The time of the last round.
	asking      bool            // The next one was moved forward.
}

func (s *spreading) init() {
	s.known, s.askedBack = map[gossip.NodeID]gossip.Digest{}, map[gossip.NodeID]machine.Instant{}
}

func (s *spreading) forget(n gossip.NodeID) {
	delete(s.known, n)
	delete(s.askedBack, n)
}

func (s *spreading) owe(to gossip.NodeID) {
	if !slices.Contains(s.owed, to) && len(s.owed) < owedMax {
		s.owed = append(s.owed, to)
	}
}

// edit makes an edit of this node.
func (m *Machine) edit(change func(*gossip.Edit)) {
	m.state = m.markSeen(m.state.Edit(m.self, change))
}

// adopt makes a state that was merged this node's own.
func (m *Machine) adopt(merged *gossip.State) {
	m.state = m.markSeen(merged.Restamp(m.self))
}

// acceptGossip tells whether gossip of a node is taken. Others are told what
// they have to know.
func (m *Machine) acceptGossip(from gossip.NodeID, what string, cluster gossip.ClusterID) bool {
	switch {
	case m.phase != phaseMember:
		m.refused[RefusedNotReady]++
		return false
	case cluster != m.state.Cluster():
		m.refuse(from, what, RefusedCluster, fmt.Sprintf("the sender is in cluster %v", cluster))
		return false
	case m.dismiss(from):
		return false
	case m.state.Member(from) == nil:
		// Usually news of its joining is still under way: somebody known has it.
		m.askSoon()
		m.refuse(from, what, RefusedNotMember, "the sender is not known as a member")
		return false
	}
	m.contacts.hear(from, m.now.Mono)
	m.ending.heard(from)
	return true
}

func (m *Machine) receiveStatus(from gossip.NodeID, msg GossipStatus) {
	if !m.acceptGossip(from, "GossipStatus", msg.Digest.Cluster) {
		return
	}
	m.spread.known[from] = msg.Digest
	switch m.state.CompareDigest(msg.Digest) {
	case gossip.SeenDiffers, gossip.Newer:
		m.sendNews(from)
	case gossip.Concurrent:
		m.sendNews(from)
		m.askBack(from, msg.Digest)
	case gossip.Older, gossip.Undecided:
		m.askBack(from, msg.Digest)
	case gossip.Same, gossip.OtherCluster:
		// The cluster was compared before.
	}
}

// askBack tells a member what this node knows, so that it sends what it knows besides:
// once in a push interval. Two who each lack something would else go on telling each
// other for as long as the differences between them are lost, or refused, and each round
// would begin one more of such conversations. What is left out the next round repairs.
func (m *Machine) askBack(to gossip.NodeID, theirs gossip.Digest) {
	if last, asked := m.spread.askedBack[to]; asked && m.now.Mono < last.Add(m.cfg.PushInterval) {
		return
	}
	m.spread.askedBack[to] = m.now.Mono
	m.out.Send(to, GossipStatus{Digest: m.state.DigestFor(theirs)})
}

func (m *Machine) receiveDelta(from gossip.NodeID, msg GossipDelta) {
	if !m.acceptGossip(from, "GossipDelta", msg.Digest.Cluster) {
		return
	}
	next, err := m.state.AcceptDelta(msg.Delta, m.terms())
	if err == nil {
		err = m.memory.wanted.canHold(next)
	}
	switch {
	case errors.Is(err, gossip.ErrNotCovered):
		m.spread.known[from] = msg.Digest
		m.askBack(from, msg.Digest)
		return
	case err != nil:
		m.refuse(from, "GossipDelta", RefusedMalformed, err.Error())
		return
	}
	m.spread.known[from] = msg.Digest
	m.adopt(next)
	m.owe(from, msg.Digest)
}

func (m *Machine) receiveState(from gossip.NodeID, msg GossipState) {
	if !m.acceptGossip(from, "GossipState", msg.State.Cluster()) {
		return
	}
	next, err := m.state.Accept(msg.State, m.terms())
	if err == nil {
		err = m.memory.wanted.canHold(next)
	}
	if err != nil {
		m.refuse(from, "GossipState", RefusedMalformed, err.Error())
		return
	}
	digest := msg.State.Digest()
	m.spread.known[from] = digest
	m.adopt(next)
	m.owe(from, digest)
}

// terms are what this node holds news from others against. What it refuses it
// refuses from everybody: who said it first is not known.
func (m *Machine) terms() gossip.Terms {
	t := gossip.Terms{Now: m.now.Wall, Base: m.footing.base, Votes: m.isVoter}
	if me := m.state.Member(m.self); me != nil && me.Status >= gossip.Up && me.Status < gossip.Leaving {
		t.Loaded = func(id gossip.StrategyID) bool { return m.strategies.find(id) != nil }
	}
	return t
}

// owe notes that a member whose digest came with news lacks something of the
// result. The answer leaves with the next push, which merges it with others. Who
// lacks nothing but who else has seen the state is not answered: while that comes
// together in a large cluster, every message would bring one more back, and it comes
// together hardly sooner for it. Rounds repair what is missed.
func (m *Machine) owe(to gossip.NodeID, digest gossip.Digest) {
	switch m.state.CompareDigest(digest) {
	case gossip.Newer, gossip.Concurrent, gossip.Undecided:
		m.spread.owe(to)
	case gossip.Same, gossip.SeenDiffers, gossip.Older, gossip.OtherCluster:
	}
}

// sendNews sends a member the difference to what it is believed to know.
func (m *Machine) sendNews(to gossip.NodeID) {
	digest := m.state.Digest()
	theirs, known := m.spread.known[to]
	if !known {
		theirs = m.spread.base
	}
	m.out.Send(to, GossipDelta{Delta: m.state.DeltaTo(theirs), Digest: digest})
	m.spread.known[to] = digest
}

// schedulePush arms the timer for the next push if there is news.
func (m *Machine) schedulePush() {
	s := &m.spread
	if len(m.state.Members()) == 1 {
		s.pushed, s.owed = m.state, nil
		return
	}
	if s.armed || s.pushed == m.state && len(s.owed) == 0 {
		return
	}
	at := m.now.Mono.Add(m.cfg.PushDelay)
	if s.ever {
		at = max(at, s.lastAt.Add(m.cfg.PushInterval))
	}
	s.armed = true
	m.out.Arm(timerPush, at)
}

// push sends the news to random members, and to those who are owed something.
func (m *Machine) push() {
	s := &m.spread
	s.armed = false
	if m.phase != phaseMember {
		return
	}
	targets := s.owed
	if s.pushed != m.state {
		for _, peer := range m.peers(m.cfg.PushFanout) {
			if !slices.Contains(targets, peer) {
				targets = append(targets, peer)
			}
		}
	}
	s.owed = nil
	told := false
	for _, to := range targets {
		if m.state.Member(to) != nil && !m.knows(to) {
			m.sendNews(to)
			told = true
		}
	}
	if told {
		m.counts.Pushes++
	}
	s.pushed, s.base, s.lastAt, s.ever = m.state, m.state.Digest(), m.now.Mono, true
}

// knows tells whether a member is believed to know all that this node knows.
func (m *Machine) knows(node gossip.NodeID) bool {
	digest, ok := m.spread.known[node]
	return ok && m.state.CompareDigest(digest) == gossip.Same
}

// round tells one random member what this node knows.
func (m *Machine) round() {
	if m.phase != phaseMember {
		return
	}
	interval := m.cfg.GossipInterval
	if m.spread.unconverged {
		interval = m.cfg.GossipIntervalUnconverged
	}
	m.out.Arm(timerRound, m.now.Mono.Add(interval))
	m.spread.askedAt, m.spread.asking = m.now.Mono, false
	for _, peer := range m.peers(1) {
		m.counts.Rounds++
		m.out.Send(peer, GossipStatus{Digest: m.state.Digest()})
	}
}

// askSoon moves the next round forward, because there is news that this node may
// not take from the one that sent it.
func (m *Machine) askSoon() {
	if s := &m.spread; !s.asking {
		s.asking = true
		m.out.Arm(timerRound, max(m.now.Mono, s.askedAt.Add(m.cfg.PushInterval)))
	}
}

// hurryRounds makes rounds quick while there is no convergence.
func (m *Machine) hurryRounds() {
	unconverged := !m.lead.converged && len(m.state.Members()) > 1
	if unconverged && !m.spread.unconverged && !m.spread.asking {
		m.out.Arm(timerRound, m.now.Mono.Add(m.cfg.GossipIntervalUnconverged))
	}
	m.spread.unconverged = unconverged
}

// spreadWord is what a node says last: it passes the state on in which it is
// down, so that those who decided it need not be the only ones who tell.
func (m *Machine) spreadWord() {
	for _, peer := range m.peers(lastWordFanout) {
		m.sendNews(peer)
	}
}
