// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// settle draws the consequences of what a step did to the state: it tells the parts of
// each new state once, lets the leader act, and publishes the result.
func (m *Machine) settle() {
	for m.phase == phaseMember && m.settled != m.state {
		prev, next := m.settled, m.state
		m.observe(prev, next)
		m.settled = next
		m.memory.rememberState()
		if m.phase == phaseMember && m.state == next {
			m.strategies.keep()
		}
		if m.phase == phaseMember && m.state == next {
			m.leader.act()
		}
	}
	if m.phase != phaseMember {
		return
	}
	m.publishChanged()
	m.footing.update()
	m.admission.inviteWaitingJoiners()
	m.gossiper.schedulePush()
}

// observe tells all parts how one state differs from the one before.
func (m *Machine) observe(prev, next *gossip.State) {
	gone := missing(prev.Members(), next.Members())
	m.fences.removed(gone) // While the records about them are still there.
	for _, was := range gone {
		m.forget(was)
	}
	m.fences.removedUnseen(prev, next)
	m.admission.noteDowned(prev, next)
	m.fences.noteState(prev, next)
	m.resolver.obey(prev)
	m.clusterShutdown.observe()
	m.leave.observe()
	m.otherClusters.observe()
	if m.phase != phaseMember {
		m.publishChanged()
		return
	}
	m.survey()
	m.fences.noteSeen()
	if !next.SharesRows(prev) || !sameMonitored(prev.Members(), next.Members()) {
		m.monitoring.retarget()
	}
	m.monitoring.greet()
	m.monitoring.meet()
	m.relay.observe()
	m.report(false)
	m.monitoring.noteProof(prev)
	m.gate.stays(m.self, m.gate.reasonSelfHeld())
	m.resolver.watchView()
}

// missing returns the former members that are no members now. Both lists are sorted.
func missing(before, now []*gossip.Member) []*gossip.Member {
	var gone []*gossip.Member
	i := 0
	for _, was := range before {
		for i < len(now) && now[i] != was && now[i].Node.Compare(was.Node) < 0 {
			i++
		}
		if i == len(now) || now[i] != was && now[i].Node != was.Node {
			gone = append(gone, was)
		}
	}
	return gone
}

// survey computes what follows from the state and the confirmations: the leader,
// convergence, and the base.
func (m *Machine) survey() {
	before := m.surveyed.of
	m.surveyBuilder.surveyConvergence()
	m.strategies.takeOver()
	m.surveyBuilder.updateBase(before)
	m.replies.sendLate()
	m.leader.watchConvergence()
	m.gossiper.hurryRounds()
}

// forget drops everything that was kept about a member that was removed.
func (m *Machine) forget(was *gossip.Member) {
	m.gossiper.forget(was.Node)
	m.answers.forget(was.Node)
	m.replies.forget(was.Node)
	m.leader.forget(was.Node)
	m.gate.forget(was.Node)
}

// publishAgain tells a component that was attached while the node runs what it has
// missed.
func (m *Machine) publishAgain() {
	if m.published.State == nil {
		return
	}
	m.out.Publish(m.published)
	if m.hosting.until != 0 {
		m.out.Publish(component.Standing{Until: m.hosting.until, Dropped: m.hosting.dropped})
	}
	for _, t := range m.published.State.Tombstones() {
		if !m.fences.waiting[t.Node] {
			m.out.Publish(component.Fenced{Node: t.Node})
		}
	}
}

func (m *Machine) publishChanged() {
	changed := component.Changed{
		State: m.state, Self: m.self, Leader: m.surveyed.leader, Converged: m.surveyed.converged, Base: m.surveyed.base,
	}
	old := &m.published
	same := old.State == changed.State && old.Leader == changed.Leader && old.Converged == changed.Converged &&
		sameBase(old.Base, changed.Base)
	if !same {
		m.published = changed
		m.out.Publish(changed)
	}
}
