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

// Incoming gossip is first: whether it is taken ([gossiper.acceptGossip]), and what is
// done with a digest, a difference and a whole state. Outgoing gossip follows: news soon
// after a change ([gossiper.push]), a digest from time to time, or a fingerprint in place
// of it ([gossiper.round], [gossiper.compare]), and the state that a node sends before it
// ends ([gossiper.sendLastState]).

const (
	// maxOwed bounds the answers that one push carries besides the news to random
	// members: a member that sent news gets back what it lacks.
	maxOwed = 8

	// lastWordFanout is the number of members to which a node sends its state before it ends.
	lastWordFanout = 5
)

// gossiper sends the news of this node to other members, and takes theirs.
//
//	change -> wait push-delay -> differences to random members and to those owed
//	round  -> digest to one random member: repairs what a push lost
//	          while all have seen the state: a fingerprint with a heartbeat
type gossiper struct {
	*core

	peers      *gossipPeers
	monitoring *heartbeats
	strategies *strategies
	explainer  *endExplainer

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

	// lastAt is when the last push was; ever says that there was one, armed that the timer
	// for the next one runs.
	lastAt machine.Instant
	ever   bool
	armed  bool

	// unconverged says that rounds follow each other quickly, askedAt when the last round
	// was, asking that the next one was moved forward.
	unconverged bool
	askedAt     machine.Instant
	asking      bool
}

func newGossiper(c *core, contacts *gossipPeers, monitoring *heartbeats, strategies *strategies, ending *endExplainer) *gossiper {
	return &gossiper{
		core: c, peers: contacts, monitoring: monitoring, strategies: strategies, explainer: ending,
		known: map[gossip.NodeID]gossip.Digest{}, askedBack: map[gossip.NodeID]machine.Instant{},
	}
}

// forget drops what is known of a node that is no member any more.
func (s *gossiper) forget(n gossip.NodeID) {
	delete(s.known, n)
	delete(s.askedBack, n)
}

// owe notes that the next push goes to a member too, up to maxOwed of them.
func (s *gossiper) owe(to gossip.NodeID) {
	if !slices.Contains(s.owed, to) && len(s.owed) < maxOwed {
		s.owed = append(s.owed, to)
	}
}

// adopt makes a merged state this node's own.
func (s *gossiper) adopt(merged *gossip.State) {
	s.state = s.markSeen(merged.Restamp(s.self))
}

// acceptGossip tells whether gossip of a node is taken. A sender that is no member is
// told what it must know.
func (s *gossiper) acceptGossip(from gossip.NodeID, what string, cluster gossip.ClusterID) bool {
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
	s.peers.hear(from, s.now.Mono)
	s.explainer.noteNewsFrom(from)
	return true
}

func (s *gossiper) receiveStatus(from gossip.NodeID, msg GossipStatus) {
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
func (s *gossiper) askBack(to gossip.NodeID, theirs gossip.Digest) {
	s.tell(to, s.state.DigestFor(theirs))
}

// tell sends a member this node's digest, unless it was sent one within a push interval.
func (s *gossiper) tell(to gossip.NodeID, digest gossip.Digest) {
	if last, asked := s.askedBack[to]; asked && s.now.Mono < last.Add(s.cfg.PushInterval) {
		return
	}
	s.askedBack[to] = s.now.Mono
	s.out.Send(to, GossipStatus{Digest: digest})
}

func (s *gossiper) receiveDelta(from gossip.NodeID, msg GossipDelta) {
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

func (s *gossiper) receiveState(from gossip.NodeID, msg GossipState) {
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
func (s *gossiper) terms() gossip.Terms {
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
func (s *gossiper) oweNews(to gossip.NodeID, digest gossip.Digest) {
	switch s.state.CompareDigest(digest) {
	case gossip.Newer, gossip.Concurrent, gossip.Undecided:
		s.owe(to)
	case gossip.Same, gossip.SeenDiffers, gossip.Older, gossip.OtherCluster:
	}
}

// sendNews sends a member the difference to what it is believed to know.
func (s *gossiper) sendNews(to gossip.NodeID) {
	digest := s.state.Digest()
	s.out.Send(to, GossipDelta{Delta: s.state.DeltaTo(s.believed(to)), Digest: digest})
	s.known[to] = digest
}

// believed returns what a member is believed to know.
func (s *gossiper) believed(n gossip.NodeID) gossip.Digest {
	if digest, known := s.known[n]; known {
		return digest
	}
	return s.base
}

// schedulePush arms the timer for the next push if there is news.
func (s *gossiper) schedulePush() {
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
func (s *gossiper) push() {
	s.armed = false
	if s.phase != phaseMember {
		return
	}
	targets := s.owed
	if s.pushed != s.state {
		for _, peer := range s.peers.pick(s.cfg.PushFanout) {
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
func (s *gossiper) knows(node gossip.NodeID) bool {
	digest, ok := s.known[node]
	return ok && s.state.CompareDigest(digest) == gossip.Same
}

// round has one random member compare its state with that of this node.
func (s *gossiper) round() {
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
	for _, peer := range s.peers.pick(1) {
		s.counts.Rounds++
		s.out.Send(peer, GossipStatus{Digest: s.state.Digest()})
	}
}

// isQuiet tells whether a heartbeat with a fingerprint will do for the next round: all
// members that count have seen the state, and nobody has shown that there is another one.
// Whoever has news that this node lacks knows that this node has not seen it, and asks by
// itself. Where heartbeats are rarer than rounds they would make repairs slow.
func (s *gossiper) isQuiet() bool {
	return !s.unconverged && !s.asking && s.cfg.FailureDetector.HeartbeatInterval <= s.cfg.GossipInterval
}

// compare compares the fingerprint that came with a heartbeat with that of this node's state.
// If they differ the sender is sent this node's digest: which of the two lacks something is
// found by digests.
func (s *gossiper) compare(from gossip.NodeID, theirs gossip.Hash) {
	if theirs != 0 && s.phase == phaseMember && s.lives(from) && theirs != s.state.Fingerprint() {
		s.tell(from, s.state.Digest())
	}
}

// askSoon moves the next round forward: there is news that this node may not take from
// its sender.
func (s *gossiper) askSoon() {
	if !s.asking {
		s.asking = true
		s.out.Arm(timerRound, max(s.now.Mono, s.askedAt.Add(s.cfg.PushInterval)))
	}
}

// hurryRounds makes rounds follow quickly while there is no convergence.
func (s *gossiper) hurryRounds() {
	unconverged := !s.surveyed.converged && len(s.state.Members()) > 1
	if unconverged && !s.unconverged && !s.asking {
		s.out.Arm(timerRound, s.now.Mono.Add(s.cfg.GossipIntervalUnconverged))
	}
	s.unconverged = unconverged
}

// sendLastState sends the state by which this node ends to some members: the state in which it is down, so that
// the members that decided that need not spread it alone, or the one in which all exit. A receiver that cannot
// apply the difference cannot ask this node for more, so the difference does not build upon a base: only nodes
// that know that all had seen that base keep it.
func (s *gossiper) sendLastState() {
	for _, peer := range s.peers.pick(lastWordFanout) {
		s.out.Send(peer, GossipDelta{Delta: s.state.DeltaWithoutBase(s.believed(peer)), Digest: s.state.Digest()})
	}
}
