// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// siding is how a node, as a leader of its side of a partition, decides who must
// go.
//
//	somebody unreachable -> view unchanged for stable-after -> ask the strategy
//	     ^                        |  (only the leader of the side)      |
//	     '--- view changes -------'                                     v
//	                             late or stale answers are dropped <- decision -> Down
type siding struct {
	// troubled says that somebody is unreachable who is neither down nor exiting,
	// or that too many voters are down.
	troubled bool
	view     uint64 // The digest of what a decision would rest on.

	stableSince   machine.Instant
	troubledSince machine.Instant

	call      call          // The one in flight, for this node or another.
	question  *question     // What this node decides as the leader of the side, or nil.
	questions uint64        // The number of the last question to another member.
	lastAsked gossip.NodeID // The member to which it went.

	// failingSince is when the strategy first could not answer, since it last
	// did; zero if it did.
	failingSince machine.Instant
}

// watchView looks whether what a decision would rest on has changed.
func (m *Machine) watchView() {
	s := &m.side
	if len(m.trouble()) == 0 && !m.outvoted() {
		if s.troubled {
			m.out.Disarm(timerStable)
			m.dropQuestion()
			if c := m.endCall(); !c.peer.IsZero() {
				m.answerPeer(c, downing.Decision{}, errOtherView)
			}
			s.troubled, s.view, s.failingSince = false, 0, 0
			m.footing.moved = true
		}
		return
	}
	view := m.viewDigest()
	if s.troubled && view == s.view {
		return
	}
	if !s.troubled {
		s.troubledSince = m.now.Mono
		m.footing.moved = true
	}
	s.troubled, s.view = true, view
	m.dropQuestion()
	m.restartStability()
}

// trouble returns the unreachable members about whom there is something to
// decide.
func (m *Machine) trouble() []gossip.NodeID {
	return slices.DeleteFunc(slices.Clone(m.lost), func(n gossip.NodeID) bool {
		member := m.state.Member(n)
		return member == nil || n == m.self || !downing.CanBeDowned(member) || m.waits(n)
	})
}

// restartStability begins the wait for a stable view anew.
func (m *Machine) restartStability() {
	s := &m.side
	if !s.troubled {
		return
	}
	s.stableSince = m.now.Mono
	m.armStable()
}

func (m *Machine) armStable() {
	s := &m.side
	at := s.stableSince.Add(m.stableAfter())
	if m.cfg.DownWhenUnstableAfter > 0 && m.majorityOnly() {
		at = min(at, max(m.now.Mono, s.troubledSince.Add(max(m.cfg.DownWhenUnstableAfter, m.stableAfter()))))
	}
	m.out.Arm(timerStable, at)
}

func (m *Machine) stableAfter() time.Duration {
	bounds := m.cfg.FailureDetector.Bounds()
	return m.deps.Downing.Config.Stable(len(m.state.Members()), bounds.MinSilence, bounds.MaxSilence, m.cfg.Fence)
}

// digest is a hash of words, FNV-1a but for its width. It is compared between
// nodes: what it makes of the same words is part of the wire.
type digest uint64

const (
	digestBegin digest = 14695981039346656037
	digestPrime digest = 1099511628211
)

func (d *digest) note(words ...uint64) {
	for _, w := range words {
		*d = (*d ^ digest(w)) * digestPrime
		*d ^= *d >> 32
	}
}

// errOtherView says that what is to be decided is not what a node sees.
var errOtherView = errors.New("this member has another view")

// sideDigest adds to the digest of a view who is on its side, which follows from
// who has seen the state.
func sideDigest(of uint64, view downing.View) uint64 {
	d := digest(of)
	for _, member := range view.Side().Members() {
		d.note(uint64(member.Node.UID))
	}
	return uint64(d)
}

// viewDigest is a hash over the statuses of the members, who cannot reach whom,
// the voters and the strategies in force. Nodes enter by their uids, which are
// random numbers.
func (m *Machine) viewDigest() uint64 {
	d := digestBegin
	note := func(n gossip.NodeID, status uint8) { d.note(uint64(n.UID), uint64(status)) }
	for _, member := range m.state.Members() {
		note(member.Node, uint8(member.Status))
	}
	for _, r := range m.state.Records() {
		note(r.Observer, 0)
		note(r.Subject, uint8(r.Status))
	}
	for _, voters := range m.footing.base {
		note(gossip.NodeID{}, 0)
		for _, v := range voters {
			note(v, 0)
		}
	}
	for _, strategy := range m.strategies.inForce() {
		d.note(uint64(strategy.ID()))
	}
	return uint64(d)
}

// viewStable is called when the view may have been stable for long enough. Only
// the leader of a side asks; the others look again later, since the leader may
// die before it has decided.
func (m *Machine) viewStable() {
	s := &m.side
	if m.phase != phaseMember || !s.troubled {
		return
	}
	m.out.Arm(timerStable, m.now.Mono.Add(m.stableAfter()))
	if m.lead.leader != m.self || s.question != nil {
		return
	}
	if s.call.id != 0 {
		return // The answer to an earlier question, or to that of a leader before, is still out.
	}
	view := downing.NewView(m.state, m.self, m.footing.base)
	if m.outvoted() {
		m.downAll(m.ownSide(view), "so many voters are down that those who are left have no majority")
		return
	}
	if m.hasNoVoter(view.Side()) {
		m.downAll(m.ownSide(view), "nobody on this side votes, and the others may not know of it")
		return
	}
	view.Stable, view.Unstable = m.now.Mono.Sub(s.stableSince), m.now.Mono.Sub(s.troubledSince)
	m.begin(view)
}

// hasNoVoter tells whether there are voters, and none of them is on a side. The other
// sides know all voters, and nobody else for certain: a strategy that keeps one of
// them, and rules out all whom it knows of, would not have ruled out this side.
func (m *Machine) hasNoVoter(side *downing.Side) bool {
	return hasVoters(m.footing.base) && !slices.ContainsFunc(m.footing.base, func(voters []gossip.NodeID) bool {
		return slices.ContainsFunc(voters, side.Has)
	})
}

// ownSide are the members of this node's side that can be downed.
func (m *Machine) ownSide(view downing.View) []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, member := range view.Side().Members() {
		if downing.CanBeDowned(member) {
			nodes = append(nodes, member.Node)
		}
	}
	return nodes
}

// downAll downs nodes in one edit, and tells those of them that may still hear.
func (m *Machine) downAll(nodes []gossip.NodeID, reason string) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n gossip.NodeID) bool {
		member := m.state.Member(n)
		return member == nil || member.Status == gossip.Down
	})
	if len(nodes) == 0 {
		return
	}
	m.edit(func(e *gossip.Edit) {
		for _, node := range nodes {
			m.out.Decide("downing", node.String(), "down", reason)
			e.Down(node, reason)
		}
	})
	for _, node := range nodes {
		if node != m.self {
			m.out.Send(node, GossipState{State: m.state})
		}
	}
}

// commandDown downs a member because somebody asked for it.
func (m *Machine) commandDown(address gossip.Address) {
	var member *gossip.Member
	if m.phase == phaseMember {
		member = m.state.ByAddress(address)
	}
	switch {
	case member == nil:
		m.refuse(gossip.NodeID{Address: address}, "Down", RefusedUnknown, "no member lives at this address")
	case member.Status == gossip.Down:
		m.refuse(member.Node, "Down", RefusedUnknown, "the member is down already")
	default:
		m.downAll([]gossip.NodeID{member.Node}, "command: Down was called on that node")
	}
}
