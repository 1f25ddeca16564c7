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

// The leader of a side asks its own strategy first ([resolver.begin]), takes the answer
// ([resolver.answered]), and goes on to the next strategy or to the decision
// ([resolver.take]). Without an answer it asks other members ([resolver.findOthers],
// [resolver.askNext]); if none of them answers either, a rule applies
// ([resolver.undecided]). The end of the file is the other side: what a member does that
// is asked ([resolver.receiveAskDowning]).

// askMargin is added to the limit of a call when another member is asked, for the way
// there and back.
const askMargin = time.Second

// callPause is the least time between a call of a strategy and the next question that begins with one: a cluster that
// has been unstable for long has a new view to decide about with each change.
const callPause = time.Second

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
	of    uint64                   // Digest of the view that is decided about.
	left  []gossip.DowningStrategy // Strategies that have not decided; the first is being asked.
	taken []downing.Decision       // Decisions of the strategies that were asked before.

	number uint64          // Number of the question to another member.
	asked  gossip.NodeID   // The member that is being asked, or none.
	others []gossip.NodeID // Members that may be asked after it.
	until  machine.Instant // When other members stop being asked.
}

// call is the call of a strategy that is in flight.
type call struct {
	id       machine.CallID // Zero: no call is in flight.
	strategy loadedStrategy
	view     downing.View
	of       uint64 // Digest of the view that the call is about.

	// peer is the member that asked, with the number of its question; none if this node
	// decides itself.
	peer   gossip.NodeID
	number uint64
}

// classOf returns what a strategy promises about the sides that survive.
func classOf(s gossip.DowningStrategy) downing.Class {
	return downing.Class{Pure: s.Pure, MajorityOnly: s.MajorityOnly}
}

// check tells whether a decision keeps the contract of a strategy. What a strategy only
// reports need not keep to majorities: nobody is kept by it.
func check(view downing.View, s gossip.DowningStrategy, d downing.Decision) error {
	class := classOf(s)
	class.MajorityOnly = class.MajorityOnly && !downing.OnlyReports(s.Parameters)
	return downing.Check(view, class, d)
}

// late returns an error if a strategy keeps this side, and may have kept another one before
// and let it go since. That can be when this node has not heard all voters for some time:
// see [downing.HeardWithin]. The clock is that of this step, so a node that was frozen
// meanwhile notices.
func (r *resolver) late(s *loadedStrategy, d downing.Decision) error {
	if s.Keeps == 0 || d.Verdict != downing.KeepSide {
		return nil
	}
	age, most := r.now.Mono.Sub(r.heardAll()), downing.HeardWithin(s.Keeps, r.deps.Downing.Limit+askMargin)
	if age <= most {
		return nil
	}
	return fmt.Errorf("%s: not all voters were heard for %v, and within %v it could have kept another side and let it go", s.Name, age.Round(time.Millisecond), most)
}

// begin starts the search for a decision about a view.
func (r *resolver) begin(view downing.View) {
	r.question = &question{view: view, of: r.view, left: r.strategies.inForce()}
	r.askOwn()
}

// dropQuestion ends the search without a decision. A call in flight is left to finish,
// since only one may run at a time; its answer is dropped.
func (r *resolver) dropQuestion() {
	if r.question != nil {
		r.question = nil
		r.out.Disarm(timerAsk)
	}
}

// askOwn asks this node's own strategy.
func (r *resolver) askOwn() {
	q := r.question
	strategy := r.strategies.find(q.left[0].ID())
	switch {
	case downing.OnlyReports(q.left[0].Parameters) && !r.strategies.handsOff():
		// Others may still only report, and hold a majority without deciding.
		decision, err := (downing.KeepMajority{}).DecideNow(q.view)
		r.answered(r.self, decision, err)
	case strategy == nil:
		r.answered(r.self, downing.Decision{}, fmt.Errorf("%s is not loaded", describeStrategy(q.left[0])))
	case strategy.Decide != nil:
		decision, err := strategy.Decide(q.view)
		r.answered(r.self, decision, err)
	default:
		r.callStrategy(call{strategy: *strategy, view: q.view, of: q.of})
	}
}

// callStrategy asks a strategy that runs outside of the machine.
func (r *resolver) callStrategy(c call) {
	c.id = r.nextCall()
	r.call, r.calledAt = c, r.now.Mono
	if load := c.strategy.Load; c.strategy.Keeps > 0 && !slices.Contains(r.holding, load) {
		r.holding = append(r.holding, load)
	}
	r.out.Add(machine.Call{
		ID: c.id, Port: CallDowning, Limit: r.deps.Downing.Limit,
		Request: DowningRequest{Strategy: c.strategy.id, Load: c.strategy.Load, View: c.view},
	})
	r.out.Arm(timerCall, r.now.Mono.Add(r.deps.Downing.Limit))
}

// endCall stops waiting for the call in flight, and returns it.
func (r *resolver) endCall() call {
	c := r.call
	r.call = call{}
	r.out.Disarm(timerCall)
	return c
}

// downingCalled takes the answer of a strategy that was called. The answer is used only
// if its call is still in flight and the view has not changed.
func (r *resolver) downingCalled(in machine.Called) {
	if in.ID != r.call.id || in.ID == 0 {
		r.refuseSilently(RefusedUnsolicited)
		return
	}
	decision, ok := in.Result.(downing.Decision)
	err := in.Err
	if err == nil && !ok {
		r.refuseSilently(RefusedAnswer)
		err = fmt.Errorf("the strategy answered with a %T", in.Result)
	}
	r.called(r.endCall(), decision, err)
}

// downingTimeout gives up the call in flight at the machine's own limit; a later answer
// is dropped.
func (r *resolver) downingTimeout() {
	if r.call.id != 0 && r.phase == phaseMember {
		r.called(r.endCall(), downing.Decision{}, fmt.Errorf("no answer within %v", r.deps.Downing.Limit))
	}
}

// called passes the result of a call to this node's question or to the member that asked.
func (r *resolver) called(c call, decision downing.Decision, err error) {
	switch {
	case !c.peer.IsZero():
		r.answerPeer(c, decision, err)
	case r.current():
		r.answered(r.self, decision, err)
		return
	default:
		r.dropQuestion()
		r.out.DecideOften("downing", "answer", "dropped", "the view has changed since the strategy was asked")
	}
	if r.troubled {
		r.armStable() // A question of this node may wait for the end of the call.
	}
}

// current tells whether this node still looks for a decision about its present view.
func (r *resolver) current() bool {
	return r.question != nil && r.troubled && r.view == r.question.of && r.surveyed.leader == r.self
}

// answered takes the answer of this node's own strategy or of another member's, and
// checks that it keeps the contract.
func (r *resolver) answered(by gossip.NodeID, decision downing.Decision, err error) {
	q := r.question
	if err == nil {
		if err = check(q.view, q.left[0], decision); err != nil {
			r.refuseSilently(RefusedAnswer)
		}
	}
	if strategy := r.strategies.find(q.left[0].ID()); err == nil && strategy != nil {
		err = r.late(strategy, decision)
	}
	switch {
	case err != nil:
		r.out.DecideOften("downing", by.String(), VerdictUnanswered, cutText(err.Error()))
		if by == r.self {
			r.findOthers()
		}
		r.askNext()
	default:
		if by != r.self {
			r.out.DecideOften("downing", by.String(), "answered", "in place of the strategy of the leader: "+decision.Reason)
		}
		r.take(decision)
	}
}

// take goes on to the next strategy while the side survives, and otherwise to the
// decision.
func (r *resolver) take(decision downing.Decision) {
	q := r.question
	decision.Reason = byName(q.left[0], decision.Reason)
	q.taken, q.left = append(q.taken, decision), q.left[1:]
	q.asked, q.others = gossip.NodeID{}, nil
	if len(q.left) > 0 && decision.Verdict == downing.KeepSide {
		r.askOwn()
		return
	}
	r.dropQuestion()
	r.failingSince = 0
	result := r.combine(q.view, q.taken)
	switch {
	case result.Verdict == downing.None: // It is asked again.
		r.out.DecideOften("downing", r.self.String(), result.Verdict.String(), result.Reason)
	case !r.strategies.handsOff():
		r.out.Decide("downing", r.self.String(), result.Verdict.String(), result.Reason)
	}
	r.carryOut(result.Verdict, result.Down, result.Reason)
}

// byName puts the name of a strategy before its reason, unless the reason begins with it:
// nodes that are declared down hear only the reason.
func byName(s gossip.DowningStrategy, reason string) string {
	if s.Name == "" || strings.HasPrefix(reason, s.Name+":") {
		return reason
	}
	return cutText(s.Name + ": " + reason)
}

// combine returns the decision by all strategies that were asked: the side survives if it
// survives by each of them. All but the last have kept it. Where they down different members,
// what is left is a side that none of them has judged: it survives with a majority only, of which
// there is one.
func (r *resolver) combine(view downing.View, taken []downing.Decision) downing.Decision {
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
	differ := slices.ContainsFunc(taken, func(d downing.Decision) bool { return len(d.Down) != len(joint.Down) })
	if check(view, gossip.DowningStrategy{MajorityOnly: differ}, joint) != nil { // Together the decisions leave too few, or nobody.
		return downing.Decision{Verdict: downing.DownSide, Down: r.ownSide(view), Reason: joint.Reason}
	}
	return joint
}

// findOthers looks for members that can be asked when this node's own strategy cannot
// answer: those of its side that have the strategy. The search begins after the member
// that was asked last, so that each gets its turn.
func (r *resolver) findOthers() {
	q := r.question
	if r.failingSince == 0 {
		r.failingSince = r.now.Mono
	}
	q.until = r.failingSince.Add(r.deps.Downing.Config.DownOwnSideAfter)
	if q.left[0].MajorityOnly {
		// A rule with the same promise can step in, so this strategy is not waited for
		// long.
		q.until = r.now.Mono.Add(r.deps.Downing.Limit + askMargin)
	}
	id := q.left[0].ID()
	for _, member := range q.view.Side().Members() {
		if member.Node != r.self && votes(member) && !r.isLost(member.Node) && member.Loaded.Has(id) {
			q.others = append(q.others, member.Node)
		}
	}
	after, _ := slices.BinarySearchFunc(q.others, r.lastAsked, gossip.NodeID.Compare)
	if after < len(q.others) && q.others[after] == r.lastAsked {
		after++
	}
	q.others = slices.Concat(q.others[after:], q.others[:after])
}

// askNext asks the next member, or does what the class of the strategy says if
// there is none.
func (r *resolver) askNext() {
	q := r.question
	if len(q.others) == 0 || r.now.Mono >= q.until {
		r.undecided()
		return
	}
	r.questions++
	q.number, q.asked, q.others = r.questions, q.others[0], q.others[1:]
	r.lastAsked = q.asked
	r.out.Send(q.asked, AskDowning{Question: q.number, Strategy: q.left[0].ID(), View: sideDigest(q.of, q.view)})
	r.out.Arm(timerAsk, min(q.until, r.now.Mono.Add(r.deps.Downing.Limit+askMargin)))
}

// askTimeout gives up on the member that was asked.
func (r *resolver) askTimeout() {
	q := r.question
	if r.phase != phaseMember || q == nil || q.asked.IsZero() {
		return
	}
	if !r.current() {
		r.dropQuestion()
		return
	}
	r.answered(q.asked, downing.Decision{}, fmt.Errorf("the member did not answer within %v", r.deps.Downing.Limit+askMargin))
}

func (r *resolver) receiveDowningAnswer(from gossip.NodeID, msg DowningAnswer) {
	q := r.question
	switch {
	case r.phase != phaseMember || q == nil || q.asked != from || q.number != msg.Question:
		r.refuse(from, "DowningAnswer", RefusedUnsolicited, "no such question is open")
	case !r.current():
		r.dropQuestion()
		r.out.DecideOften("downing", "answer", "dropped", "the view has changed since the member was asked")
	case msg.Error != "":
		r.answered(from, downing.Decision{}, fmt.Errorf("the member says: %s", msg.Error))
	default:
		r.answered(from, msg.Decision, nil)
	}
}

// undecided applies when a strategy cannot answer on any member. The strategy is never
// replaced by a rule that could decide otherwise on the other side: only if it promises
// to let nothing but majorities survive does a rule with the same promise step in.
// Otherwise the side waits, and in the end goes down.
func (r *resolver) undecided() {
	q := r.question
	if q.left[0].MajorityOnly {
		if decision, err := (downing.KeepMajority{}).DecideNow(q.view); err == nil {
			decision.Reason = cutText("in place of the strategy: " + decision.Reason)
			r.take(decision)
			return
		}
	}
	r.dropQuestion()
	limit := r.deps.Downing.Config.DownOwnSideAfter
	switch gone := r.failingSince.Add(limit); {
	case q.left[0].MajorityOnly:
		// The view has changed so that nobody can decide about it; it is looked at again
		// when it is stable.
	case r.now.Mono >= gone:
		r.carryOut(downing.DownSide, r.ownSide(q.view), fmt.Sprintf("no downing decision could be had for %v", limit))
	default:
		r.out.Arm(timerStable, min(gone, r.now.Mono.Add(r.stableAfter())))
	}
}

// receiveAskDowning decides for the leader of this side, with this node's strategy. It
// does so from its own view, and only if that is the leader's view too.
func (r *resolver) receiveAskDowning(from gossip.NodeID, msg AskDowning) {
	switch {
	case r.phase != phaseMember:
		r.refuseSilently(RefusedNotReady)
		return
	case r.dismiss(from):
		return
	case r.state.Member(from) == nil:
		r.refuse(from, "AskDowning", RefusedNotMember, "the sender is not known as a member")
		return
	case r.call.id != 0 && r.call.peer == from && r.call.number == msg.Question:
		return // The same question is being answered already.
	}
	view := downing.NewView(r.state, r.self, r.surveyed.base)
	view.Stable, view.Unstable = r.now.Mono.Sub(r.stableSince), r.now.Mono.Sub(r.troubledSince)
	strategy := r.strategies.find(msg.Strategy)
	c := call{view: view, of: r.view, peer: from, number: msg.Question}
	switch {
	case r.surveyed.leader != from:
		r.answerPeer(c, downing.Decision{}, fmt.Errorf("the leader of the side is %v here", r.surveyed.leader))
	case !r.troubled || sideDigest(r.view, view) != msg.View:
		r.answerPeer(c, downing.Decision{}, errOtherView)
	case strategy == nil || !slices.Contains(r.strategies.inForce(), strategy.DowningStrategy):
		r.answerPeer(c, downing.Decision{}, fmt.Errorf("strategy %v does not decide here", msg.Strategy))
	case r.call.id != 0:
		r.answerPeer(c, downing.Decision{}, machine.ErrBusy)
	default:
		c.strategy = *strategy
		if strategy.Decide == nil {
			r.callStrategy(c)
			return
		}
		decision, err := strategy.Decide(view)
		r.answerPeer(c, decision, err)
	}
}

// answerPeer answers a member that asked for a decision.
func (r *resolver) answerPeer(c call, decision downing.Decision, err error) {
	if err == nil && r.view != c.of {
		err = errOtherView
	}
	if err == nil {
		if err = check(c.view, c.strategy.DowningStrategy, decision); err != nil {
			r.refuseSilently(RefusedAnswer)
		}
	}
	if err == nil {
		err = r.late(&c.strategy, decision)
	}
	answer := DowningAnswer{Question: c.number, Decision: decision}
	if err != nil {
		answer = DowningAnswer{Question: c.number, Error: cutText(cmp.Or(err.Error(), "no reason was given"))}
	}
	r.out.Send(c.peer, answer)
}
