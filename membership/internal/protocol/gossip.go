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

// Incoming gossip is first: whether it is taken ([spreading.acceptGossip]), and what is
// done with a digest, a difference and a whole state. Outgoing gossip follows: news soon
// after a change ([spreading.push]), a digest from time to time, or a fingerprint in place
// of it ([spreading.round], [spreading.compare]), the last word of a node
// ([spreading.spreadWord]).

const (
	// owedMax bounds the answers that one push carries besides the news to random
	// members: a member that sent news gets back what it lacks.
	owedMax = 8

	// lastWordFanout is the number of members that a node tells when it learns that it is
	// down.
	lastWordFanout = 5
)

// spreading is how news leaves this node, and how that of others is taken.
//
//	change -> wait push-delay -> differences to random members and to those owed
//	round  -> digest to one random member: repairs what a push lost
//	          while all have seen the state: a fingerprint with a heartbeat
type spreading struct {
	*core

	contacts   *contacts
	monitoring *heartbeats
	strategies *strategies
	ending     *ending

	// known is what each member is believed to know. The belief may be wrong, since
	// messages get lost; then the member does not understand the difference, and its
	// answer corrects the belief.
	known map[gossip.NodeID]gossip.Digest

	// askedBack is when this node last sent each member its digest in answer to a message
	// of that member.
	askedBack map[gossip.NodeID]machine.Instant

	// owed are the members that lack news that this node has.
	owed []gossip.NodeID

	// pushed is the state that the last push spread. base is its digest, which members
	// are believed to know of which nothing else is known.
	pushed *gossip.State
	base   gossip.Digest

	// lastAt is when the last push was, ever whether there was one, armed whether the
	// timer for the next one runs.
	lastAt machine.Instant
	ever   bool
	armed  bool

	// unconverged says that rounds follow each other quickly, askedAt when the last round
	// was, asking that the next one was moved forward.
	unconverged bool
	askedAt     machine.Instant
	asking      bool
}

func newSpreading(c *core, contacts *contacts, monitoring *heartbeats, strategies *strategies, ending *ending) *spreading {
	return &spreading{
		core: c, contacts: contacts, monitoring: monitoring, strategies: strategies, ending: ending,
		known: map[gossip.NodeID]gossip.Digest{}, askedBack: map[gossip.NodeID]machine.Instant{},
	}
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

// adopt makes a merged state this node's own.
func (s *spreading) adopt(merged *gossip.State) {
	s.state = s.markSeen(merged.Restamp(s.self))
}

// acceptGossip tells whether gossip of a node is taken. A sender that is no member is
// told what it must know.
func (s *spreading) acceptGossip(from gossip.NodeID, what string, cluster gossip.ClusterID) bool {
	switch {
	case s.phase != phaseMember:
		s.refuseSilently(RefusedNotReady)
		return false
	case cluster != s.state.Cluster():
		s.refuse(from, what, RefusedCluster, fmt.Sprintf("the sender is in cluster %v", cluster))
		return false
	case s.dismiss(from):
		return false
	case s.state.Member(from) == nil:
		// Usually the news that the sender joined is still under way: some known member
		// has it.
		s.askSoon()
		s.refuse(from, what, RefusedNotMember, "the sender is not known as a member")
		return false
	}
	s.contacts.hear(from, s.now.Mono)
	s.ending.heard(from)
	return true
}

func (s *spreading) receiveStatus(from gossip.NodeID, msg GossipStatus) {
	if !s.acceptGossip(from, "GossipStatus", msg.Digest.Cluster) {
		return
	}
	s.known[from] = msg.Digest
	switch s.state.CompareDigest(msg.Digest) {
	case gossip.SeenDiffers, gossip.Newer:
		s.sendNews(from)
	case gossip.Concurrent:
		s.sendNews(from)
		s.askBack(from, msg.Digest)
	case gossip.Older, gossip.Undecided:
		s.askBack(from, msg.Digest)
	case gossip.Same, gossip.OtherCluster:
		// The cluster was compared before.
	}
}

// askBack sends a member this node's digest, so that the member sends what this node
// lacks, at most once in a push interval. Two members that each lack something would
// otherwise go on sending each other digests for as long as the differences between them
// are lost or refused, and each round would begin one more such conversation. Rounds
// repair what is left out.
func (s *spreading) askBack(to gossip.NodeID, theirs gossip.Digest) {
	s.tell(to, s.state.DigestFor(theirs))
}

// tell sends a member this node's digest, unless it was sent one within a push interval.
func (s *spreading) tell(to gossip.NodeID, digest gossip.Digest) {
	if last, asked := s.askedBack[to]; asked && s.now.Mono < last.Add(s.cfg.PushInterval) {
		return
	}
	s.askedBack[to] = s.now.Mono
	s.out.Send(to, GossipStatus{Digest: digest})
}

func (s *spreading) receiveDelta(from gossip.NodeID, msg GossipDelta) {
	if !s.acceptGossip(from, "GossipDelta", msg.Digest.Cluster) {
		return
	}
	next, err := s.state.AcceptDelta(msg.Delta, s.terms())
	if err == nil {
		err = s.kept.canHold(next)
	}
	switch {
	case errors.Is(err, gossip.ErrNotCovered):
		s.known[from] = msg.Digest
		s.askBack(from, msg.Digest)
		return
	case err != nil:
		s.refuse(from, "GossipDelta", RefusedMalformed, err.Error())
		return
	}
	s.known[from] = msg.Digest
	s.adopt(next)
	s.oweNews(from, msg.Digest)
}

func (s *spreading) receiveState(from gossip.NodeID, msg GossipState) {
	if !s.acceptGossip(from, "GossipState", msg.State.Cluster()) {
		return
	}
	next, err := s.state.Accept(msg.State, s.terms())
	if err == nil {
		err = s.kept.canHold(next)
	}
	if err != nil {
		s.refuse(from, "GossipState", RefusedMalformed, err.Error())
		return
	}
	digest := msg.State.Digest()
	s.known[from] = digest
	s.adopt(next)
	s.oweNews(from, digest)
}

// terms returns what this node checks the news of others against. News that it refuses is
// refused from every sender, since the news does not say which member had it first.
func (s *spreading) terms() gossip.Terms {
	t := gossip.Terms{Now: s.now.Wall, Base: s.surveyed.base, Votes: s.isVoter}
	if me := s.state.Member(s.self); me != nil && me.Status >= gossip.Up && me.Status < gossip.Leaving {
		t.Loaded = func(id gossip.StrategyID) bool { return s.strategies.find(id) != nil }
	}
	return t
}

// oweNews notes that a member whose digest came with news lacks something of the result.
// The answer leaves with the next push, which merges it with others. A member that lacks
// only entries of the seen set gets no reply: replying would double the traffic of a
// large cluster, and would not speed up convergence. Rounds repair what is missed.
func (s *spreading) oweNews(to gossip.NodeID, digest gossip.Digest) {
	switch s.state.CompareDigest(digest) {
	case gossip.Newer, gossip.Concurrent, gossip.Undecided:
		s.owe(to)
	case gossip.Same, gossip.SeenDiffers, gossip.Older, gossip.OtherCluster:
	}
}

// sendNews sends a member the difference to what it is believed to know.
func (s *spreading) sendNews(to gossip.NodeID) {
	digest := s.state.Digest()
	s.out.Send(to, GossipDelta{Delta: s.state.DeltaTo(s.believed(to)), Digest: digest})
	s.known[to] = digest
}

// believed returns what a member is believed to know.
func (s *spreading) believed(n gossip.NodeID) gossip.Digest {
	if digest, known := s.known[n]; known {
		return digest
	}
	return s.base
}

// schedulePush arms the timer for the next push if there is news.
func (s *spreading) schedulePush() {
	if len(s.state.Members()) == 1 {
		s.pushed, s.owed = s.state, nil
		return
	}
	if s.armed || s.pushed == s.state && len(s.owed) == 0 {
		return
	}
	at := s.now.Mono.Add(s.cfg.PushDelay)
	if s.ever {
		at = max(at, s.lastAt.Add(s.cfg.PushInterval))
	}
	s.armed = true
	s.out.Arm(timerPush, at)
}

// push sends the news to random members and to the members that are owed an answer.
func (s *spreading) push() {
	s.armed = false
	if s.phase != phaseMember {
		return
	}
	targets := s.owed
	if s.pushed != s.state {
		for _, peer := range s.contacts.peers(s.cfg.PushFanout) {
			if !slices.Contains(targets, peer) {
				targets = append(targets, peer)
			}
		}
	}
	s.owed = nil
	told := false
	for _, to := range targets {
		if s.state.Member(to) != nil && !s.knows(to) {
			s.sendNews(to)
			told = true
		}
	}
	if told {
		s.counts.Pushes++
	}
	s.pushed, s.base, s.lastAt, s.ever = s.state, s.state.Digest(), s.now.Mono, true
}

// knows tells whether a member is believed to know all that this node knows.
func (s *spreading) knows(node gossip.NodeID) bool {
	digest, ok := s.known[node]
	return ok && s.state.CompareDigest(digest) == gossip.Same
}

// round has one random member compare its state with that of this node.
func (s *spreading) round() {
	if s.phase != phaseMember {
		return
	}
	interval, quiet := s.cfg.GossipInterval, s.isQuiet()
	if s.unconverged {
		interval = s.cfg.GossipIntervalUnconverged
	}
	s.out.Arm(timerRound, s.now.Mono.Add(interval))
	s.askedAt, s.asking = s.now.Mono, false
	if quiet {
		for _, peer := range s.state.PeersAmong(s.self, s.deps.Rand, 1, s.monitoring.monitors) {
			s.counts.Rounds++
			s.monitoring.show(peer)
		}
		return
	}
	for _, peer := range s.contacts.peers(1) {
		s.counts.Rounds++
		s.out.Send(peer, GossipStatus{Digest: s.state.Digest()})
	}
}

// isQuiet tells whether a heartbeat with a fingerprint will do for the next round: all
// members that count have seen the state, and nobody has shown that there is another one.
// Whoever has news that this node lacks knows that this node has not seen it, and asks by
// itself. Where heartbeats are rarer than rounds they would make repairs slow.
func (s *spreading) isQuiet() bool {
	return !s.unconverged && !s.asking && s.cfg.FailureDetector.HeartbeatInterval <= s.cfg.GossipInterval
}

// compare looks at the fingerprint that came with a heartbeat. A member whose state differs
// is sent this node's digest. Nothing is believed of a fingerprint: which of the two lacks
// something is found by digests.
func (s *spreading) compare(from gossip.NodeID, theirs gossip.Hash) {
	if theirs != 0 && s.phase == phaseMember && s.lives(from) && theirs != s.state.Fingerprint() {
		s.tell(from, s.state.Digest())
	}
}

// askSoon moves the next round forward: there is news that this node may not take from
// its sender.
func (s *spreading) askSoon() {
	if !s.asking {
		s.asking = true
		s.out.Arm(timerRound, max(s.now.Mono, s.askedAt.Add(s.cfg.PushInterval)))
	}
}

// hurryRounds makes rounds follow quickly while there is no convergence.
func (s *spreading) hurryRounds() {
	unconverged := !s.surveyed.converged && len(s.state.Members()) > 1
	if unconverged && !s.unconverged && !s.asking {
		s.out.Arm(timerRound, s.now.Mono.Add(s.cfg.GossipIntervalUnconverged))
	}
	s.unconverged = unconverged
}

// spreadWord is what a node sends last: it passes on the state in which it is down, so
// that the members that decided it need not spread it alone, or in which all exit. Who cannot read it has nobody to
// ask, so it does not build upon a base, which a node keeps that knows that all had seen a state: others may not know.
func (s *spreading) spreadWord() {
	for _, peer := range s.contacts.peers(lastWordFanout) {
		s.out.Send(peer, GossipDelta{Delta: s.state.DeltaWithoutBase(s.believed(peer)), Digest: s.state.Digest()})
	}
}
