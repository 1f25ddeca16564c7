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

// A voter tells the leader whom it has reached ([gate.tell]), the leader takes that
// ([gate.receive]) and asks about each newcomer whether it passes ([gate.passes]) and what holds
// it ([gate.held]). Last: that a newcomer which waits still lives is asked again
// ([gate.renew]).

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
	*core

	monitoring *heartbeats

	// told are the newcomers of which the leader was told last, and leader is that one.
	told   []gossip.UID
	leader gossip.NodeID

	// reports are the newcomers that each voter says it has reached, as the leader hears.
	reports map[gossip.NodeID][]gossip.UID

	// said is the reason that was told last why a newcomer stays joining.
	said map[gossip.NodeID]string

	// renewed is when this node asked last whether a newcomer that waits still lives, see
	// [gate.renew].
	renewed map[gossip.NodeID]machine.Instant

	// monitors holds the voters by whom each newcomer of a state is monitored.
	monitors map[gossip.NodeID][]gossip.NodeID
	of       *gossip.State
}

func newGate(c *core, monitoring *heartbeats) *gate {
	return &gate{
		core: c, monitoring: monitoring, reports: map[gossip.NodeID][]gossip.UID{}, said: map[gossip.NodeID]string{},
		renewed: map[gossip.NodeID]machine.Instant{},
	}
}

// forget drops what is known of a node that is not monitored, or no member any more.
func (g *gate) forget(n gossip.NodeID) {
	delete(g.reports, n)
	delete(g.said, n)
	delete(g.renewed, n)
}

// isNewcomer tells whether a member has not been up yet.
func isNewcomer(member *gossip.Member) bool {
	return member != nil && (member.Status == gossip.Joining || member.Status == gossip.WeaklyUp)
}

// tell tells the leader which newcomers have answered this voter, when it has not
// been told that, or again: what was said may have been lost. It returns true if this
// node is the leader, and there is something new.
func (g *gate) tell(again bool) bool {
	if me := g.state.Member(g.self); g.phase != phaseMember || me == nil || !g.isVoter(me) {
		return false
	}
	var reached []gossip.UID
	for _, member := range g.state.Members() {
		if isNewcomer(member) && g.monitoring.hasAnswered(member.Node) && len(reached) < MaxReached {
			reached = append(reached, member.Node.UID)
		}
	}
	news := g.leader != g.surveyed.leader || !slices.Equal(g.told, reached)
	g.told, g.leader = reached, g.surveyed.leader
	if g.leader == g.self {
		return news
	}
	if !g.leader.IsZero() && len(reached) > 0 && (news || again) {
		g.out.Send(g.leader, Reached{Nodes: reached})
	}
	return false
}

// receive takes what a voter tells the leader. It returns true if it may change what the
// leader does.
func (g *gate) receive(from gossip.NodeID, msg Reached) bool {
	switch {
	case g.phase != phaseMember:
		g.refuseSilently(RefusedNotReady)
	case g.dismiss(from):
	case g.state.Member(from) == nil:
		g.refuse(from, "Reached", RefusedNotMember, "the sender is not known as a member")
	default:
		g.reports[from] = msg.Nodes
		return true
	}
	return false
}

// monitorsOf returns the voters that monitor a newcomer.
func (g *gate) monitorsOf(newcomer gossip.NodeID) []gossip.NodeID {
	if g.of != g.state {
		g.of, g.monitors = g.state, g.monitorsOfNewcomers()
	}
	return g.monitors[newcomer]
}

func (g *gate) monitorsOfNewcomers() map[gossip.NodeID][]gossip.NodeID {
	monitors := map[gossip.NodeID][]gossip.NodeID{}
	for _, voter := range g.state.Config().Voters {
		if member := g.state.Member(voter); member == nil || !votes(member) {
			continue
		}
		for _, node := range g.monitoring.targetsOf(voter) {
			if isNewcomer(g.state.Member(node)) {
				monitors[node] = append(monitors[node], voter)
			}
		}
	}
	return monitors
}

// hasReached tells whether a voter has said that a newcomer answered it.
func (g *gate) hasReached(voter, newcomer gossip.NodeID) bool {
	if voter == g.self {
		return g.monitoring.hasAnswered(newcomer)
	}
	return slices.Contains(g.reports[voter], newcomer.UID)
}

// passes tells whether all voters that monitor a newcomer have reached it.
func (g *gate) passes(newcomer gossip.NodeID) bool {
	return !slices.ContainsFunc(g.monitorsOf(newcomer), func(voter gossip.NodeID) bool {
		return voter != newcomer && !g.hasReached(voter, newcomer)
	})
}

// held returns why a newcomer may not become up although it lives: who does not reach
// it, or is not reached by it, of those who are up; or who it was before, as long as
// that is a member too. It is "" if there is nobody.
func (g *gate) held(newcomer gossip.NodeID) string {
	var reasons []string
	if twins := g.twinsOf(newcomer); len(twins) > 0 {
		reasons = append(reasons, "other incarnations of it are members: "+nodesText(twins))
	}
	if by := g.state.Observers(newcomer); len(by) > 0 {
		reasons = append(reasons, "it cannot be reached by "+nodesText(by))
	}
	var away []gossip.NodeID
	for _, row := range g.state.RowsOf(newcomer) {
		if member := g.state.Member(row.Subject); member != nil && !isNewcomer(member) && member.Status < gossip.Exiting {
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
func (g *gate) twinsOf(n gossip.NodeID) []gossip.NodeID {
	var twins []gossip.NodeID
	members := g.state.Members() // Sorted by address.
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
func (g *gate) heldMyself() string {
	if !isNewcomer(g.state.Member(g.self)) {
		return ""
	}
	return g.held(g.self)
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
func (g *gate) stays(newcomer gossip.NodeID, why string) {
	if why == "" {
		delete(g.said, newcomer)
	} else if g.said[newcomer] != why {
		g.said[newcomer] = why
		g.out.Decide("leader", newcomer.String(), "joining", "it stays joining: "+why)
	}
}

// renew repeats what this voter says of newcomers that wait although no voter that
// monitors them reaches them, the first of those voters for all. A newcomer that lives
// will see the state with it; one that has died meanwhile will not, and is lost then.
// To the newcomer it is a sign of life of the voters.
func (g *gate) renew() {
	var due []gossip.NodeID
	for _, row := range g.state.RowsOf(g.self) {
		n := row.Subject
		by := g.monitorsOf(n)
		if !g.waits(n) || len(by) == 0 || by[0] != g.self {
			continue
		}
		unreached := !slices.ContainsFunc(by, func(voter gossip.NodeID) bool { return g.state.ReachableFrom(voter, n) })
		if at, ok := g.renewed[n]; !ok || !unreached {
			g.renewed[n] = g.now.Mono
		} else if g.now.Mono.Sub(at) >= proofInterval {
			due = append(due, n)
		}
	}
	if len(due) == 0 {
		return
	}
	g.edit(func(e *gossip.Edit) {
		for _, n := range due {
			g.renewed[n] = g.now.Mono
			e.Clear(n)
			e.Mark(n, gossip.Unreachable)
		}
	})
}
