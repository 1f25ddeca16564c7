// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership/machine"
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

	calls    machine.CallID // The number of the last call.
	inFlight machine.CallID // The call that is waited for, or none.
	asked    downing.View   // What was asked.
	askedOf  uint64         // Its digest.

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
			m.endCall()
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
	m.restartStability()
}

// trouble returns the unreachable members about whom there is something to
// decide.
func (m *Machine) trouble() []gossip.NodeID {
	return slices.DeleteFunc(slices.Clone(m.lost), func(n gossip.NodeID) bool {
		member := m.state.Member(n)
		return member == nil || n == m.self || !downing.CanBeDowned(member)
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

// viewDigest is a hash over the statuses of the members, who cannot reach whom,
// and the voters. Nodes enter by their uids, which are random numbers: it is
// compared with older digests of this node alone.
func (m *Machine) viewDigest() uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // Those of FNV-1a.
	h := uint64(offset)
	note := func(n gossip.NodeID, status uint8) {
		for _, x := range [...]uint64{uint64(n.UID), uint64(status)} {
			h = (h ^ x) * prime
			h ^= h >> 32
		}
	}
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
	return h
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
	if m.lead.leader != m.self || s.inFlight != 0 {
		return
	}
	view := downing.NewView(m.state, m.self, m.footing.base)
	if m.outvoted() {
		m.downAll(m.ownSide(view), "so many voters are down that those who are left have no majority")
		return
	}
	view.Stable, view.Unstable = m.now.Mono.Sub(s.stableSince), m.now.Mono.Sub(s.troubledSince)
	if decide := m.deps.Downing.Decide; decide != nil {
		decision, err := decide(view)
		m.decided(view, decision, err)
		return
	}
	s.calls++
	s.inFlight, s.asked, s.askedOf = s.calls, view, s.view
	m.out.Add(machine.Call{
		ID: s.inFlight, Kind: CallDowning, Limit: m.deps.Downing.Limit,
		Request: DowningRequest{Strategy: m.downingRegister().ID(), View: view},
	})
	m.out.Arm(timerCall, m.now.Mono.Add(m.deps.Downing.Limit))
}

func (m *Machine) endCall() {
	m.side.inFlight, m.side.asked = 0, downing.View{}
	m.out.Disarm(timerCall)
}

// downingCalled takes an answer of a strategy that was called. It is used only
// if it is the answer that is waited for, and what was asked is still so.
func (m *Machine) downingCalled(in machine.Called) {
	s := &m.side
	if in.ID != s.inFlight || s.inFlight == 0 {
		m.refused[RefusedUnsolicited]++
		return
	}
	view, of := s.asked, s.askedOf
	m.endCall()
	if !s.troubled || s.view != of || m.lead.leader != m.self {
		m.out.Decide("downing", "answer", "dropped", "the view has changed since the strategy was asked")
		return
	}
	decision, ok := in.Result.(downing.Decision)
	err := in.Err
	if err == nil && !ok {
		err = fmt.Errorf("the strategy answered with a %T", in.Result)
	}
	m.decided(view, decision, err)
}

// downingTimeout is the machine's own limit; a later answer is not waited for.
func (m *Machine) downingTimeout() {
	s := &m.side
	if s.inFlight == 0 || m.phase != phaseMember {
		return
	}
	view, current := s.asked, s.troubled && s.view == s.askedOf && m.lead.leader == m.self
	m.endCall()
	if current {
		m.decided(view, downing.Decision{}, fmt.Errorf("no answer within %v", m.deps.Downing.Limit))
	}
}

// decided carries a decision out, after a look at whether it keeps the contract.
func (m *Machine) decided(view downing.View, decision downing.Decision, err error) {
	if err == nil {
		err = downing.Check(view, m.deps.Downing.Class, decision)
	}
	if err != nil {
		m.undecided(view, err)
		return
	}
	m.side.failingSince = 0
	m.out.Decide("downing", m.self.String(), decision.Verdict.String(), decision.Reason)
	m.downAll(decision.Down, decision.Reason)
}

// undecided is the rule for a strategy that cannot answer. It is never replaced
// by one that could decide otherwise on the other side: only where the strategy
// promises to let nothing but majorities survive does a rule with the same
// promise step in. Otherwise the side waits, and in the end goes.
func (m *Machine) undecided(view downing.View, cause error) {
	s := &m.side
	if s.failingSince == 0 {
		s.failingSince = m.now.Mono
	}
	m.out.Decide("downing", m.self.String(), "unanswered", cause.Error())
	if m.majorityOnly() {
		decision, err := downing.KeepMajority{}.DecideNow(view)
		if err == nil {
			m.out.Decide("downing", m.self.String(), decision.Verdict.String(), "in place of the strategy: "+decision.Reason)
			m.downAll(decision.Down, decision.Reason)
		}
		return
	}
	if limit := m.deps.Downing.Config.DownOwnSideAfter; m.now.Mono.Sub(s.failingSince) >= limit {
		m.downAll(m.ownSide(view), fmt.Sprintf("no downing decision could be had for %v", limit))
	}
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
			e.SetStatus(node, gossip.Down, m.state.Member(node).UpNumber)
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
		m.downAll([]gossip.NodeID{member.Node}, "somebody asked for it")
	}
}
