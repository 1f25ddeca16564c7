// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The events that concern several parts at once are passed on here, to one part after the
// other, in an order that belongs to the protocol: the entry into a cluster, a round of
// heartbeats and an answer to one, a pause of this node, a record that reached the disk,
// a downing strategy, a service, and a peer that refuses this node.

func (m *Machine) becomeMember(state *gossip.State) {
	m.join.endSearch()
	m.phase, m.joinedAt = phaseMember, m.now.Mono
	m.state = m.markSeen(state)
	m.gossipPeers.hearSponsor(m.join.target)
	// Services that were announced after this node had asked are not in the
	// request, and so not in the state that answers it.
	m.edit(func(e *gossip.Edit) {
		for _, s := range m.me.Services {
			e.AddService(s)
		}
	})
	m.survey()
	m.admission.answerWaitingJoiners()
	m.out.Arm(timerRound, m.now.Mono.Add(m.cfg.GossipInterval))
	m.out.Arm(timerHeartbeat, m.now.Mono.Add(m.cfg.FailureDetector.HeartbeatInterval))
	m.out.Arm(timerPrune, m.now.Mono.Add(pruneInterval))
	m.otherClusters.enter(!m.join.target.IsZero())
	if m.founding() {
		m.out.Arm(timerFounding, m.now.Mono.Add(m.foundingLimit()))
	}
}

// discover begins to look for a cluster among contact points that are looked up.
func (m *Machine) discover() {
	if m.contactSearch.begin() {
		m.join.start(m.contactSearch.addresses())
	}
}

// probed is told who answered at an address: that of a joiner, or a contact point.
func (m *Machine) probed(in Probed) {
	if m.phase != phaseJoining {
		m.admission.probed(in)
	} else if m.contactSearch.dialled(in) {
		m.join.askAnew()
	}
}

// recordKept continues everything that waited for the record to be on disk.
func (m *Machine) recordKept() {
	switch m.phase {
	case phaseJoining:
		m.formation.castVotes()
		m.formation.askVotes()
		m.join.enterIfKept()
	case phaseMember:
		m.state = m.markSeen(m.state)
	case phaseIdle, phaseStopped:
	}
}

// heartbeatRound sends the next heartbeats, and repeats what may have been lost since
// the round before.
func (m *Machine) heartbeatRound() {
	if m.phase != phaseMember {
		return
	}
	m.monitoring.round()
	m.relay.round()
	m.report(true)
	m.gate.renew()
	if isNewcomer(m.state.Member(m.self)) {
		m.monitoring.judgeSilence() // Members that were spared may have to be marked unreachable now.
	}
}

// receiveHeartbeat has a heartbeat answered, with this node's own question where the two
// share the exchange.
func (m *Machine) receiveHeartbeat(from gossip.NodeID, msg Heartbeat) {
	var own Question
	if msg.Shared {
		own = m.monitoring.question(from)
	}
	m.replies.receive(from, msg.Sequence, own)
	m.gossiper.compare(from, msg.Fingerprint)
}

// receiveHeartbeatReply has a question that came with an answer answered, by what this node
// knows before the answer: one that takes an accusation back does not change the word that
// is given in the same step.
func (m *Machine) receiveHeartbeatReply(from gossip.NodeID, msg HeartbeatReply) {
	if q := msg.Question; q.Sequence != 0 {
		m.replies.receive(from, q.Sequence, Question{})
		m.gossiper.compare(from, q.Fingerprint)
	}
	m.hearHeartbeatReply(from, msg)
}

// hearHeartbeatReply passes an answer to a heartbeat to all parts that depend on it.
func (m *Machine) hearHeartbeatReply(from gossip.NodeID, msg HeartbeatReply) {
	sentAt, known := m.monitoring.sentAt(msg.Sequence)
	if m.phase != phaseMember || !known || !m.monitoring.monitors(from) {
		m.refuseSilently(RefusedUnsolicited)
		return
	}
	first := !m.monitoring.hasAnswered(from)
	lives := m.monitoring.hears(from, msg.Sequence, m.now.Mono)
	if lives && first {
		m.report(false)
	}
	if msg.Standing {
		m.answers.answered(from, sentAt)
	}
	if msg.Known {
		m.answers.isKnownTo(from, sentAt)
		m.leader.retry()
	}
	if lives {
		m.monitoring.takeBack(from)
	}
}

// receiveGiven passes the word of a member, for which this node asked as a relay.
func (m *Machine) receiveGiven(from gossip.NodeID, msg GiveStanding) {
	if m.relay.receiveGiven(from, msg) && msg.Known {
		m.leader.retry()
	}
}

// receiveLent passes a proof that was lent to this node.
func (m *Machine) receiveLent(from gossip.NodeID, msg LendStanding) {
	if m.relay.receiveLent(from, msg) {
		m.leader.retry()
	}
}

// report tells the leader which newcomers have answered this node; see [gate.tell].
func (m *Machine) report(again bool) {
	if m.gate.tell(again) {
		m.leader.retry()
	}
}

// noticeFreeze restarts the waits that a node may not count on after it slept.
func (m *Machine) noticeFreeze() {
	if m.monitoring.hasSlept() {
		m.resolver.wake()
		m.heartbeatRound()
	}
}

// loadDowning gives this node a strategy, and has the leader check whether the cluster
// can change to it.
func (m *Machine) loadDowning(in LoadDowning) {
	if m.strategies.load(in) && m.phase == phaseMember {
		m.strategies.keep()
		m.leader.act()
	}
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

// peerRefused handles the refusal of this node by a peer's transport. That this node was
// removed is believed only of a peer that is a current member with the uid that was
// dialled: then the state of this node vouches for the peer, not the peer's own word.
func (m *Machine) peerRefused(in PeerRefused) {
	if in.Peer.Address == m.self.Address {
		m.refuse(in.Peer, "connection", RefusedUnsolicited, "no node refuses itself, somebody speaks in its name: "+in.Reason)
		return
	}
	m.refuse(in.Peer, "connection", RefusedByPeer, in.Reason)
	m.inquiry.noteRefused(in)
	switch {
	case m.phase == phaseMember && in.Removed:
		msg := NotMember{Node: m.self, Status: gossip.Removed}
		m.leave.dismissed(in.Peer, msg, m.explainer.dismissed(in.Peer, msg)+": "+in.Reason)
	case m.phase == phaseJoining && m.contactSearch.runs && !in.Removed:
		m.contactSearch.refused(in) // Discovery may find others.
	case m.phase == phaseJoining && (in.Final || in.Removed):
		// An incarnation that was removed before its welcome arrived is never taken
		// again; only the next incarnation is.
		m.join.noteRefusedForGood(in)
	}
}
