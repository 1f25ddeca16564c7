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

// A search begins ([joining.start], [joining.search]) and asks seed nodes
// ([joining.askSeeds]) until a member answers that may be joined
// ([joining.receiveInitJoinAck]). That member is asked to let this node in, and refuses
// ([joining.receiveJoinRefused]) or welcomes it ([joining.receiveWelcome]). The node
// enters when the voters are in its record ([joining.enter]).

// joining finds a cluster for a node that is in none, and has a member of it let the node in.
//
//	     .---- back-off ----.
//	     v                  |
//	InitJoin to seeds and --+-- who answer are in no cluster --> a vote, see formation.go
//	remembered voters
//	     |   ^
//	 ack |   | refused for now, or no answer for long
//	     v   |
//	JoinRequest to one -- Welcome --> record on disk --> member
//	     |
//	     '-- refused for good --> stop
type joining struct {
	*core

	inquiry       *inquiry
	contactSearch *contactSearch
	formation     *formation
	memory        *memory
	otherClusters *otherClusters

	// becomeMember makes this node a member by a state whose voters are in its record.
	becomeMember func(*gossip.State)

	// asked counts the questions since the last answer, for the back-off.
	asked int

	// target is the member that was asked to let this node join, if any, and cluster is
	// the target's cluster.
	target  gossip.NodeID
	cluster gossip.ClusterID

	// refusedForGood are the seed nodes that refuse this node for good.
	refusedForGood []gossip.Address

	// complaint is the last reason that was given why this node still waits.
	complaint string

	// entering is the state by which this node becomes a member as soon as the state's
	// voters are on its disk; nil if there is none.
	entering *gossip.State
}

// restart begins a new search.
func (j *joining) restart() {
	j.asked, j.target, j.cluster, j.refusedForGood, j.entering, j.complaint = 0, gossip.NodeID{}, gossip.ClusterID{}, nil, nil, ""
}

// isTaken tells whether a member was asked to let this node join, or has let it in.
func (j *joining) isTaken() bool { return j.entering != nil || !j.target.IsZero() }

// isEntering tells whether this node is about to be a member.
func (j *joining) isEntering() bool { return j.entering != nil }

// start begins to look for a cluster.
func (j *joining) start(seeds []gossip.Address) {
	switch {
	case j.phase == phaseMember:
		j.refuse(j.self, "Join", RefusedNotReady, "this node is a member of a cluster already")
		return
	case j.entering != nil:
		return // It is about to be one.
	case len(seeds) == 0 && !j.contactSearch.runs:
		j.refuse(j.self, "Join", RefusedMalformed, "no seed nodes were given")
		return
	}
	j.inquiry.restart(seeds)
	j.phase = phaseJoining
	j.formation.restart()
	j.restart()
	if j.cfg.ShutdownAfterUnsuccessfulJoin > 0 {
		j.out.Arm(timerGiveUp, j.now.Mono.Add(j.cfg.ShutdownAfterUnsuccessfulJoin))
	}
	j.search()
}

// search begins a new attempt.
func (j *joining) search() {
	j.inquiry.nextAttempt()
	j.target, j.cluster = gossip.NodeID{}, gossip.ClusterID{}
	j.out.Disarm(timerRejoin)
	j.formation.considerFounding()
	if j.entering == nil && j.phase == phaseJoining {
		j.askSeeds()
	}
}

// askSeeds asks the open question again, and arms the timer for the next repetition.
func (j *joining) askSeeds() {
	if j.phase != phaseJoining || j.entering != nil {
		return
	}
	if !j.target.IsZero() {
		j.out.Send(j.target, JoinRequest{
			Attempt: j.inquiry.attempt, Member: j.me, Cluster: j.cluster, Settings: j.inquiry.compared(), Claim: j.inquiry.claim(),
		})
	} else {
		j.inquiry.forgetStrangers()
		for _, address := range j.inquiry.whomToAsk() {
			j.inquiry.ask(address)
		}
		j.formation.considerFounding()
		j.contactSearch.round()
		j.publishWaiting()
	}
	j.out.Arm(timerJoin, j.now.Mono.Add(j.backoff(j.asked)))
	j.asked++
}

// askAnew asks at once, since there may be others to ask.
func (j *joining) askAnew() {
	if j.phase == phaseJoining && !j.isTaken() {
		j.asked = 0
		j.askSeeds()
	}
}

// backoff returns the time until the next question after n questions: doubling, bounded,
// and spread by a fifth so that nodes that started together do not ask together.
func (j *joining) backoff(n int) time.Duration {
	d := j.cfg.JoinInterval
	for ; n > 0 && d < j.cfg.JoinIntervalMax; n-- {
		d *= 2
	}
	d = min(d, j.cfg.JoinIntervalMax)
	return d + time.Duration(j.deps.Rand.Int64N(int64(d)/5+1))
}

// mayEnter reports whether this node joins the cluster of a member that answered: a related
// cluster that goes on, or the one that this node has just voted for.
func (j *joining) mayEnter(a answer) bool {
	born := a.claim.Cluster.Born
	return a.isMember() && j.formation.hasVotedFor(born) && j.kept.Promise == born ||
		a.claim.Standing && j.contactSearch.mayJoin(a.from.Address) && j.inquiry.mayJoin(a)
}

// choose returns the member whose cluster this node joins: of several clusters the one that
// would go on if they met.
func (j *joining) choose() (best answer, found bool) {
	for _, a := range j.inquiry.fresh() {
		if j.mayEnter(a) && (!found || a.claim.rank().before(best.claim.rank())) {
			best, found = a, true
		}
	}
	return best, found
}

func (j *joining) receiveInitJoinAck(from gossip.NodeID, msg InitJoinAck) {
	switch {
	case j.phase == phaseMember:
		j.otherClusters.meetCluster(from, "InitJoinAck", msg.Attempt, msg.Claim)
		return
	case j.phase != phaseJoining:
		j.refuse(from, "InitJoinAck", RefusedUnsolicited, "no such question was asked")
		return
	case !j.inquiry.hear(from, "InitJoinAck", msg.Attempt, msg.Claim):
		return
	case !j.target.IsZero() || j.entering != nil:
		return
	}
	member, found := j.choose()
	if !found {
		return
	}
	j.target, j.cluster, j.asked = member.from, member.claim.Cluster, 0
	if j.inquiry.isAlone() {
		j.out.Decide("join", j.self.String(), "asked to join", cutText(fmt.Sprintf(
			"%v, a member of cluster %v, lists this node's address; this node's own list names nobody else: if that is not its cluster, give it another name",
			member.from, member.claim.Cluster)))
	}
	j.formation.endElection()
	j.out.Disarm(timerFormation)
	j.out.Arm(timerRejoin, j.now.Mono.Add(j.cfg.RetryUnsuccessfulJoinAfter))
	j.askSeeds()
}

func (j *joining) receiveInitJoinNack(from gossip.NodeID, msg InitJoinNack) {
	switch {
	case j.phase == phaseMember:
		j.otherClusters.meetCluster(from, "InitJoinNack", msg.Attempt, msg.Claim)
	case j.phase != phaseJoining:
		j.refuse(from, "InitJoinNack", RefusedUnsolicited, "no such question was asked")
	case j.inquiry.hear(from, "InitJoinNack", msg.Attempt, msg.Claim):
		j.formation.considerFounding()
	}
}

// retryJoin gives up on the member that was asked and asks the seed nodes again.
func (j *joining) retryJoin() {
	if j.phase != phaseJoining {
		return
	}
	j.out.Decide("join", j.target.String(), "retry",
		fmt.Sprintf("the member did not let this node join within %v", j.cfg.RetryUnsuccessfulJoinAfter))
	j.search()
}

func (j *joining) giveUpJoin() {
	if j.phase == phaseJoining {
		j.stop(component.StopJoinFailed, fmt.Sprintf("no cluster could be joined within %v", j.cfg.ShutdownAfterUnsuccessfulJoin))
	}
}

func (j *joining) receiveJoinRefused(from gossip.NodeID, msg JoinRefused) {
	if j.phase == phaseJoining && j.entering != nil {
		return // Late: another member has been asked since, or this one again.
	}
	if j.phase != phaseJoining || from != j.target || msg.Attempt != j.inquiry.attempt {
		j.refuse(from, "JoinRefused", RefusedUnsolicited, "no such question was asked")
		return
	}
	j.refuseSettings(from, "JoinRequest", msg.Refusal, msg.Reason, msg.Differences)
	switch {
	case !msg.Retry:
		j.stop(component.StopRefused, msg.Reason)
	case msg.Refusal == RefusedPredecessor || msg.Refusal == RefusedDialBack:
		// The armed timer asks the same member again.
	default:
		// Another seed node may take this node at once; the back-off goes on.
		j.target = gossip.NodeID{}
		j.out.Disarm(timerRejoin)
	}
}

func (j *joining) receiveWelcome(from gossip.NodeID, msg Welcome) {
	if from != j.target || msg.Attempt != j.inquiry.attempt {
		j.refuse(from, "Welcome", RefusedUnsolicited, "this node did not ask the sender to let it join")
		return
	}
	if j.phase != phaseJoining || j.entering != nil {
		return // The answer to a repeated request.
	}
	me := msg.State.Member(j.self)
	switch {
	case me == nil || me.Status == gossip.Down:
		j.refuse(from, "Welcome", RefusedMalformed, "this node is not a member in the state that came with it")
		return
	case msg.State.Cluster() != j.cluster:
		j.refuse(from, "Welcome", RefusedCluster, fmt.Sprintf("cluster %v was expected", j.cluster))
		return
	}
	_, err := j.state.Accept(msg.State, gossip.Terms{Now: j.now.Wall, Votes: votes})
	if err == nil {
		err = j.kept.canHold(msg.State)
	}
	if err != nil {
		j.refuse(from, "Welcome", RefusedMalformed, err.Error())
		return
	}
	if len(msg.Warnings) > 0 {
		j.out.Publish(SettingsDiffer{Peer: from, Differences: msg.Warnings})
	}
	j.out.Decide("join", j.self.String(), "joined", "welcomed by "+from.String())
	j.enter(msg.State)
}

// enter makes this node a member by a state, once the state's voters and its birth are on
// disk: both may be needed at once.
func (j *joining) enter(state *gossip.State) {
	j.inquiry.warnOfNodesWithoutRecord()
	j.endSearch()
	j.entering = state
	j.formation.end()
	j.memory.remember(j.memory.wanted.recordOf(state, false))
	j.enterIfKept()
}

// enterIfKept makes this node a member when the state that it enters by is in its record
// on disk.
func (j *joining) enterIfKept() {
	if state := j.entering; state != nil && j.kept.holds(state) {
		j.entering = nil
		j.becomeMember(state)
	}
}

// endSearch stops asking.
func (j *joining) endSearch() {
	for _, t := range []timer{timerJoin, timerFormation, timerVote, timerRejoin, timerGiveUp} {
		j.out.Disarm(t)
	}
}

// noteRefusedForGood stops the node when every seed node has refused it for good. As long as
// one may still take it, a single wrong address in the list does no harm. A refusal
// counts for the address that was dialled, and for no other.
func (j *joining) noteRefusedForGood(in PeerRefused) {
	others := j.inquiry.others()
	if slices.Contains(others, in.Peer.Address) && !slices.Contains(j.refusedForGood, in.Peer.Address) {
		j.refusedForGood = append(j.refusedForGood, in.Peer.Address)
	}
	if len(others) > 0 && len(j.refusedForGood) == len(others) {
		j.stop(component.StopRefused, in.Reason)
	}
}
