// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// askMargin is added to the limit of a call when another member is asked, for the
// way there and back.
const askMargin = time.Second

// question is the decision that the leader of a side is looking for. Each strategy
// in force is asked, one after the other:
//
//	own strategy -- answer ------------------------------.
//	     |                                               |
//	     '- none -> the next member of the side that has it -- answer -> next strategy
//	                  ^        |                         |       |
//	                  '- none -+                         |       '- none left: decided
//	                           '- no member, or no time: rule of its class
//
// It ends when the view changes.
type question struct {
	view  downing.View
	of    uint64                   // Its digest.
	left  []gossip.DowningStrategy // Those that have not decided. The first is asked.
	taken []downing.Decision       // What the others have decided.

	number uint64          // Of the question to another member.
	asked  gossip.NodeID   // The member that is asked, or none.
	others []gossip.NodeID // Those that may be asked after it.
	until  machine.Instant // No longer are others asked.
}

// call is the call of a strategy that is in flight.
type call struct {
	id       machine.CallID // Zero: there is none.
	strategy loadedStrategy
	view     downing.View
	of       uint64 // Its digest.

	// peer is the member that asked, with the number of its question; none if this
	// node decides itself.
	peer   gossip.NodeID
	number uint64
}

// classOf returns what a strategy promises.
func classOf(s gossip.DowningStrategy) downing.Class {
	return downing.Class{Pure: s.Pure, MajorityOnly: s.MajorityOnly}
}

// check tells whether a decision keeps the contract of a strategy.
func check(view downing.View, s gossip.DowningStrategy, d downing.Decision) error {
	return downing.Check(view, classOf(s), d)
}

// begin begins to look for a decision.
func (m *Machine) begin(view downing.View) {
	m.side.question = &question{view: view, of: m.side.view, left: m.strategies.inForce()}
	m.askOwn()
}

// dropQuestion ends the search without a decision. A call that is in flight stays
// so, since there is one at a time; its answer is dropped.
func (m *Machine) dropQuestion() {
	if m.side.question != nil {
		m.side.question = nil
		m.out.Disarm(timerAsk)
	}
}

// askOwn asks this node's own strategy.
func (m *Machine) askOwn() {
	q := m.side.question
	strategy := m.strategies.find(q.left[0].ID())
	switch {
	case strategy == nil:
		m.answered(m.self, downing.Decision{}, fmt.Errorf("%s is not loaded", describeStrategy(q.left[0])))
	case strategy.Decide != nil:
		decision, err := strategy.Decide(q.view)
		m.answered(m.self, decision, err)
	default:
		m.call(call{strategy: *strategy, view: q.view, of: q.of})
	}
}

// call asks a strategy outside of the machine.
func (m *Machine) call(c call) {
	s := &m.side
	c.id = m.nextCall()
	s.call = c
	m.out.Add(machine.Call{
		ID: c.id, Kind: CallDowning, Limit: m.deps.Downing.Limit,
		Request: DowningRequest{Strategy: c.strategy.id, Load: c.strategy.Load, View: c.view},
	})
	m.out.Arm(timerCall, m.now.Mono.Add(m.deps.Downing.Limit))
}

// endCall stops waiting for the call in flight, and returns it.
func (m *Machine) endCall() call {
	c := m.side.call
	m.side.call = call{}
	m.out.Disarm(timerCall)
	return c
}

// downingCalled takes an answer of a strategy that was called. It is used only
// if it is the answer that is waited for, and what was asked is still so.
func (m *Machine) downingCalled(in machine.Called) {
	if in.ID != m.side.call.id || in.ID == 0 {
		m.refused[RefusedUnsolicited]++
		return
	}
	decision, ok := in.Result.(downing.Decision)
	err := in.Err
	if err == nil && !ok {
		err = fmt.Errorf("the strategy answered with a %T", in.Result)
	}
	m.called(m.endCall(), decision, err)
}

// downingTimeout is the machine's own limit; a later answer is not waited for.
func (m *Machine) downingTimeout() {
	if m.side.call.id != 0 && m.phase == phaseMember {
		m.called(m.endCall(), downing.Decision{}, fmt.Errorf("no answer within %v", m.deps.Downing.Limit))
	}
}

// called passes what came of a call to whoever asked.
func (m *Machine) called(c call, decision downing.Decision, err error) {
	switch {
	case !c.peer.IsZero():
		m.answerPeer(c, decision, err)
		if m.side.troubled {
			m.armStable() // This node may lead since, and have waited for the answer.
		}
	case m.current():
		m.answered(m.self, decision, err)
	default:
		m.dropQuestion()
		m.out.Decide("downing", "answer", "dropped", "the view has changed since the strategy was asked")
	}
}

// current tells whether this node still looks for a decision about the view that
// it has.
func (m *Machine) current() bool {
	s := &m.side
	return s.question != nil && s.troubled && s.view == s.question.of && m.lead.leader == m.self
}

// answered takes the answer of this node's own strategy or of another member's,
// after a look at whether it keeps the contract.
func (m *Machine) answered(by gossip.NodeID, decision downing.Decision, err error) {
	q := m.side.question
	if err == nil {
		err = check(q.view, q.left[0], decision)
	}
	switch {
	case err != nil:
		m.out.Decide("downing", by.String(), "unanswered", cutText(err.Error()))
		if by == m.self {
			m.findOthers()
		}
		m.askNext()
	default:
		if by != m.self {
			m.out.Decide("downing", by.String(), "answered", "in place of the strategy of the leader: "+decision.Reason)
		}
		m.take(decision)
	}
}

// take goes on to the next strategy while the side survives, or to the decision.
func (m *Machine) take(decision downing.Decision) {
	q := m.side.question
	decision.Reason = byName(q.left[0], decision.Reason)
	q.taken, q.left = append(q.taken, decision), q.left[1:]
	q.asked, q.others = gossip.NodeID{}, nil
	if len(q.left) > 0 && decision.Verdict == downing.KeepSide {
		m.askOwn()
		return
	}
	m.dropQuestion()
	m.side.failingSince = 0
	result := m.combine(q.view, q.taken)
	m.out.Decide("downing", m.self.String(), result.Verdict.String(), result.Reason)
	m.downAll(result.Down, result.Reason)
}

// byName puts the name of a strategy before its reason, unless that begins with it:
// those who are declared down hear no more than the reason.
func byName(s gossip.DowningStrategy, reason string) string {
	if s.Name == "" || strings.HasPrefix(reason, s.Name+":") {
		return reason
	}
	return cutText(s.Name + ": " + reason)
}

// combine returns the decision by all strategies that were asked: the side survives
// if it survives by each of them. All but the last keep it.
func (m *Machine) combine(view downing.View, taken []downing.Decision) downing.Decision {
	last := taken[len(taken)-1]
	if len(taken) == 1 || last.Verdict != downing.KeepSide {
		return last
	}
	joint := downing.Decision{
		Verdict: downing.KeepSide,
		Reason:  "by the strategy of the cluster and by the one before, of which others may not know that it was replaced",
	}
	for _, d := range taken {
		joint.Reason += "; " + d.Reason
		joint.Down = append(joint.Down, d.Down...)
	}
	slices.SortFunc(joint.Down, gossip.NodeID.Compare)
	joint.Down, joint.Reason = slices.Compact(joint.Down), cutText(joint.Reason)
	if check(view, gossip.DowningStrategy{}, joint) != nil { // Together they leave nobody.
		return downing.Decision{Verdict: downing.DownSide, Down: m.ownSide(view), Reason: joint.Reason}
	}
	return joint
}

// findOthers looks for the members that can be asked in place of this node's own
// strategy, which cannot answer: those of its side that have the strategy, begun
// after the one that was asked last, so that each gets its turn.
func (m *Machine) findOthers() {
	s, q := &m.side, m.side.question
	if s.failingSince == 0 {
		s.failingSince = m.now.Mono
	}
	q.until = s.failingSince.Add(m.deps.Downing.Config.DownOwnSideAfter)
	if q.left[0].MajorityOnly {
		// Another rule with the same promise is at hand, so this one is not waited
		// for long.
		q.until = m.now.Mono.Add(m.deps.Downing.Limit + askMargin)
	}
	id := q.left[0].ID()
	for _, member := range q.view.Side().Members() {
		if member.Node != m.self && votes(member) && !m.isLost(member.Node) && member.Loaded.Has(id) {
			q.others = append(q.others, member.Node)
		}
	}
	after, _ := slices.BinarySearchFunc(q.others, s.lastAsked, gossip.NodeID.Compare)
	if after < len(q.others) && q.others[after] == s.lastAsked {
		after++
	}
	q.others = slices.Concat(q.others[after:], q.others[:after])
}

// askNext asks the next member, or does what the class of the strategy says if
// there is none.
func (m *Machine) askNext() {
	s, q := &m.side, m.side.question
	if len(q.others) == 0 || m.now.Mono >= q.until {
		m.undecided()
		return
	}
	s.questions++
	q.number, q.asked, q.others = s.questions, q.others[0], q.others[1:]
	s.lastAsked = q.asked
	m.out.Send(q.asked, AskDowning{Question: q.number, Strategy: q.left[0].ID(), View: sideDigest(q.of, q.view)})
	m.out.Arm(timerAsk, min(q.until, m.now.Mono.Add(m.deps.Downing.Limit+askMargin)))
}

// askTimeout gives up the member that was asked.
func (m *Machine) askTimeout() {
	q := m.side.question
	if m.phase != phaseMember || q == nil || q.asked.IsZero() {
		return
	}
	if !m.current() {
		m.dropQuestion()
		return
	}
	m.answered(q.asked, downing.Decision{}, fmt.Errorf("the member did not answer within %v", m.deps.Downing.Limit+askMargin))
}

func (m *Machine) receiveDowningAnswer(from gossip.NodeID, msg DowningAnswer) {
	q := m.side.question
	switch {
	case m.phase != phaseMember || q == nil || q.asked != from || q.number != msg.Question:
		m.refuse(from, "DowningAnswer", RefusedUnsolicited, "no such question is open")
	case !m.current():
		m.dropQuestion()
		m.out.Decide("downing", "answer", "dropped", "the view has changed since the member was asked")
	case msg.Error != "":
		m.answered(from, downing.Decision{}, fmt.Errorf("the member says: %s", msg.Error))
	default:
		m.answered(from, msg.Decision, nil)
	}
}

// undecided is the rule for a strategy that cannot answer on any member. It is
// never replaced by one that could decide otherwise on the other side: only where
// it promises to let nothing but majorities survive does a rule with the same
// promise step in. Otherwise the side waits, and in the end goes.
func (m *Machine) undecided() {
	s, q := &m.side, m.side.question
	if q.left[0].MajorityOnly {
		if decision, err := (downing.KeepMajority{}).DecideNow(q.view); err == nil {
			decision.Reason = cutText("in place of the strategy: " + decision.Reason)
			m.take(decision)
			return
		}
	}
	m.dropQuestion()
	limit := m.deps.Downing.Config.DownOwnSideAfter
	switch gone := s.failingSince.Add(limit); {
	case q.left[0].MajorityOnly:
		// The view has changed so that nobody can decide about it: it is looked at
		// again when it is stable.
	case m.now.Mono >= gone:
		m.downAll(m.ownSide(q.view), fmt.Sprintf("no downing decision could be had for %v", limit))
	default:
		m.out.Arm(timerStable, min(gone, m.now.Mono.Add(m.stableAfter())))
	}
}

// receiveAskDowning decides, for the leader of this side, with this node's
// strategy. It does so from its own view, and only if that is the leader's.
func (m *Machine) receiveAskDowning(from gossip.NodeID, msg AskDowning) {
	s := &m.side
	switch {
	case m.phase != phaseMember:
		m.refused[RefusedNotReady]++
		return
	case m.dismiss(from):
		return
	case m.state.Member(from) == nil:
		m.refuse(from, "AskDowning", RefusedNotMember, "the sender is not known as a member")
		return
	case s.call.id != 0 && s.call.peer == from && s.call.number == msg.Question:
		return // It is being answered.
	}
	view := downing.NewView(m.state, m.self, m.footing.base)
	view.Stable, view.Unstable = m.now.Mono.Sub(s.stableSince), m.now.Mono.Sub(s.troubledSince)
	strategy := m.strategies.find(msg.Strategy)
	c := call{view: view, of: s.view, peer: from, number: msg.Question}
	switch {
	case m.lead.leader != from:
		m.answerPeer(c, downing.Decision{}, fmt.Errorf("the leader of the side is %v here", m.lead.leader))
	case !s.troubled || sideDigest(s.view, view) != msg.View:
		m.answerPeer(c, downing.Decision{}, errOtherView)
	case strategy == nil || !slices.Contains(m.strategies.inForce(), strategy.DowningStrategy):
		m.answerPeer(c, downing.Decision{}, fmt.Errorf("strategy %v does not decide here", msg.Strategy))
	case s.call.id != 0:
		m.answerPeer(c, downing.Decision{}, machine.ErrBusy)
	default:
		c.strategy = *strategy
		if strategy.Decide == nil {
			m.call(c)
			return
		}
		decision, err := strategy.Decide(view)
		m.answerPeer(c, decision, err)
	}
}

// answerPeer answers a member that asked for a decision.
func (m *Machine) answerPeer(c call, decision downing.Decision, err error) {
	if err == nil && m.side.view != c.of {
		err = errOtherView
	}
	if err == nil {
		err = check(c.view, c.strategy.DowningStrategy, decision)
	}
	answer := DowningAnswer{Question: c.number, Decision: decision}
	if err != nil {
		answer = DowningAnswer{Question: c.number, Error: cutText(cmp.Or(err.Error(), "no reason was given"))}
	}
	m.out.Send(c.peer, answer)
}
