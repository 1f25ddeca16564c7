// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// proofInterval is the time after which a newcomer that no voter reaches has to show
// again that it lives. Each time costs an edit.
const proofInterval = 10 * time.Second

// gate keeps newcomers, who are joining or weakly up, from becoming up before every
// voter that monitors them has had an answer to a heartbeat from them. One that a voter
// cannot reach would be accused by it seconds later, be downed for that, start anew and
// become up again, for as long as the link is broken.
//
//	newcomer -- answers --> voter -- Reached --> leader: up when all have said so
//	                          |
//	                          '- no answer for max-silence: unreachable, in the state
//
// A voter without an answer says so by its record. The newcomer then stays joining,
// with a decision that names the voter, and is no reason for anything else: neither
// for the state not to converge, nor to down it, while it shows that it lives.
type gate struct {
	answered map[gossip.NodeID]bool // Who has answered a heartbeat of this node.

	// What the leader was told last, and which one.
	told   []gossip.UID
	leader gossip.NodeID

	reports map[gossip.NodeID][]gossip.UID // As the leader: what each voter has said.
	said    map[gossip.NodeID]string       // Why a newcomer stays joining, as was said last.

	renewed map[gossip.NodeID]machine.Instant // See [Machine.renew].
	proofAt machine.Instant                   // See [Machine.noteProof].

	// monitors holds the voters by whom each newcomer of a state is monitored.
	monitors map[gossip.NodeID][]gossip.NodeID
	of       *gossip.State
}

func (g *gate) init() {
	g.answered = map[gossip.NodeID]bool{}
	g.reports = map[gossip.NodeID][]gossip.UID{}
	g.said = map[gossip.NodeID]string{}
	g.renewed = map[gossip.NodeID]machine.Instant{}
}

// forget drops what is known of a node that is not monitored, or no member any more.
func (g *gate) forget(n gossip.NodeID) {
	delete(g.answered, n)
	delete(g.reports, n)
	delete(g.said, n)
	delete(g.renewed, n)
}

// isNewcomer tells whether a member has not been up yet.
func isNewcomer(member *gossip.Member) bool {
	return member != nil && (member.Status == gossip.Joining || member.Status == gossip.WeaklyUp)
}

// greeted is called for each answer to a heartbeat.
func (m *Machine) greeted(by gossip.NodeID) {
	if !m.gate.answered[by] {
		m.gate.answered[by] = true
		m.report(false)
	}
}

// report tells the leader which newcomers have answered this voter, when it has not
// been told that, or again: what was said may have been lost.
func (m *Machine) report(again bool) {
	g := &m.gate
	if me := m.state.Member(m.self); m.phase != phaseMember || me == nil || !m.isVoter(me) {
		return
	}
	var reached []gossip.UID
	for _, member := range m.state.Members() {
		if isNewcomer(member) && g.answered[member.Node] && len(reached) < MaxReached {
			reached = append(reached, member.Node.UID)
		}
	}
	news := g.leader != m.lead.leader || !slices.Equal(g.told, reached)
	g.told, g.leader = reached, m.lead.leader
	switch {
	case g.leader == m.self && news && m.lead.suspended:
		m.act()
	case g.leader != m.self && !g.leader.IsZero() && len(reached) > 0 && (news || again):
		m.out.Send(g.leader, Reached{Nodes: reached})
	}
}

func (m *Machine) receiveReached(from gossip.NodeID, msg Reached) {
	switch {
	case m.phase != phaseMember:
		m.refused[RefusedNotReady]++
	case m.dismiss(from):
	case m.state.Member(from) == nil:
		m.refuse(from, "Reached", RefusedNotMember, "the sender is not known as a member")
	default:
		m.gate.reports[from] = msg.Nodes
		if m.lead.suspended {
			m.act()
		}
	}
}

// monitorsOf returns the voters that monitor a newcomer.
func (m *Machine) monitorsOf(newcomer gossip.NodeID) []gossip.NodeID {
	g := &m.gate
	if g.of != m.state {
		g.of, g.monitors = m.state, m.monitorsOfNewcomers()
	}
	return g.monitors[newcomer]
}

func (m *Machine) monitorsOfNewcomers() map[gossip.NodeID][]gossip.NodeID {
	monitors := map[gossip.NodeID][]gossip.NodeID{}
	for _, voter := range m.state.Config().Voters {
		if member := m.state.Member(voter); member == nil || !votes(member) {
			continue
		}
		for _, node := range m.targetsOf(voter) {
			if isNewcomer(m.state.Member(node)) {
				monitors[node] = append(monitors[node], voter)
			}
		}
	}
	return monitors
}

// targetsOf returns whom a member monitors.
func (m *Machine) targetsOf(n gossip.NodeID) []gossip.NodeID {
	if m.beat.onRing {
		return m.beat.receivers(n, m.isLost)
	}
	var all []gossip.NodeID
	for _, member := range m.state.Members() {
		if member.Node != n {
			all = append(all, member.Node)
		}
	}
	return all
}

// hasReached tells whether a voter has said that a newcomer answered it.
func (m *Machine) hasReached(voter, newcomer gossip.NodeID) bool {
	if voter == m.self {
		return m.gate.answered[newcomer]
	}
	return slices.Contains(m.gate.reports[voter], newcomer.UID)
}

// passes tells whether all voters that monitor a newcomer have reached it.
func (m *Machine) passes(newcomer gossip.NodeID) bool {
	return !slices.ContainsFunc(m.monitorsOf(newcomer), func(voter gossip.NodeID) bool {
		return voter != newcomer && !m.hasReached(voter, newcomer)
	})
}

// held returns why a newcomer may not become up although it lives: who does not reach
// it, or is not reached by it, of those who are up; or who it was before, as long as
// that is a member too. It is "" if there is nobody.
func (m *Machine) held(newcomer gossip.NodeID) string {
	var reasons []string
	if twins := m.twinsOf(newcomer); len(twins) > 0 {
		reasons = append(reasons, "other incarnations of it are members: "+nodesText(twins))
	}
	if by := m.state.Observers(newcomer); len(by) > 0 {
		reasons = append(reasons, "it cannot be reached by "+nodesText(by))
	}
	var away []gossip.NodeID
	for _, row := range m.state.RowsOf(newcomer) {
		if member := m.state.Member(row.Subject); member != nil && !isNewcomer(member) && member.Status < gossip.Exiting {
			away = append(away, row.Subject)
		}
	}
	if len(away) > 0 {
		reasons = append(reasons, "it cannot reach "+nodesText(away))
	}
	return strings.Join(reasons, ", and ")
}

// twinsOf returns the other members at the address of one that are not down. Two may
// have been let in by members that had not heard of each other's. At most one of them
// lives; the others will be accused, and decided about.
func (m *Machine) twinsOf(n gossip.NodeID) []gossip.NodeID {
	var twins []gossip.NodeID
	members := m.state.Members() // Sorted by address.
	first, _ := slices.BinarySearchFunc(members, n.Address, func(member *gossip.Member, a gossip.Address) int {
		return member.Node.Address.Compare(a)
	})
	for _, member := range members[first:] {
		if member.Node.Address != n.Address {
			break
		}
		if member.Node != n && member.Status < gossip.Down {
			twins = append(twins, member.Node)
		}
	}
	return twins
}

// heldMyself is held for this node, while it is a newcomer.
func (m *Machine) heldMyself() string {
	if !isNewcomer(m.state.Member(m.self)) {
		return ""
	}
	return m.held(m.self)
}

// nodesText lists nodes for people, of many the first few.
func nodesText(nodes []gossip.NodeID) string {
	const shown = 5
	var texts []string
	for _, n := range nodes[:min(len(nodes), shown)] {
		texts = append(texts, n.String())
	}
	if more := len(nodes) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

// stays says once why a newcomer stays joining, and takes that back in silence.
func (m *Machine) stays(newcomer gossip.NodeID, why string) {
	g := &m.gate
	if why == "" {
		delete(g.said, newcomer)
	} else if g.said[newcomer] != why {
		g.said[newcomer] = why
		m.out.Decide("leader", newcomer.String(), "joining", "it stays joining: "+why)
	}
}

// waits tells whether an unreachable member is a newcomer who waits before the gate:
// it lives, since it has seen the state with all that is said of it. When it dies, a
// voter that reached it says so, or one that did not asks anew; see [Machine.renew].
func (m *Machine) waits(n gossip.NodeID) bool {
	return isNewcomer(m.state.Member(n)) && m.state.Seen(n) && !m.state.Reachable(n)
}

// isExcused tells whether convergence does not wait for a member.
func (m *Machine) isExcused(n gossip.NodeID) bool { return m.isConfirmed(n) || m.waits(n) }

// renew repeats what this voter says of newcomers that wait although no voter that
// monitors them reaches them, the first of those voters for all. A newcomer that lives
// will see the state with it; one that has died meanwhile will not, and is lost then.
// To the newcomer it is a sign of life of the voters.
func (m *Machine) renew() {
	var due []gossip.NodeID
	for _, row := range m.state.RowsOf(m.self) {
		n := row.Subject
		by := m.monitorsOf(n)
		if !m.waits(n) || len(by) == 0 || by[0] != m.self {
			continue
		}
		unreached := !slices.ContainsFunc(by, func(voter gossip.NodeID) bool { return m.state.ReachableFrom(voter, n) })
		if at, ok := m.gate.renewed[n]; !ok || !unreached {
			m.gate.renewed[n] = m.now.Mono
		} else if m.now.Mono.Sub(at) >= proofInterval {
			due = append(due, n)
		}
	}
	if len(due) == 0 {
		return
	}
	m.edit(func(e *gossip.Edit) {
		for _, n := range due {
			m.gate.renewed[n] = m.now.Mono
			e.Clear(n)
			e.Mark(n, gossip.Unreachable)
		}
	})
}

// noteProof notes when the voters last said something of this newcomer: then they, or
// what they know, can reach it in some way.
func (m *Machine) noteProof(prev *gossip.State) {
	if !isNewcomer(m.state.Member(m.self)) {
		return
	}
	said := prev.Member(m.self) == nil
	for _, voter := range m.state.Observers(m.self) {
		said = said || !slices.Equal(rowsAbout(prev, voter, m.self), rowsAbout(m.state, voter, m.self))
	}
	if said {
		m.gate.proofAt = m.now.Mono
	}
}

func rowsAbout(s *gossip.State, observer, subject gossip.NodeID) []gossip.Row {
	return slices.DeleteFunc(slices.Clone(s.RowsOf(observer)), func(r gossip.Row) bool { return r.Subject != subject })
}

// spares tells whether this node does not accuse another although it is silent. A
// newcomer would keep the whole cluster from converging if it accused voters whom it
// alone has never heard. So who hears a voter takes those for well, and so does who
// has never heard any, as long as it is told that they say so of it too.
func (m *Machine) spares(n gossip.NodeID) bool {
	if m.gate.answered[n] || !isNewcomer(m.state.Member(m.self)) {
		return false
	}
	heard := false
	for _, other := range m.beat.targets {
		if member := m.state.Member(other); m.gate.answered[other] && member != nil && votes(member) {
			heard = true
			if m.beat.registry.Available(other, m.now.Mono.Time()) {
				return true
			}
		}
	}
	return !heard && m.now.Mono.Sub(m.gate.proofAt) < proofInterval+proofInterval/2
}
