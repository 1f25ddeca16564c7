// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// What concerns several parts at once is told to them here, one after the other, in an
// order that is part of the protocol: the entry into a cluster, a round of heartbeats
// and an answer to one, a pause of this node, a record that came to the disk, a downing
// strategy, a service, and a peer that refuses this node.

func (m *Machine) becomeMember(state *gossip.State) {
	m.join.endSearch()
	m.phase, m.joinedAt = phaseMember, m.now.Mono
	m.state = m.markSeen(state)
	// Services that were announced after this node had asked are not in the
	// request, and so not in the state that answers it.
	m.edit(func(e *gossip.Edit) {
		for _, s := range m.me.Services {
			e.AddService(s)
		}
	})
	m.survey()
	m.admission.answerHopefuls()
	m.out.Arm(timerRound, m.now.Mono.Add(m.cfg.GossipInterval))
	m.out.Arm(timerHeartbeat, m.now.Mono.Add(m.cfg.FailureDetector.HeartbeatInterval))
	m.out.Arm(timerPrune, m.now.Mono.Add(pruneInterval))
	m.out.Arm(timerMeet, m.now.Mono.Add(meetInterval))
	if m.founding() {
		m.out.Arm(timerFounding, m.now.Mono.Add(m.foundingLimit()))
	}
}

// recordKept lets go on what has waited for the record.
func (m *Machine) recordKept() {
	switch m.phase {
	case phaseJoining:
		m.form.castVotes()
		m.form.askVotes()
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
	m.report(true)
	m.gate.renew()
	if isNewcomer(m.state.Member(m.self)) {
		m.monitoring.judgeSilence() // Whom it spared it may have to accuse by now.
	}
}

// receiveHeartbeatReply tells all parts of an answer to a heartbeat that go by it.
func (m *Machine) receiveHeartbeatReply(from gossip.NodeID, msg HeartbeatReply) {
	sentAt, known := m.monitoring.sentAt(msg.Sequence)
	if m.phase != phaseMember || !known || !m.monitoring.monitors(from) {
		m.refuseSilently(RefusedUnsolicited)
		return
	}
	first := !m.monitoring.hasAnswered(from)
	m.monitoring.hears(from, msg.Sequence, m.now.Mono)
	if first {
		m.report(false)
	}
	if msg.Standing {
		m.answers.answered(from, sentAt)
	}
	if msg.Known {
		m.answers.isKnownTo(from, sentAt)
		m.lead.retry()
	}
	m.monitoring.takeBack(from)
}

// report tells the leader which newcomers have answered this node; see [gate.tell].
func (m *Machine) report(again bool) {
	if m.gate.tell(again) {
		m.lead.retry()
	}
}

// noticeFreeze begins anew what a node that slept has no right to go on with.
func (m *Machine) noticeFreeze() {
	if m.monitoring.hasSlept() {
		m.resolver.restartStability()
		m.heartbeatRound()
	}
}

// loadDowning gives the node a strategy, and has the leader look whether it becomes
// that of the cluster.
func (m *Machine) loadDowning(in LoadDowning) {
	if m.strategies.load(in) && m.phase == phaseMember {
		m.strategies.keep()
		m.lead.act()
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
		m.exit.dismissed(in.Peer, msg, m.ending.dismissed(in.Peer, msg)+": "+in.Reason)
	case m.phase == phaseJoining && (in.Final || in.Removed):
		// Whoever was removed before its welcome arrived is never taken again: only
		// the next incarnation is.
		m.join.noteHopeless(in)
	}
}
