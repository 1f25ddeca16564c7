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

// A voter tells the leader which newcomers it has reached ([gate.tell]). The leader notes
// that ([gate.receive]), and asks about each newcomer whether it passes ([gate.passes])
// and what holds it back ([gate.held]). The last function makes newcomers that wait show
// again that they live ([gate.renew]).

// proofInterval is the time after which a newcomer that no voter reaches must show again
// that it lives. Each time costs an edit.
const proofInterval = 10 * time.Second

// gate keeps newcomers, that is joining and weakly-up members, from becoming up before
// every voter that monitors them has had an answer to a heartbeat from them. A newcomer
// that a voter cannot reach would be marked unreachable by that voter seconds later, be
// downed for that, be started again and become up again, for as long as the link is
// broken.
//
//	newcomer -- answers --> voter -- Reached --> leader: up when all have said so
//	                          |
//	                          '- no answer for max-silence: unreachable, in the state
//
// A voter without an answer says so by its unreachable record. The newcomer then stays
// joining, with a decision that names the voter. While the newcomer shows that it lives,
// the record neither keeps the state from converging nor gets the newcomer downed.
type gate struct {
	*core

	monitoring *heartbeats

	// told are the newcomers that this node last reported, and leader the member to which
	// it did.
	told   []gossip.UID
	leader gossip.NodeID

	// reports holds, for the leader, the newcomers that each voter says it has reached, sorted: each of many newcomers
	// is looked up in those of the voters that monitor it.
	reports map[gossip.NodeID][]gossip.UID

	// said is the last reason that was given for each newcomer that stays joining.
	said map[gossip.NodeID]string

	// renewed is when this node last asked each waiting newcomer for a sign of life, see
	// [gate.renew].
	renewed map[gossip.NodeID]machine.Instant

	// monitors holds the voters that monitor each newcomer of a state.
	monitors map[gossip.NodeID][]gossip.NodeID
	of       *gossip.State
}

func newGate(c *core, monitoring *heartbeats) *gate {
	return &gate{
		core: c, monitoring: monitoring, reports: map[gossip.NodeID][]gossip.UID{}, said: map[gossip.NodeID]string{},
		renewed: map[gossip.NodeID]machine.Instant{},
	}
}

// forget drops what is known of a node that is no longer monitored, or no longer a
// member.
func (g *gate) forget(n gossip.NodeID) {
	delete(g.reports, n)
	delete(g.said, n)
	delete(g.renewed, n)
}

// isNewcomer tells whether a member has not been up yet.
func isNewcomer(member *gossip.Member) bool {
	return member != nil && (member.Status == gossip.Joining || member.Status == gossip.WeaklyUp)
}

// tell tells the leader which newcomers have answered this voter, if that is news, or
// again since the message may have been lost. It returns true if this node is the leader
// and there is news.
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

// receive takes the report of a voter to the leader. It returns true if the report may
// change what the leader does.
func (g *gate) receive(from gossip.NodeID, msg Reached) bool {
	switch {
	case g.phase != phaseMember:
		g.refuseSilently(RefusedNotReady)
	case g.dismiss(from):
	case g.state.Member(from) == nil:
		g.refuse(from, "Reached", RefusedNotMember, "the sender is not known as a member")
	default:
		g.reports[from] = slices.Sorted(slices.Values(msg.Nodes))
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
	_, reached := slices.BinarySearch(g.reports[voter], newcomer.UID)
	return reached
}

// passes tells whether all voters that monitor a newcomer have reached it.
func (g *gate) passes(newcomer gossip.NodeID) bool {
	return !slices.ContainsFunc(g.monitorsOf(newcomer), func(voter gossip.NodeID) bool {
		return voter != newcomer && !g.hasReached(voter, newcomer)
	})
}

// held returns why a newcomer may not become up although it lives: the members that are
// up and do not reach it, or are not reached by it; or its predecessor, as long as that
// is a member too. It returns "" if nothing holds the newcomer.
func (g *gate) held(newcomer gossip.NodeID) string {
	var reasons []string
	if twins := g.otherIncarnationsOf(newcomer); len(twins) > 0 {
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

// otherIncarnationsOf returns the other members at the address of a node that are not down. Two
// members may each have let in a node at that address before they heard of each other's.
// At most one of the twins lives; the others will be marked unreachable, and decided
// about.
func (g *gate) otherIncarnationsOf(n gossip.NodeID) []gossip.NodeID {
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

// reasonSelfHeld returns what holds this node back while it is a newcomer.
func (g *gate) reasonSelfHeld() string {
	if !isNewcomer(g.state.Member(g.self)) {
		return ""
	}
	return g.held(g.self)
}

// nodesText lists nodes for people, of many only the first few.
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

// stays says once why a newcomer stays joining, and forgets the reason silently when
// there is none.
func (g *gate) stays(newcomer gossip.NodeID, why string) {
	if why == "" {
		delete(g.said, newcomer)
	} else if g.said[newcomer] != why {
		g.said[newcomer] = why
		g.out.Decide("leader", newcomer.String(), "joining", "it stays joining: "+why)
	}
}

// renew repeats this voter's records about waiting newcomers that no voter that monitors
// them reaches; the first of those voters does so for all. A newcomer that lives will see
// the state with the records; a newcomer that has died will not, and is lost then. To the
// newcomer they are a sign of life of the voters.
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
