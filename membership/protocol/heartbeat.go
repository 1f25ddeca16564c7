// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// roundsKept is the number of rounds of heartbeats whose moments of sending are
// remembered. At one a second an answer later than that says nothing: the fence
// has passed long before.
const roundsKept = 64

// heartbeats is this node's monitoring of others.
type heartbeats struct {
	registry *fd.Registry[gossip.NodeID]
	targets  []gossip.NodeID // Sorted. Who gets heartbeats.
	ring     fd.Ring[gossip.NodeID]
	others   []gossip.NodeID // Sorted. Who stands on the ring besides this node.
	onRing   bool            // Whether the ring is used: there are enough others.

	// voters is the ring of those who vote, where not all do: each node monitors
	// some of them as well, by whose answers it hosts.
	voters   fd.Ring[gossip.NodeID]
	sequence uint64
	sent     [roundsKept]sentRound
	met      map[gossip.NodeID]bool   // Targets that got one more heartbeat, see [Machine.meet].
	answered map[gossip.NodeID]uint64 // The latest round that each target has answered.

	// notBefore is the moment before which nobody is accused, because this node
	// itself was frozen: silence that it slept through proves nothing.
	notBefore machine.Instant
	silenceAt machine.Instant // What timerSilence is armed for; zero is not armed.
}

type sentRound struct {
	sequence uint64
	at       machine.Instant
	extra    bool // Out of turn: the failure detector learns intervals from the others.
}

func (h *heartbeats) init(r *fd.Registry[gossip.NodeID]) {
	h.registry, h.met, h.answered = r, map[gossip.NodeID]bool{}, map[gossip.NodeID]uint64{}
}

// begin numbers a round that is sent now.
func (h *heartbeats) begin(at machine.Instant) Heartbeat {
	h.sequence++
	h.sent[h.sequence%roundsKept] = sentRound{sequence: h.sequence, at: at}
	return Heartbeat{Sequence: h.sequence}
}

// sentAt returns when the round was sent, if it is remembered.
func (h *heartbeats) sentAt(sequence uint64) (machine.Instant, bool) {
	r := h.sent[sequence%roundsKept]
	return r.at, sequence != 0 && r.sequence == sequence
}

// hears notes that a target answered a round. The failure detector learns from it what
// comes in turn and once: a round may be answered twice, see [withheld].
func (h *heartbeats) hears(from gossip.NodeID, sequence uint64, at machine.Instant) {
	if sequence <= h.answered[from] {
		return
	}
	h.answered[from] = sequence
	if !h.sent[sequence%roundsKept].extra {
		h.registry.Heartbeat(from, at.Time())
	}
}

// forget drops what is known of a node that is not asked any more.
func (h *heartbeats) forget(n gossip.NodeID) {
	h.registry.Remove(n)
	delete(h.met, n)
	delete(h.answered, n)
}

// heartbeatRound sends a heartbeat to every target.
func (m *Machine) heartbeatRound() {
	if m.phase != phaseMember {
		return
	}
	m.out.Arm(timerHeartbeat, m.now.Mono.Add(m.cfg.FailureDetector.HeartbeatInterval))
	m.expect(m.beat.targets)
	m.sendHeartbeats(m.beat.targets)
	m.report(true)
	m.renew()
	if isNewcomer(m.state.Member(m.self)) {
		m.judgeSilence() // Whom it spared it may have to accuse by now.
	}
}

// expect begins to wait for answers of those of which it has not begun yet.
func (m *Machine) expect(nodes []gossip.NodeID) {
	for _, node := range nodes {
		if !m.beat.registry.Expected(node) {
			m.beat.registry.Expect(node, m.now.Mono.Time())
			m.footing.expected[node] = m.now.Mono
		}
	}
	m.armSilence()
}

func (m *Machine) sendHeartbeats(to []gossip.NodeID) {
	if len(to) == 0 {
		return
	}
	beat := m.beat.begin(m.now.Mono)
	for _, node := range to {
		m.out.Send(node, beat)
	}
}

func (m *Machine) receiveHeartbeat(from gossip.NodeID, msg Heartbeat) {
	if m.phase != phaseMember {
		// A member whose welcome is still on its way is asked to prove that it
		// lives; it does so by asking to join again.
		m.refused[RefusedNotReady]++
		return
	}
	if m.dismiss(from) {
		return
	}
	member := m.state.Member(from)
	m.out.Send(from, m.answer(member, msg.Sequence))
	if member == nil {
		m.out.Send(from, NotMember{Node: from, Status: gossip.StatusNone})
	}
}

// dismiss tells a node that was downed or removed so, and reports whether it was.
func (m *Machine) dismiss(from gossip.NodeID) bool {
	status := gossip.StatusNone
	if _, removed := m.state.Removed(from); removed {
		status = gossip.Removed
	} else if member := m.state.Member(from); member != nil && member.Status == gossip.Down {
		status = gossip.Down
	}
	if status == gossip.StatusNone {
		return false
	}
	m.refused[RefusedNotMember]++
	m.out.Send(from, NotMember{Node: from, Status: status, Downed: causeOf(m.state, from)})
	return true
}

func (m *Machine) receiveHeartbeatReply(from gossip.NodeID, msg HeartbeatReply) {
	sentAt, known := m.beat.sentAt(msg.Sequence)
	if m.phase != phaseMember || !known || !m.monitors(from) {
		m.refused[RefusedUnsolicited]++
		return
	}
	m.beat.hears(from, msg.Sequence, m.now.Mono)
	m.greeted(from)
	if msg.Standing {
		m.footing.answered(from, sentAt)
	}
	if msg.Known {
		m.footing.isKnownTo(from, sentAt)
		if m.lead.suspended {
			m.act()
		}
	}
	if m.ownRecord(from) == gossip.Unreachable && m.beat.registry.Available(from, m.now.Mono.Time()) {
		m.out.Decide("reachability", from.String(), "reachable", "it answered a heartbeat again")
		m.counts.Clears++
		m.edit(func(e *gossip.Edit) { e.Clear(from) })
	}
	m.armSilence()
}

// meet sends a heartbeat, once, to each target that has not answered one as a node that
// knows this one, and has seen a state in which this node is a member: the first one,
// which went out when this node learned of it, may have come before. It would count for
// this node's standing only after the next round otherwise, and a node that has just
// joined would be left without when another leaves before.
func (m *Machine) meet() {
	var strangers []gossip.NodeID
	for _, node := range m.beat.targets {
		if _, met := m.footing.known[node]; !met && !m.beat.met[node] && m.state.Seen(node) && m.beat.registry.Expected(node) {
			m.beat.met[node] = true
			strangers = append(strangers, node)
		}
	}
	if len(strangers) > 0 {
		m.sendHeartbeats(strangers)
		m.beat.sent[m.beat.sequence%roundsKept].extra = true
	}
}

func (m *Machine) monitors(node gossip.NodeID) bool {
	_, found := slices.BinarySearchFunc(m.beat.targets, node, gossip.NodeID.Compare)
	return found
}

// ownRecord returns what this node recorded about another, or zero.
func (m *Machine) ownRecord(subject gossip.NodeID) gossip.ReachStatus {
	rows := m.state.RowsOf(m.self)
	i, found := slices.BinarySearchFunc(rows, subject, func(r gossip.Row, n gossip.NodeID) int { return r.Subject.Compare(n) })
	if !found {
		return 0
	}
	return rows[i].Status
}

// isLost tells whether somebody who counts cannot reach a node, in the state
// that was surveyed last.
func (m *Machine) isLost(node gossip.NodeID) bool {
	_, lost := slices.BinarySearchFunc(m.lost, node, gossip.NodeID.Compare)
	return lost
}

// retarget chooses anew who gets heartbeats, after a change of the members or of
// their reachability.
func (m *Machine) retarget() {
	h := &m.beat
	targets := m.chooseTargets()
	if slices.Equal(targets, h.targets) {
		return
	}
	old := h.targets
	h.targets = targets
	for _, node := range old {
		if !m.monitors(node) {
			h.forget(node)
			m.footing.forget(node)
			delete(m.gate.answered, node)
		}
	}
	m.armSilence()
}

// greet sends a heartbeat to the targets that have not got one, so that a new
// voter counts for this node's standing within a round trip. In a ring, who is no
// voter yet gets its first one with the next round: while a cluster forms, the
// ring changes with each member that joins, and each change would cost
// connections that the next one makes useless.
func (m *Machine) greet() {
	var added []gossip.NodeID
	ring := m.monitorsSome()
	for _, node := range m.beat.targets {
		if !m.beat.registry.Expected(node) && (!ring || votes(m.state.Member(node))) {
			added = append(added, node)
		}
	}
	if len(added) > 0 {
		m.expect(added)
		m.sendHeartbeats(added)
	}
}

func (m *Machine) chooseTargets() []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, member := range m.state.Members() {
		if member.Node != m.self && member.Status != gossip.Down {
			nodes = append(nodes, member.Node)
		}
	}
	k := m.cfg.FailureDetector.MonitoredByNrOfMembers
	m.beat.onRing = len(nodes) > k
	if !m.beat.onRing {
		return nodes // Sorted, as members are.
	}
	if !slices.Equal(nodes, m.beat.others) {
		m.beat.others = nodes
		m.beat.ring = fd.NewRing(k, append(slices.Clip(nodes), m.self), gossip.NodeID.Hash, gossip.NodeID.Compare)
		if m.cfg.Voters.Role != "" {
			m.beat.voters = fd.NewRing(k, m.potentialVoters(), gossip.NodeID.Hash, gossip.NodeID.Compare)
		}
	}
	targets := m.beat.receivers(m.self, m.isLost)
	for _, row := range m.state.RowsOf(m.self) {
		// Who this node has accused it goes on to ask, or nobody would take the
		// accusation back.
		_, alive := slices.BinarySearchFunc(nodes, row.Subject, gossip.NodeID.Compare)
		if alive && row.Status == gossip.Unreachable && !slices.Contains(targets, row.Subject) {
			targets = append(targets, row.Subject)
		}
	}
	slices.SortFunc(targets, gossip.NodeID.Compare)
	return targets
}

// receivers returns whom a node on the ring monitors.
func (h *heartbeats) receivers(n gossip.NodeID, lost func(gossip.NodeID) bool) []gossip.NodeID {
	targets := h.ring.Receivers(n, lost)
	if h.voters.Len() > 0 {
		for _, voter := range h.voters.Receivers(n, lost) {
			if !slices.Contains(targets, voter) {
				targets = append(targets, voter)
			}
		}
	}
	return targets
}

// armSilence arms one timer for the moment at which somebody is to be accused next.
// It may have passed: then the timer fires at once, or when this node may accuse again.
// Those whom a newcomer spares it judges anew with each round of heartbeats.
func (m *Machine) armSilence() {
	h := &m.beat
	at := machine.Instant(0)
	if due, ok := h.registry.Due(m.isJudged); ok {
		at = max(machine.Instant(due.UnixNano()), h.notBefore)
	}
	switch at {
	case h.silenceAt:
	case 0:
		m.out.Disarm(timerSilence)
	default:
		m.out.Arm(timerSilence, at)
	}
	h.silenceAt = at
}

// isJudged tells whether there is nothing to do about the silence of a node: it is accused
// already, or spared. The timer and the judgement go by it, so that neither waits for
// the other in vain.
func (m *Machine) isJudged(node gossip.NodeID) bool {
	return !m.state.ReachableFrom(m.self, node) || m.spares(node)
}

// judgeSilence accuses those whose silence has become too long.
func (m *Machine) judgeSilence() {
	m.beat.silenceAt = 0
	if m.phase != phaseMember {
		return
	}
	if m.now.Mono < m.beat.notBefore {
		m.beat.silenceAt = m.beat.notBefore
		m.out.Arm(timerSilence, m.beat.notBefore)
		return
	}
	var accused []gossip.NodeID
	for _, node := range m.beat.registry.Unavailable(m.now.Mono.Time()) {
		if !m.isJudged(node) {
			accused = append(accused, node)
			m.out.Decide("reachability", node.String(), "unreachable", m.silenceOf(node))
		}
	}
	if len(accused) > 0 {
		m.counts.Marks += uint64(len(accused))
		m.edit(func(e *gossip.Edit) {
			for _, node := range accused {
				e.Mark(node, gossip.Unreachable)
			}
		})
	}
	m.armSilence()
}

func (m *Machine) silenceOf(node gossip.NodeID) string {
	for _, s := range m.beat.registry.Status(m.now.Mono.Time()) {
		if s.Node == node {
			return fmt.Sprintf("no answer to heartbeats for %v, phi %.1f", s.Silence.Round(time.Millisecond), s.Phi)
		}
	}
	return "no answer to heartbeats"
}

// noticeFreeze looks whether this node itself slept. A machine that runs is
// stepped at least each heartbeat interval, by its own timer; if it was not, it
// has no right to accuse others for the time it slept through, nor to take its
// view for stable, before it has heard them for as long as silence is allowed.
func (m *Machine) noticeFreeze() {
	interval := m.cfg.FailureDetector.HeartbeatInterval
	if m.phase != phaseMember || m.now.Mono.Sub(m.last.Mono) <= interval+interval/2 {
		return
	}
	m.out.Decide("reachability", m.self.String(), "paused",
		fmt.Sprintf("this node itself did not run for %v: nobody is accused for as long as silence is allowed", m.now.Mono.Sub(m.last.Mono)))
	m.beat.notBefore = m.now.Mono.Add(m.cfg.FailureDetector.AcceptableHeartbeatPause)
	m.beat.silenceAt = 0
	m.armSilence()
	m.restartStability()
	m.heartbeatRound()
}
