// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Each new state is checked for trouble ([resolver.watchView]). While there is some, a
// timer runs that each change of the view starts anew. When it fires
// ([resolver.viewStable]) the leader of the side decides, see deciding.go, and downs
// nodes ([resolver.downAll]). The command to down a member stands at the end: what it does
// on the node that gets the command, and on the one that it is about ([resolver.obey]).

// resolver decides, where this node leads its side of a partition, which members must go.
//
//	somebody unreachable -> view unchanged for stable-after -> ask the strategy
//	     ^                        |  (only the leader of the side)      |
//	     '--- view changes -------'                                     v
//	                             late or stale answers are dropped <- decision -> Down
type resolver struct {
	*core

	strategies *strategies

	// heardAll returns since when all voters that are not down have been heard, see [footing.heardAll].
	heardAll func() machine.Instant

	// troubled says that a member which is neither down nor exiting is unreachable, or
	// that too many voters are down.
	troubled bool

	// view is the digest of what a decision would rest on.
	view uint64

	// saw are the members that have seen a state with this view. rested says that the leader has
	// waited, once, for those of them that had not seen the present state when it was to decide.
	saw    map[gossip.NodeID]bool
	rested bool

	// stableSince is since when the view has not changed. troubledSince is since when there is
	// something to decide; times in which this node itself did not run are not counted.
	stableSince   machine.Instant
	troubledSince machine.Instant

	// call is the call of a strategy that is in flight, for this node or another; calledAt is when the last one began, 0
	// before the first.
	call     call
	calledAt machine.Instant

	// question is the decision that this node looks for as the leader of the side, or nil.
	question *question

	// questions is the number of the last question to another member, lastAsked the
	// member to which it went.
	questions uint64
	lastAsked gossip.NodeID

	// reported is the digest of the view of which this node has last said what it would
	// have done, where the strategy leaves it to an operator to act.
	reported uint64

	// holding are the numbers of the strategies that were asked, and keep others out until
	// they are told that the decision is settled.
	holding []uint64

	// failingSince is when the strategy first failed to answer since its last answer;
	// zero while it answers.
	failingSince machine.Instant
}

// watchView checks whether what a decision would rest on has changed.
func (r *resolver) watchView() {
	if len(r.trouble()) == 0 && !r.outvoted() {
		if r.troubled {
			r.out.Disarm(timerStable)
			r.dropQuestion()
			if c := r.call; !c.peer.IsZero() {
				r.answerPeer(c, downing.Decision{}, errOtherView)
				r.call.peer = gossip.NodeID{}
			}
			r.troubled, r.view, r.reported, r.failingSince = false, 0, 0, 0
			r.moveStanding()
		}
		r.settle()
		return
	}
	view := r.viewDigest()
	if r.troubled && view == r.view {
		r.noteSeen()
		return
	}
	if !r.troubled {
		r.troubledSince = r.now.Mono
		r.moveStanding()
	}
	r.troubled, r.view = true, view
	r.saw, r.rested = map[gossip.NodeID]bool{}, false
	r.noteSeen()
	r.dropQuestion()
	r.restartStability()
}

// noteSeen notes who has seen a state with the present view.
func (r *resolver) noteSeen() {
	for _, n := range r.state.SeenBy() {
		r.saw[n] = true
	}
}

// restOnTheWay is how long the news of an edit, and the news of who has seen it, may be under way,
// besides the rounds of pushes.
const restOnTheWay = 200 * time.Millisecond

// rests reports whether a decision may be taken now. A member that others complain about is on
// this side only if it has seen the state. An edit that does not change the view empties the seen
// set without beginning the wait for a stable view anew. So the members that had seen the view and
// have not seen the present state are waited for, once, for as long as news take.
func (r *resolver) rests() bool {
	missing := slices.ContainsFunc(r.state.Members(), func(m *gossip.Member) bool { return r.saw[m.Node] && !r.state.Seen(m.Node) })
	if missing && !r.rested {
		r.rested = true
		r.out.Arm(timerStable, r.now.Mono.Add(downing.Spread(len(r.state.Members()))+restOnTheWay))
		return false
	}
	r.rested = false
	return true
}

// settle tells strategies that keep others out that the decision is settled, as soon as the
// members that are down are removed. Their removal waits until all who go on know of it.
func (r *resolver) settle() {
	if len(r.holding) == 0 || slices.ContainsFunc(r.state.Members(), func(m *gossip.Member) bool { return m.Status == gossip.Down }) {
		return
	}
	for _, load := range r.holding {
		r.out.Publish(Settled{Load: load})
	}
	r.holding = nil
}

// restartStability starts the wait for a stable view again.
func (r *resolver) restartStability() {
	if !r.troubled {
		return
	}
	r.stableSince = r.now.Mono
	r.armStable()
}

// wake begins the wait for a stable view again after this node slept. The time that it slept through does not
// count for [Config.DownWhenUnstableAfter] either: it was a time without news, not one of changes.
func (r *resolver) wake() {
	r.troubledSince = r.troubledSince.Add(r.now.Mono.Sub(r.last.Mono))
	r.restartStability()
}

func (r *resolver) armStable() { r.out.Arm(timerStable, max(r.now.Mono, r.stableAt())) }

// stableAt is when the view is stable if it does not change, or unstable for so long that this makes no
// difference any more.
func (r *resolver) stableAt() machine.Instant {
	at := r.stableSince.Add(r.stableAfter())
	if r.cfg.DownWhenUnstableAfter > 0 && r.strategies.majorityOnly() {
		at = min(at, r.troubledSince.Add(max(r.cfg.DownWhenUnstableAfter, r.stableAfter())))
	}
	return at
}

// digest is a hash of words, FNV-1a except for its width. Nodes compare digests, so the
// value for given words is part of the wire.
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

// errOtherView says that the question is about another view than this member's.
var errOtherView = errors.New("this member has another view")

// sideDigest adds the members of the view's side to its digest. They follow from the seen
// set of the state.
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
func (r *resolver) viewDigest() uint64 {
	d := digestBegin
	note := func(n gossip.NodeID, status uint8) { d.note(uint64(n.UID), uint64(status)) }
	for _, member := range r.state.Members() {
		note(member.Node, uint8(member.Status))
	}
	for _, record := range r.state.Records() {
		note(record.Observer, 0)
		note(record.Subject, uint8(record.Status))
	}
	for _, voters := range r.surveyed.base {
		note(gossip.NodeID{}, 0)
		for _, v := range voters {
			note(v, 0)
		}
	}
	for _, strategy := range r.strategies.inForce() {
		d.note(uint64(strategy.ID()))
	}
	return uint64(d)
}

// viewStable is called when the view may have been stable for long enough. Only the
// leader of a side asks; the other members check again later, since the leader may die
// before it has decided.
func (r *resolver) viewStable() {
	if r.phase != phaseMember || !r.troubled {
		return
	}
	if r.now.Mono < r.stableAt() {
		r.armStable() // This node slept, and notices that in the step in which the timer fires.
		return
	}
	r.out.Arm(timerStable, r.now.Mono.Add(r.stableAfter()))
	if r.surveyed.leader != r.self || r.question != nil {
		return
	}
	if r.strategies.handsOff() && r.reported == r.view {
		return // An operator knows.
	}
	if r.call.id != 0 {
		return // The answer to an earlier question, or to one of a leader before, is still awaited.
	}
	if !r.rests() {
		return
	}
	view := downing.NewView(r.state, r.self, r.surveyed.base)
	if r.outvoted() {
		r.carryOut(downing.DownSide, r.ownSide(view), "so many voters are down that those who are left have no majority")
		return
	}
	if r.hasNoVoter(view.Side()) {
		r.carryOut(downing.DownSide, r.ownSide(view), "nobody on this side votes, and the others may not know of it")
		return
	}
	if next := r.calledAt.Add(callPause); r.calledAt > 0 && r.now.Mono < next {
		r.rested = true
		r.out.Arm(timerStable, next)
		return
	}
	view.Stable, view.Unstable = r.now.Mono.Sub(r.stableSince), r.now.Mono.Sub(r.troubledSince)
	r.begin(view)
}

// hasNoVoter tells whether there are voters, but none on a side. The other sides know all
// voters, but not all other members: a strategy that keeps one of those sides, and rules
// out all members that it knows of, would not have ruled out this side.
func (r *resolver) hasNoVoter(side *downing.Side) bool {
	return hasVoters(r.surveyed.base) && !slices.ContainsFunc(r.surveyed.base, func(voters []gossip.NodeID) bool {
		return slices.ContainsFunc(voters, side.Has)
	})
}

// ownSide returns the members of this node's side that can be downed.
func (r *resolver) ownSide(view downing.View) []gossip.NodeID {
	var nodes []gossip.NodeID
	for _, member := range view.Side().Members() {
		if downing.CanBeDowned(member) {
			nodes = append(nodes, member.Node)
		}
	}
	return nodes
}

// carryOut downs the nodes of a decision, or says which would be downed where that is left
// to an operator.
func (r *resolver) carryOut(verdict downing.Verdict, nodes []gossip.NodeID, reason string) {
	if !r.strategies.handsOff() {
		r.downAll(nodes, reason)
		return
	}
	r.reported = r.view
	if len(nodes) > 0 {
		r.out.Decide(topicReport, r.self.String(), "would "+verdict.String(), cutText("nobody is downed, would be: "+describeNodes(nodes)+"; "+reason))
	}
}

// topicReport is the topic of decisions that are not carried out.
const topicReport = "downing-report"

// nodesDescribed is how many nodes are named in words at most.
const nodesDescribed = 8

func describeNodes(nodes []gossip.NodeID) string {
	var names []string
	for _, n := range nodes[:min(len(nodes), nodesDescribed)] {
		names = append(names, n.String())
	}
	text := strings.Join(names, ", ")
	if more := len(nodes) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// downAll downs nodes in one edit, and tells those that may still hear it.
func (r *resolver) downAll(nodes []gossip.NodeID, reason string) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n gossip.NodeID) bool {
		member := r.state.Member(n)
		return member == nil || member.Status == gossip.Down
	})
	if len(nodes) == 0 {
		return
	}
	r.edit(func(e *gossip.Edit) {
		for _, node := range nodes {
			r.out.Decide("downing", node.String(), "down", reason)
			e.Down(node, reason)
		}
	})
	for _, node := range nodes {
		if node != r.self {
			r.out.Send(node, GossipState{State: r.state})
		}
	}
}

// commandDown downs a member by command.
func (r *resolver) commandDown(in Down) {
	member := r.memberOfCommand(gossip.NodeID{Address: in.Address, UID: in.UID}, "Down", in.ID)
	if member == nil {
		return
	}
	notReady := ""
	switch {
	case member.Status == gossip.Down:
		r.refuse(member.Node, "Down", RefusedUnknown, "the member is down already")
	case r.strategies.majorityOnly() || member.Node == r.self || !downing.CanBeDowned(member):
		r.downAll([]gossip.NodeID{member.Node}, commandReason)
	default:
		notReady = r.passOn(member.Node)
	}
	r.answerCommand(CommandAnswered{ID: in.ID, NotReady: notReady})
}

// commandReason is why a node is down that was downed by command.
const commandReason = "command: Down was called on that node"

// passOn passes the command to down a member on to that member, which ends, and to the
// strategy, where a minority may be kept. The member may live, never hear of the command,
// and be kept by the strategy: so nobody goes on without it by the command alone. The
// record says what the command says, that the member is to be counted on no more; with it
// the member is lost to this side as one that does not answer is. It returns why this node
// cannot pass the command on, empty if it can.
func (r *resolver) passOn(node gossip.NodeID) (notReady string) {
	switch {
	case r.ownStatus() >= gossip.Exiting:
		notReady = "this member is " + r.ownStatus().String() + ", and the others do not go by its records: give the command at another one"
		r.refuse(node, "Down", RefusedNotReady, notReady)
		return notReady
	case r.ownRecord(node) == gossip.Terminated:
		r.refuse(node, "Down", RefusedUnknown, "the command was given here before: the member ends, or the strategy decides")
		return ""
	}
	r.out.Decide("downing", node.String(), "commanded", "it ends when it hears of the command; if it does not, "+
		describeStrategy(r.strategies.active())+" decides whether this side goes on without it")
	r.edit(func(e *gossip.Edit) { e.Mark(node, gossip.Terminated) })
	r.out.Send(node, GossipState{State: r.state})
	return ""
}

// obey downs this node if a member that is not down was told by command to down it, and this
// node has not heard that from the state before. What a node says of itself needs no decision.
func (r *resolver) obey(before *gossip.State) {
	if r.state.SharesRows(before) {
		return
	}
	if by := r.commandedBy(); !by.IsZero() {
		r.downAll([]gossip.NodeID{r.self}, fmt.Sprintf("command: Down was called on %v", by))
	}
}

// commandedBy returns a member that was told to down this node, or none. An exiting member
// counts as well, as it does in a view: this node would not be on its own side.
func (r *resolver) commandedBy() gossip.NodeID {
	if r.ownStatus() == gossip.Down {
		return gossip.NodeID{}
	}
	for _, record := range r.state.Records() {
		if record.Subject == r.self && record.Status == gossip.Terminated && r.lives(record.Observer) {
			return record.Observer
		}
	}
	return gossip.NodeID{}
}

// outvoted tells whether the voters that are not down could not win even if all of them
// were reachable. Such a side cannot go on.
func (r *resolver) outvoted() bool {
	return r.strategies.majorityOnly() && r.surveyed.outvoted && !r.founding()
}
