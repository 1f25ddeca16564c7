// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A relay asks all members for their word in rounds ([standingRelay.round]); each member answers
// and asks back ([standingRelay.receiveAsk]); the relay notes the word and lends its proof
// ([standingRelay.receiveGiven], [standingRelay.lend]); the member takes the proof
// ([standingRelay.receiveLent]). Who relays is at the end ([core.relays]).

const (
	// maxRelays is how many voters relay. Of five, four may die at once. How many of them ask
	// while all is well is relaysAtWork.
	maxRelays = 5

	// proofsPerInterval is how often a relay computes its own proof anew in a heartbeat
	// interval, at most: in a round it gets the word of each member.
	proofsPerInterval = 20
)

// standingRelay lends and borrows proofs of a majority in a cluster so large that no node monitors
// all voters. A few voters, the relays, ask all members. Each relay proves a majority by the
// answers, as a node of a small cluster does, and lends its proof with the proof's age:
//
//	relay  -> member  AskStanding   a question of a round
//	member -> relay   GiveStanding  its word, and how old is your proof?
//	relay  -> member  LendStanding  as old as this
//
// The member dates the proof from the moment at which it asked, less the proof's age, with the
// largest difference that the rates of the two clocks may have. So the fence of the member ends
// no later than if it had heard the majority itself. A proof that was lent is never lent again.
//
// Each node computes for itself which voters relay. If nodes disagree, that costs standing or
// messages and no safety: whoever removes a node counts every voter as one that may have lent
// to it.
type standingRelay struct {
	*core

	answers    *answers
	replies    *replies
	strategies *strategies

	// rounds are the rounds of questions that this node asked members as a relay, questions the
	// ones that it asked relays.
	rounds    questionLog
	questions questionLog

	// believes tells whether a voter relays, as far as this node knows.
	believes func(voter *gossip.Member) bool

	// order are the relays in the order in which they are taken, as found in orderOf; nil:
	// they must be found again.
	order   []*gossip.Member
	orderOf *gossip.State

	// asks are the members that this node asks, sorted; none if it does not relay.
	asks []gossip.NodeID

	// base and relays are what asks followed from.
	base   gossip.Base
	relays bool

	// roundAt is when this node last asked all members, words is how many of them have answered,
	// and owed are the questions that wait until the answers are a majority.
	roundAt machine.Instant
	words   int
	owed    []owedReply

	// own are this node's own proofs: from the answers with standing, and from all answers
	// of nodes that know it. They were computed at ownAt for the base provedFor.
	own, ownKnown proofInstants
	ownAt         machine.Instant
	provedFor     gossip.Base

	// lent are the best proofs that were lent to this node for its standing, lentKnown
	// those that only show contact.
	lent, lentKnown proofInstants

	// standby says which of the relays ask.
	standby standby
}

// proofInstants are the moments, by this node's clock, at which something was last proven; zero,
// which is longer ago than any limit, if it never was.
type proofInstants struct {
	// majority is the latest moment such that the node and those that were heard since win
	// in every set of the base.
	majority machine.Instant
	// all is the latest moment since which every voter was heard that is not down.
	all machine.Instant
}

func (p *proofInstants) raise(majority, all machine.Instant) {
	p.majority, p.all = max(p.majority, majority), max(p.all, all)
}

// owedReply is the question of a member how old this node's proof is, which is not answered yet.
type owedReply struct {
	to       gossip.NodeID
	question uint64
}

// questionLog numbers questions, and remembers when the last roundsKept of them were sent.
type questionLog struct {
	sequence uint64
	sent     []sentQuestion // A ring by sequence; nil before the first question, as most nodes ask none.
}

// sentQuestion is when a question was sent, and to whom.
type sentQuestion struct {
	sequence uint64
	at       machine.Instant
	to       gossip.NodeID // Zero: to several.
}

func (a *questionLog) begin(at machine.Instant, to gossip.NodeID) uint64 {
	if a.sent == nil {
		a.sent = make([]sentQuestion, roundsKept)
	}
	a.sequence++
	slot := &a.sent[a.sequence%roundsKept]
	slot.sequence, slot.at, slot.to = a.sequence, at, to
	return a.sequence
}

// sentAt returns when a question was sent to a node, if that is remembered.
func (a *questionLog) sentAt(sequence uint64, to gossip.NodeID) (machine.Instant, bool) {
	if a.sent == nil {
		return 0, false
	}
	slot := a.sent[sequence%roundsKept]
	return slot.at, sequence != 0 && slot.sequence == sequence && slot.to == to
}

func newStandingRelay(c *core, a *answers, p *replies, s *strategies) *standingRelay {
	r := &standingRelay{core: c, answers: a, replies: p, strategies: s}
	r.believes = func(voter *gossip.Member) bool { return slices.Contains(r.believed(), voter) }
	return r
}

// observe begins or ends relaying after a change of the state. A node that begins, or finds
// that the voters have changed, asks at once.
func (r *standingRelay) observe() {
	if !r.surveyed.same {
		r.orderOf = nil
		r.forgetAskers()
	}
	r.beginOrEnd()
}

// believed returns the relays as far as this node knows.
func (r *standingRelay) believed() []*gossip.Member {
	if r.orderOf != r.state {
		r.order, r.orderOf = r.relaysOf(r.state), r.state
	}
	return r.order
}

// beginOrEnd determines again whether this node relays. If it begins to, it asks at once.
func (r *standingRelay) beginOrEnd() {
	before, relays := r.relays, r.isRelay()
	if r.surveyed.same && before == relays {
		return
	}
	news := !sameBase(r.base, r.surveyed.base)
	r.base, r.relays = r.surveyed.base, relays
	if r.relays && (news || !before) {
		r.round()
	} else if !r.relays {
		r.asks = nil
	}
}

// round asks all members for their word, if it is for this node to do so.
func (r *standingRelay) round() {
	r.lendOwed()
	r.relays = r.isRelay()
	r.asks = r.asks[:0]
	if !r.relays {
		r.callStandbys()
		return
	}
	r.roundAt, r.words = r.now.Mono, 0
	voter := r.cfg.Voters.admit(r.state.Member(r.self))
	ask := AskStanding{Sequence: r.rounds.begin(r.now.Mono, gossip.NodeID{})}
	for _, member := range r.state.Members() {
		if member.Node != r.self && member.Status != gossip.Down && (voter || r.cfg.Voters.admit(member)) {
			r.asks = append(r.asks, member.Node)
			r.out.Send(member.Node, ask)
		}
	}
}

// receiveAsk answers a relay, and asks it how old its proof is.
func (r *standingRelay) receiveAsk(from gossip.NodeID, msg AskStanding) {
	if r.phase != phaseMember {
		r.refuseSilently(RefusedNotReady)
		return
	}
	if r.dismiss(from) {
		return
	}
	member := r.state.Member(from)
	if member == nil {
		r.refuseSilently(RefusedNotMember) // Usually the news that it joined is under way.
		return
	}
	r.noteAsk(from)
	known, standing := r.replies.grants(member)
	r.out.Send(from, GiveStanding{
		Sequence: msg.Sequence, Known: known, Standing: standing, Question: r.questions.begin(r.now.Mono, from),
	})
}

// receiveGiven notes the word of a member, and lends it this node's proof as soon as that
// rests on answers to the same round: the proof before is an interval older. It reports
// whether the answer was asked for.
func (r *standingRelay) receiveGiven(from gossip.NodeID, msg GiveStanding) bool {
	if msg.Sequence == 0 {
		r.receiveCall(from)
		return false
	}
	sentAt, ok := r.rounds.sentAt(msg.Sequence, gossip.NodeID{})
	_, asks := slices.BinarySearchFunc(r.asks, from, gossip.NodeID.Compare)
	if r.phase != phaseMember || !ok || !asks {
		r.refuseSilently(RefusedUnsolicited)
		return false
	}
	if msg.Standing {
		r.answers.answered(from, sentAt)
	}
	if msg.Known {
		r.answers.isKnownTo(from, sentAt)
	}
	if len(r.owed) < len(r.asks) { // Bounded: a member that answers twice need not be answered twice.
		r.words++
		r.owed = append(r.owed, owedReply{from, msg.Question})
	}
	if r.hasProvedRound() {
		r.lendOwed()
	}
	return true
}

// hasProvedRound tells whether this node's proof rests on answers to its last round. It
// computes the proof as soon as so many have answered that they may be a majority.
func (r *standingRelay) hasProvedRound() bool {
	if proved := r.own.majority >= r.roundAt && sameBase(r.provedFor, r.surveyed.base); proved {
		return true
	}
	if !couldWin(r.surveyed.base, 1+r.words) {
		return false
	}
	if !couldWin(r.surveyed.base, r.words) {
		r.ownAt = 0 // The first time, however short ago the last proof was computed.
	}
	r.prove()
	return r.own.majority >= r.roundAt
}

// lendOwed answers the questions that wait.
func (r *standingRelay) lendOwed() {
	for _, d := range r.owed {
		r.lend(d.to, d.question)
	}
	r.owed = r.owed[:0]
}

// lend tells a member how old this node's own proof is. A member gets standing by it only
// if this node would answer its heartbeat with standing, and if all know that there are so
// many voters that proofs are lent. Who hosts nothing any more lends nothing: the others
// may not wait until it has heard who was removed.
func (r *standingRelay) lend(to gossip.NodeID, question uint64) {
	member, me := r.state.Member(to), r.state.Member(r.self)
	if member == nil || me == nil || !r.isVoter(me) || r.hosting.dropped {
		return
	}
	known, standing := r.replies.grants(member)
	if !known {
		return
	}
	r.prove()
	by, standing := r.ownKnown, standing && r.hasManyVoters()
	if standing {
		by = r.own
	}
	lent := LendStanding{Question: question, Standing: standing, Proof: r.ageOf(by.majority, r.cfg.Fence), All: NoProof}
	if !r.strategies.majorityOnly() {
		lent.All = r.ageOf(by.all, r.undecidedMargin())
	}
	if lent.Proof != NoProof || lent.All != NoProof {
		r.out.Send(to, lent)
	}
}

// ageOf returns the age of a proof, rounded up as the wire carries it.
func (r *standingRelay) ageOf(at machine.Instant, limit time.Duration) time.Duration {
	age := max(r.now.Mono.Sub(min(at, r.now.Mono)), 0)
	if at == 0 || age > limit {
		return NoProof
	}
	return (age + time.Millisecond - 1).Truncate(time.Millisecond)
}

// receiveLent takes a proof that a relay has lent to this node. It reports whether the proof was
// asked for.
func (r *standingRelay) receiveLent(from gossip.NodeID, msg LendStanding) bool {
	asked, ok := r.questions.sentAt(msg.Question, from)
	if r.phase != phaseMember || !ok {
		r.refuseSilently(RefusedUnsolicited)
		return false
	}
	since := func(age time.Duration) machine.Instant {
		if age == NoProof {
			return 0
		}
		return asked.Add(-byAnyClock(age))
	}
	r.lentKnown.raise(since(msg.Proof), since(msg.All))
	if msg.Standing {
		r.lent.raise(since(msg.Proof), since(msg.All))
		r.moveStanding()
	}
	return true
}

// prove computes this node's own proofs, if those that it has are old, and reports whether
// they were. The proofs stay true if they are not.
func (r *standingRelay) prove() bool {
	pace := r.cfg.FailureDetector.HeartbeatInterval / proofsPerInterval
	if r.ownAt != 0 && r.now.Mono.Sub(r.ownAt) < pace && sameBase(r.provedFor, r.surveyed.base) {
		return false
	}
	r.ownAt, r.provedFor = r.now.Mono, r.surveyed.base
	r.own, r.ownKnown = r.provedBy(r.answers.contact), r.provedBy(r.answers.known)
	return true
}

func (r *standingRelay) provedBy(heard map[gossip.NodeID]machine.Instant) proofInstants {
	var p proofInstants
	if q, ok := lastWin(r.self, r.surveyed.base, r.living(heard)); ok {
		p.majority = q
	}
	if !r.strategies.majorityOnly() {
		p.all = r.lastOfAll(func(n gossip.NodeID) machine.Instant { return heard[n] })
	}
	return p
}

// isRelay tells whether this node asks others now. While some set of voters is small, each node
// that hosts proves a majority of that set by itself.
func (r *standingRelay) isRelay() bool {
	me := r.state.Member(r.self)
	switch {
	case r.phase != phaseMember || me == nil || !votes(me) || !r.monitorsSome():
		return false
	case !r.hasManyVoters():
		return r.isEstablished(me)
	}
	return r.isVoter(me) && r.believes(me) && !r.standsBy()
}

// relaysOf returns the members that relay, as far as this node knows: the oldest voters,
// one a zone in turn, without those that are leaving or that somebody cannot reach, unless
// there are too few others.
func (c *core) relaysOf(s *gossip.State) []*gossip.Member {
	var relays []*gossip.Member
	taken := map[string]int{}
	for len(relays) < maxRelays {
		var best *gossip.Member
		for _, m := range s.Members() {
			// Whether a member votes takes longest to find, and is asked of few.
			if (best == nil || c.relaysBefore(m, best, taken)) && !slices.Contains(relays, m) && c.isVoter(m) {
				best = m
			}
		}
		if best == nil {
			break
		}
		relays = append(relays, best)
		taken[best.Zone]++
	}
	return relays
}

// relaysBefore reports whether a is taken as a relay before b, where taken counts the relays of
// each zone.
func (c *core) relaysBefore(a, b *gossip.Member, taken map[string]int) bool {
	if x, y := c.isUnfit(a), c.isUnfit(b); x != y {
		return y
	}
	if x, y := taken[a.Zone], taken[b.Zone]; x != y {
		return x < y
	}
	return a.OlderThan(b)
}

// isUnfit tells whether a voter relays only where there are too few others.
func (c *core) isUnfit(m *gossip.Member) bool { return m.Status >= gossip.Leaving || c.isLost(m.Node) }
