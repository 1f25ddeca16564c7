// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/component"
)

// confirmInterval is the time between two confirmations of a leaving node.
const confirmInterval = time.Second

// confirmCandidates is the number of members to which the confirmation of a
// leaving node goes: those that lead, or will lead next.
const confirmCandidates = 3

// leaving is what this node knows about its own departure.
//
//	leaving: components hand over; all Stopped, or leave-timeout
//	   |  hosts nothing any more; confirms to the leader until it acts
//	   v
//	exiting -> removed, or exit-timeout -> stop
type leaving struct {
	holds     []string // Sorted names of the components that hold the node.
	stopped   []string // Sorted names of those that have stopped.
	begun     bool
	confirmed bool // Hosts nothing any more.
}

func (l *leaving) init() {}

func addName(names []string, name string) []string {
	if i, found := slices.BinarySearch(names, name); !found {
		return slices.Insert(names, i, name)
	}
	return names
}

// held tells for whom this node still waits.
func (l *leaving) held() []string {
	return slices.DeleteFunc(slices.Clone(l.holds), func(name string) bool {
		_, stopped := slices.BinarySearch(l.stopped, name)
		return stopped
	})
}

func (m *Machine) hold(component string) {
	m.exit.holds = addName(m.exit.holds, component)
}

func (m *Machine) stopped(component string) {
	if !m.exit.begun {
		m.refuse(m.self, "Stopped", RefusedUnsolicited, "this node is not leaving: "+component)
		return
	}
	m.exit.stopped = addName(m.exit.stopped, component)
	m.confirmWhenFree()
}

func (m *Machine) commandLeave(address gossip.Address) {
	if m.phase != phaseMember {
		if address == m.self.Address {
			m.stop(component.StopLeft, "it left before it was a member")
		}
		return
	}
	member := m.state.ByAddress(address)
	switch {
	case member == nil:
		m.refuse(gossip.NodeID{Address: address}, "Leave", RefusedUnknown, "no member lives at this address")
	case member.Status >= gossip.Leaving:
		m.refuse(member.Node, "Leave", RefusedUnknown, "the member is "+member.Status.String()+" already")
	default:
		m.out.Decide("leave", member.Node.String(), "leaving", "somebody asked for it")
		m.edit(func(e *gossip.Edit) { e.SetStatus(member.Node, gossip.Leaving, member.UpNumber) })
	}
}

// observeOwnStatus acts on what became of this node.
func (m *Machine) observeOwnStatus() {
	me := m.state.Member(m.self)
	switch {
	case me == nil && m.exit.begun:
		m.stop(component.StopLeft, "it was removed after it left")
	case me == nil:
		m.stop(component.StopDowned, m.ending.removed(m.state, m.self))
	case me.Status == gossip.Down:
		m.spreadWord()
		m.stop(component.StopDowned, m.ending.downed(m.state, m.self))
	case me.Status == gossip.Exiting && m.exit.confirmed && m.allExit():
		m.spreadWord()
		m.stop(component.StopLeft, "it left together with all others")
	case me.Status >= gossip.Leaving && !m.exit.begun:
		m.beginLeaving()
	}
}

// allExit reports whether nobody is left who could remove this node.
func (m *Machine) allExit() bool {
	return !slices.ContainsFunc(m.state.Members(), func(member *gossip.Member) bool { return member.Status < gossip.Exiting })
}

func (m *Machine) beginLeaving() {
	m.exit.begun = true
	m.out.Arm(timerLeave, m.now.Mono.Add(m.cfg.LeaveTimeout))
	m.confirmWhenFree()
}

func (m *Machine) confirmWhenFree() {
	if m.exit.begun && !m.exit.confirmed && len(m.exit.held()) == 0 {
		m.confirm("every component has handed its work over")
	}
}

func (m *Machine) leaveTimeout() {
	if m.phase == phaseMember && m.exit.begun && !m.exit.confirmed {
		m.confirm(fmt.Sprintf("components did not hand their work over within %v: %v", m.cfg.LeaveTimeout, m.exit.held()))
	}
}

// confirm ends hosting for good, before anybody is told so.
func (m *Machine) confirm(why string) {
	m.exit.confirmed = true
	m.out.Decide("leave", m.self.String(), "confirmed", why)
	m.dropStanding()
	m.out.Disarm(timerLeave)
	m.out.Arm(timerExit, m.now.Mono.Add(m.cfg.ExitTimeout))
	m.confirmExit()
}

// confirmExit tells those who lead, or will lead next, until this node sees that
// it is exiting: from then on gossip carries the word.
func (m *Machine) confirmExit() {
	if m.phase != phaseMember || m.ownStatus() >= gossip.Exiting {
		return
	}
	m.out.Arm(timerConfirm, m.now.Mono.Add(confirmInterval))
	m.lead.confirmed[m.self] = true
	for _, node := range m.confirmTo() {
		m.out.Send(node, ExitingConfirmed{})
	}
	m.survey() // Whoever has confirmed is not waited for.
	m.act()
}

func (m *Machine) confirmTo() []gossip.NodeID {
	to := []gossip.NodeID{m.lead.leader}
	for _, member := range m.state.Members() {
		if votes(member) && m.state.Reachable(member.Node) && len(to) <= confirmCandidates {
			to = append(to, member.Node)
		}
	}
	slices.SortFunc(to, gossip.NodeID.Compare)
	to = slices.Compact(to)
	return slices.DeleteFunc(to, func(n gossip.NodeID) bool { return n == m.self || n.IsZero() })
}

func (m *Machine) receiveExitingConfirmed(from gossip.NodeID) {
	member := m.state.Member(from)
	if m.phase != phaseMember || member == nil {
		m.refuse(from, "ExitingConfirmed", RefusedNotMember, "the sender is not a member")
		return
	}
	m.lead.confirmed[from] = true
	// With the confirmation there may be convergence, and something to do.
	m.survey()
	m.act()
}

func (m *Machine) exitTimeout() {
	if m.phase == phaseMember {
		m.stop(component.StopLeft, fmt.Sprintf("it was not removed within %v after it hosted nothing any more", m.cfg.ExitTimeout))
	}
}

func (m *Machine) receiveNotMember(from gossip.NodeID, msg NotMember) {
	m.dismissed(from, msg, m.ending.dismissed(from, msg))
}

// dismissed ends this node, with these words, if it was declared down or removed.
func (m *Machine) dismissed(from gossip.NodeID, msg NotMember, words string) {
	switch {
	case msg.Node != m.self || m.phase != phaseMember:
		m.refuse(from, "NotMember", RefusedUnsolicited, fmt.Sprintf("it is about %v", msg.Node))
	case m.state.Member(from) == nil:
		m.refuse(from, "NotMember", RefusedNotMember, "the sender is not known as a member")
	case msg.Status == gossip.StatusNone:
		m.receiveStranger(from)
	case msg.Status == gossip.Removed && m.leftInOrder():
		m.stop(component.StopLeft, "it was removed after it left, says "+from.String())
	default:
		m.spreadWord() // What this node alone knows must not go with it.
		m.stop(component.StopDowned, words)
	}
}

// leftInOrder reports whether a removal is what this node waited for. Without
// the word of its components it is so only when the others are known to have
// taken its leave: a node that stood still for longer than the leave-timeout
// has just given up on its components, and was taken for dead long before.
func (m *Machine) leftInOrder() bool {
	return m.exit.confirmed && (len(m.exit.held()) == 0 || m.ownStatus() >= gossip.Exiting)
}

// receiveStranger is told that a member has never heard of this node. When that
// lasts, and no majority answers this node, those who recorded it have gone
// before the others heard of it. It cannot come back as it is: its state may
// hold what the others have decided otherwise. A restart joins anew.
func (m *Machine) receiveStranger(from gossip.NodeID) {
	if m.now.Mono.Sub(m.join.joinedAt) < m.cfg.RetryUnsuccessfulJoinAfter || m.connected() {
		return
	}
	reason := component.StopDowned
	if m.ownStatus() < gossip.Up {
		reason = component.StopJoinFailed
	}
	m.stop(reason, fmt.Sprintf("the cluster has gone on without hearing of it, says %v: restart the node", from))
}
