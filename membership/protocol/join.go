// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// joining is what a node without a cluster knows about its search for one.
//
//	     .---- back-off ----.
//	     v                  |
//	InitJoin to seeds and --+-- who answer are in no cluster --> a vote, see forming.go
//	remembered voters
//	     |   ^
//	 ack |   | refused for now, or no answer for long
//	     v   |
//	JoinRequest to one -- Welcome --> record on disk --> member
//	     |
//	     '-- refused for good --> stop
type joining struct {
	seeds    []gossip.Address
	attempt  uint64        // Numbers the searches; answers to earlier ones are late.
	asked    int           // Questions asked since the last answer, for the back-off.
	target   gossip.NodeID // The member that was asked to let this node join, if any.
	cluster  gossip.ClusterID
	hopeless []gossip.Address // The seeds that refuse this node for good.
	form     forming

	entering *gossip.State // What this node becomes a member by, once that is on disk.

	joinedAt machine.Instant // When the node became a member.
}

func (j *joining) others(self gossip.Address) []gossip.Address {
	return slices.DeleteFunc(slices.Clone(j.seeds), func(a gossip.Address) bool { return a == self })
}

// whomToAsk returns the addresses of the seed nodes and of the voters that this node, or
// somebody who answered, remembers. They are sorted.
func (m *Machine) whomToAsk() []gossip.Address {
	all := slices.Concat(m.join.seeds, m.memory.wanted.addresses())
	if basis := m.basis(); basis.Remembers() {
		all = append(all, basis.addresses()...)
	}
	slices.SortFunc(all, gossip.Address.Compare)
	return slices.DeleteFunc(slices.Compact(all), func(a gossip.Address) bool { return a == m.self.Address })
}

// asks reports whether this node asks the node at one of the addresses, and so believes
// its answers.
func (m *Machine) asks(addresses ...gossip.Address) bool {
	if len(addresses) == 0 {
		return false
	}
	asked := m.whomToAsk()
	return slices.ContainsFunc(addresses, func(a gossip.Address) bool {
		_, found := slices.BinarySearchFunc(asked, a, gossip.Address.Compare)
		return found
	})
}

func (m *Machine) startJoin(seeds []gossip.Address) {
	switch {
	case m.phase == phaseMember:
		m.refuse(m.self, "Join", RefusedNotReady, "this node is a member of a cluster already")
		return
	case m.join.entering != nil:
		return // It is about to be one.
	case len(seeds) == 0:
		m.refuse(m.self, "Join", RefusedMalformed, "no seed nodes were given")
		return
	}
	began := m.join.form.began
	if m.phase == phaseIdle {
		began = m.now.Mono
	}
	m.phase = phaseJoining
	m.join = joining{attempt: m.join.attempt, form: m.join.form.restarted(began)}
	for _, seed := range seeds {
		if !slices.Contains(m.join.seeds, seed) {
			m.join.seeds = append(m.join.seeds, seed)
		}
	}
	if m.cfg.ShutdownAfterUnsuccessfulJoin > 0 {
		m.out.Arm(timerGiveUp, m.now.Mono.Add(m.cfg.ShutdownAfterUnsuccessfulJoin))
	}
	m.search()
}

// search begins a new attempt.
func (m *Machine) search() {
	j := &m.join
	j.attempt++
	j.target, j.cluster = gossip.NodeID{}, gossip.ClusterID{}
	m.out.Disarm(timerRejoin)
	m.considerFounding()
	if j.entering == nil && m.phase == phaseJoining {
		m.askSeeds()
	}
}

// askSeeds asks the open question again, and arms the timer for the next time.
func (m *Machine) askSeeds() {
	if m.phase != phaseJoining || m.join.entering != nil {
		return
	}
	j := &m.join
	if !j.target.IsZero() {
		m.out.Send(j.target, JoinRequest{
			Attempt: j.attempt, Member: m.me, Cluster: j.cluster, Settings: m.compared(), Record: m.memory.kept,
		})
	} else {
		question := InitJoin{Attempt: j.attempt, Claim: m.claim(Record{})}
		for _, address := range m.whomToAsk() {
			m.out.Send(gossip.NodeID{Address: address}, question)
		}
		m.considerFounding()
		m.complain()
	}
	m.out.Arm(timerJoin, m.now.Mono.Add(m.backOff(j.asked)))
	j.asked++
}

// claim is what this node says of itself to a node with a record.
func (m *Machine) claim(to Record) Claim {
	c := Claim{Record: m.memory.kept, Known: m.asks(to.addresses()...)}
	if m.phase == phaseMember {
		c.Leaving = !admits(m.ownStatus())
		c.Cluster, c.Standing = m.state.Cluster(), m.goesOn()
		c.Voters = len(m.state.Config().Voters)
	}
	return c
}

// goesOn reports whether this node's cluster can be relied on to go on, as far as
// this node can prove.
func (m *Machine) goesOn() bool {
	switch {
	case m.phase != phaseMember || !m.state.Yielded().IsZero():
		return false
	case m.founding():
		// Whoever is a member has entered this cluster and no other.
		return m.footing.base.Wins(func(n gossip.NodeID) bool { return m.lives(n) && !m.isLost(n) })
	}
	return m.connected() && !m.isSuspended()
}

// backOff is the time to the next question after n of them: doubling, bounded,
// and spread by a fifth so that nodes which started together do not ask together.
func (m *Machine) backOff(n int) time.Duration {
	d := m.cfg.JoinInterval
	for ; n > 0 && d < m.cfg.JoinIntervalMax; n-- {
		d *= 2
	}
	d = min(d, m.cfg.JoinIntervalMax)
	return d + time.Duration(m.deps.Rand.Int64N(int64(d)/5+1))
}

// hear takes what a node says of itself. It is false if it was not asked.
func (m *Machine) hear(from gossip.NodeID, what string, attempt uint64, claim Claim) bool {
	if attempt > m.join.attempt || !m.asks(from.Address) {
		m.refuse(from, what, RefusedUnsolicited, "no such question was asked")
		return false
	}
	m.join.form.note(from, claim, m.now.Mono, m.answersLast())
	return true
}

// mayEnter reports whether this node joins a cluster of which a member answered: one
// that goes on, or the one that this node has just voted for.
func (m *Machine) mayEnter(claim Claim) bool {
	voted := m.join.form.vote
	return claim.Standing || voted != 0 && claim.Cluster.Born == voted && m.memory.kept.Promise == voted
}

func (m *Machine) receiveInitJoinAck(from gossip.NodeID, msg InitJoinAck) {
	j := &m.join
	switch {
	case m.phase == phaseMember:
		m.meetCluster(from, msg.Claim)
		return
	case m.phase != phaseJoining:
		m.refuse(from, "InitJoinAck", RefusedUnsolicited, "no such question was asked")
		return
	case !m.hear(from, "InitJoinAck", msg.Attempt, msg.Claim):
		return
	case !j.target.IsZero() || j.entering != nil || !m.mayEnter(msg.Claim):
		return
	}
	j.target, j.cluster, j.asked = from, msg.Cluster, 0
	j.form.candidate = nil
	m.out.Disarm(timerFormation)
	m.out.Arm(timerRejoin, m.now.Mono.Add(m.cfg.RetryUnsuccessfulJoinAfter))
	m.askSeeds()
}

func (m *Machine) receiveInitJoinNack(from gossip.NodeID, msg InitJoinNack) {
	switch {
	case m.phase == phaseMember:
		m.meetCluster(from, msg.Claim)
	case m.phase != phaseJoining:
		m.refuse(from, "InitJoinNack", RefusedUnsolicited, "no such question was asked")
	case m.hear(from, "InitJoinNack", msg.Attempt, msg.Claim):
		m.considerFounding()
	}
}

// retryJoin gives up the member that was asked and asks the seed nodes again.
func (m *Machine) retryJoin() {
	if m.phase != phaseJoining {
		return
	}
	m.out.Decide("join", m.join.target.String(), "retry",
		fmt.Sprintf("the member did not let this node join within %v", m.cfg.RetryUnsuccessfulJoinAfter))
	m.search()
}

func (m *Machine) giveUpJoin() {
	if m.phase == phaseJoining {
		m.stop(component.StopJoinFailed, fmt.Sprintf("no cluster could be joined within %v", m.cfg.ShutdownAfterUnsuccessfulJoin))
	}
}

func (m *Machine) receiveJoinRefused(from gossip.NodeID, msg JoinRefused) {
	if m.phase == phaseJoining && m.join.entering != nil {
		return // Late: another member was asked again, or the same.
	}
	if m.phase != phaseJoining || from != m.join.target || msg.Attempt != m.join.attempt {
		m.refuse(from, "JoinRefused", RefusedUnsolicited, "no such question was asked")
		return
	}
	m.refuseSettings(from, "JoinRequest", msg.Refusal, msg.Reason, msg.Differences)
	switch {
	case !msg.Retry:
		m.stop(component.StopRefused, msg.Reason)
	case msg.Refusal == RefusedPredecessor || msg.Refusal == RefusedDialBack:
		// The same member is asked again, by the timer that is armed.
	default:
		// Another seed may take this node at once; the back-off goes on.
		m.join.target = gossip.NodeID{}
		m.out.Disarm(timerRejoin)
	}
}

func (m *Machine) receiveWelcome(from gossip.NodeID, msg Welcome) {
	if from != m.join.target || msg.Attempt != m.join.attempt {
		m.refuse(from, "Welcome", RefusedUnsolicited, "this node did not ask the sender to let it join")
		return
	}
	if m.phase != phaseJoining || m.join.entering != nil {
		return // The answer to a repeated question.
	}
	me := msg.State.Member(m.self)
	switch {
	case me == nil || me.Status == gossip.Down:
		m.refuse(from, "Welcome", RefusedMalformed, "this node is not a member in the state that came with it")
		return
	case msg.State.Cluster() != m.join.cluster:
		m.refuse(from, "Welcome", RefusedCluster, fmt.Sprintf("cluster %v was expected", m.join.cluster))
		return
	}
	_, err := m.state.Accept(msg.State, gossip.Terms{Now: m.now.Wall, Votes: votes})
	if err == nil {
		err = m.memory.wanted.canHold(msg.State)
	}
	if err != nil {
		m.refuse(from, "Welcome", RefusedMalformed, err.Error())
		return
	}
	if len(msg.Warnings) > 0 {
		m.out.Publish(SettingsDiffer{Peer: from, Differences: msg.Warnings})
	}
	m.out.Decide("join", m.self.String(), "joined", "welcomed by "+from.String())
	m.enter(msg.State)
}

// enter makes this node a member by a state, once the state's voters and its birth
// are on disk: they may be needed at once.
func (m *Machine) enter(state *gossip.State) {
	m.endSearch()
	m.join.entering = state
	m.join.form.candidate, m.join.form.owed, m.join.form.early = nil, nil, nil
	m.remember(m.memory.wanted.recordOf(state, false))
	m.enterIfKept()
}

// enterIfKept makes this node a member when what it enters is on disk.
func (m *Machine) enterIfKept() {
	if state := m.join.entering; state != nil && m.memory.kept.holds(state) {
		m.join.entering = nil
		m.becomeMember(state)
	}
}

// endSearch stops asking.
func (m *Machine) endSearch() {
	for _, t := range []timer{timerJoin, timerFormation, timerVote, timerRejoin, timerGiveUp} {
		m.out.Disarm(t)
	}
}

func (m *Machine) becomeMember(state *gossip.State) {
	m.endSearch()
	m.phase, m.join.joinedAt = phaseMember, m.now.Mono
	m.state = m.markSeen(state)
	// Services that were announced after this node had asked are not in the
	// request, and so not in the state that answers it.
	m.edit(func(e *gossip.Edit) {
		for _, s := range m.me.Services {
			e.AddService(s)
		}
	})
	m.survey()
	m.answerHopefuls()
	m.out.Arm(timerRound, m.now.Mono.Add(m.cfg.GossipInterval))
	m.out.Arm(timerHeartbeat, m.now.Mono.Add(m.cfg.FailureDetector.HeartbeatInterval))
	m.out.Arm(timerPrune, m.now.Mono.Add(pruneInterval))
	m.out.Arm(timerMeet, m.now.Mono.Add(meetInterval))
	if m.founding() {
		m.out.Arm(timerFounding, m.now.Mono.Add(m.foundingLimit()))
	}
}

// peerRefused is told when a peer's transport refuses this node. That this node was
// removed is believed from a current member alone, which has the uid that was
// dialled: a state that this node holds vouches for it, not its own word.
func (m *Machine) peerRefused(in PeerRefused) {
	if in.Peer.Address == m.self.Address {
		m.refuse(in.Peer, "connection", RefusedUnsolicited, "no node refuses itself, somebody speaks in its name: "+in.Reason)
		return
	}
	m.refuse(in.Peer, "connection", RefusedByPeer, in.Reason)
	switch {
	case m.phase == phaseMember && in.Removed:
		msg := NotMember{Node: m.self, Status: gossip.Removed}
		m.dismissed(in.Peer, msg, m.ending.dismissed(in.Peer, msg)+": "+in.Reason)
	case m.phase == phaseJoining && (in.Final || in.Removed):
		// Whoever was removed before its welcome arrived is never taken again: only
		// the next incarnation is.
		m.noteHopeless(in)
	}
}

// noteHopeless stops the node when no seed node will ever take it. As long as
// one may, a single wrong address in the list does no harm. A refusal counts for the
// address that was dialled, and for no other.
func (m *Machine) noteHopeless(in PeerRefused) {
	j := &m.join
	others := j.others(m.self.Address)
	if slices.Contains(others, in.Peer.Address) && !slices.Contains(j.hopeless, in.Peer.Address) {
		j.hopeless = append(j.hopeless, in.Peer.Address)
	}
	if len(others) > 0 && len(j.hopeless) == len(others) {
		m.stop(component.StopRefused, in.Reason)
	}
}

// stop ends the machine.
func (m *Machine) stop(reason component.StopReason, detail string) {
	if m.phase == phaseStopped {
		return
	}
	m.phase = phaseStopped
	m.publishStanding(0)
	m.out.Decide("stop", m.self.String(), reason.String(), detail)
	m.out.Publish(component.Stopping{Reason: reason, Detail: detail})
}

// addService records that a service runs on this node.
func (m *Machine) addService(s machine.Service) {
	if slices.Contains(m.me.Services, uint16(s)) {
		return
	}
	// A new slice: members that were handed out share the old one.
	m.me.Services = append(slices.Clone(m.me.Services), uint16(s))
	slices.Sort(m.me.Services)
	if m.phase == phaseMember {
		m.edit(func(e *gossip.Edit) { e.AddService(uint16(s)) })
	}
}
