// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
)

// Components hold the node and let it go ([leaving.hold], [leaving.drained]). A node that
// finds itself leaving ([leaving.observe]) waits for them, confirms ([leaving.confirm])
// and repeats that until it is exiting. The end of the file is about a node that hears
// from others that it is no member any more ([leaving.receiveNotMember]).

// confirmInterval is the time between two confirmations of a leaving node.
const confirmInterval = time.Second

// confirmCandidates is the number of members that a leaving node sends its confirmation
// to: those that lead, or will lead next.
const confirmCandidates = 3

// leaving has this node leave in order: its components hand their work over, it confirms that it
// hosts nothing any more, and it is removed.
//
//	leaving: components hand over; all Stopped, or leave-timeout
//	   |  hosts nothing any more; confirms to the leader until it acts
//	   v
//	exiting -> removed, or exit-timeout -> stop
type leaving struct {
	*core

	leader    *leader
	gossiper  *gossiper
	footing   *footing
	explainer *endExplainer

	// holds are the names of the components that hold the node, sorted; stopped are those
	// among them that have handed their work over.
	holds   []string
	stopped []string

	// begun says that this node is leaving, since when begunAt; confirmed that it hosts nothing any more, and
	// has said so.
	begun     bool
	begunAt   machine.Instant
	confirmed bool
}

// hasConfirmed tells whether this node has confirmed that it hosts nothing any more.
func (l *leaving) hasConfirmed() bool { return l.confirmed }

func addName(names []string, name string) []string {
	if i, found := slices.BinarySearch(names, name); !found {
		return slices.Insert(names, i, name)
	}
	return names
}

// held returns the components that this node still waits for.
func (l *leaving) held() []string {
	return slices.DeleteFunc(slices.Clone(l.holds), func(name string) bool {
		_, stopped := slices.BinarySearch(l.stopped, name)
		return stopped
	})
}

// hold notes that a component has work to hand over before this node leaves.
func (l *leaving) hold(component string) {
	l.holds = addName(l.holds, component)
}

// drained notes that a component has handed its work over.
func (l *leaving) drained(component string) {
	if !l.begun {
		l.refuse(l.self, "Stopped", RefusedUnsolicited, "this node is not leaving: "+component)
		return
	}
	l.stopped = addName(l.stopped, component)
	l.confirmWhenFree()
}

// commandLeave lets a member leave by command. This node ends if it is none yet.
func (l *leaving) commandLeave(in Leave) {
	named := gossip.NodeID{Address: in.Address, UID: in.UID}
	if l.phase != phaseMember && named.Address == l.self.Address && (named.UID == 0 || named == l.self) {
		l.answerCommand(CommandAnswered{ID: in.ID})
		l.stop(component.StopLeft, "it left before it was a member")
		return
	}
	member := l.memberOfCommand(named, "Leave", in.ID)
	if member == nil {
		return
	}
	l.answerCommand(CommandAnswered{ID: in.ID})
	switch {
	case member.Status >= gossip.Leaving:
		l.refuse(member.Node, "Leave", RefusedUnknown, "the member is "+member.Status.String()+" already")
	default:
		l.out.Decide("leave", member.Node.String(), "leaving", "somebody asked for it")
		l.edit(func(e *gossip.Edit) { e.SetStatus(member.Node, gossip.Leaving, member.UpNumber) })
	}
}

// observe acts on this node's own status.
func (l *leaving) observe() {
	me := l.state.Member(l.self)
	switch {
	case me == nil && l.begun:
		l.stop(component.StopLeft, "it was removed after it left")
	case me == nil:
		l.stop(component.StopDowned, l.explainer.removed(l.state, l.self))
	case me.Status == gossip.Down:
		l.gossiper.sendLastState()
		l.stop(component.StopDowned, l.explainer.downed(l.state, l.self))
	case me.Status == gossip.Exiting && l.confirmed && l.allExit():
		l.gossiper.sendLastState()
		l.stop(component.StopLeft, "it left together with all others")
	case me.Status >= gossip.Leaving && !l.begun:
		l.beginLeaving()
	}
}

// allExit reports whether no member is left that could remove this node.
func (l *leaving) allExit() bool {
	return !slices.ContainsFunc(l.state.Members(), func(member *gossip.Member) bool { return member.Status < gossip.Exiting })
}

func (l *leaving) beginLeaving() {
	l.begun, l.begunAt = true, l.now.Mono
	l.out.Arm(timerLeave, l.now.Mono.Add(l.cfg.LeaveTimeout))
	l.confirmWhenFree()
}

func (l *leaving) confirmWhenFree() {
	if l.begun && !l.confirmed && len(l.held()) == 0 {
		l.confirm("every component has handed its work over")
	}
}

func (l *leaving) leaveTimeout() {
	if l.phase == phaseMember && l.begun && !l.confirmed {
		l.confirm(fmt.Sprintf("components did not hand their work over within %v: %v", l.cfg.LeaveTimeout, l.held()))
	}
}

// confirm ends hosting for good, before any other node is told so.
func (l *leaving) confirm(why string) {
	l.confirmed = true
	l.out.Decide("leave", l.self.String(), "confirmed", why)
	l.dropStanding()
	l.out.Disarm(timerLeave)
	l.out.Arm(timerExit, l.now.Mono.Add(l.cfg.ExitTimeout))
	l.confirmExit()
}

// confirmExit sends the confirmation to the members that lead, or will lead next, until
// this node sees that it is exiting: from then on gossip carries the news.
func (l *leaving) confirmExit() {
	if l.phase != phaseMember || l.ownStatus() >= gossip.Exiting {
		return
	}
	l.out.Arm(timerConfirm, l.now.Mono.Add(confirmInterval))
	l.leader.noteConfirmed(l.self)
	for _, node := range l.confirmTo() {
		l.out.Send(node, ExitingConfirmed{})
	}
	l.leader.resurvey() // Convergence does not wait for a member that has confirmed.
}

func (l *leaving) confirmTo() []gossip.NodeID {
	to := []gossip.NodeID{l.surveyed.leader}
	for _, member := range l.state.Members() {
		if votes(member) && l.state.Reachable(member.Node) && len(to) <= confirmCandidates {
			to = append(to, member.Node)
		}
	}
	slices.SortFunc(to, gossip.NodeID.Compare)
	to = slices.Compact(to)
	return slices.DeleteFunc(to, func(n gossip.NodeID) bool { return n == l.self || n.IsZero() })
}

func (l *leaving) receiveExitingConfirmed(from gossip.NodeID) {
	member := l.state.Member(from)
	if l.phase != phaseMember || member == nil {
		l.refuse(from, "ExitingConfirmed", RefusedNotMember, "the sender is not a member")
		return
	}
	l.leader.noteConfirmed(from)
	// With the confirmation there may be convergence, and an edit due.
	l.leader.resurvey()
}

// exitTimeout ends this node, though nobody has removed it. While all leave together it waits for those that have
// longer to hand over, for as long as its own leave might have taken: without its vote they would give up.
func (l *leaving) exitTimeout() {
	latest := l.begunAt.Add(l.cfg.LeaveTimeout + l.cfg.ExitTimeout)
	switch {
	case l.phase != phaseMember:
	case l.leader.allLeave() && len(l.state.Members()) > 1 && l.now.Mono < latest:
		l.out.Arm(timerExit, latest)
	default:
		l.stop(component.StopLeft, fmt.Sprintf("it was not removed within %v after it hosted nothing any more", l.cfg.ExitTimeout))
	}
}

func (l *leaving) receiveNotMember(from gossip.NodeID, msg NotMember) {
	l.dismissed(from, msg, l.explainer.dismissed(from, msg))
}

// dismissed ends this node, with the given words, if it was declared down or removed.
func (l *leaving) dismissed(from gossip.NodeID, msg NotMember, words string) {
	switch {
	case msg.Node != l.self || l.phase != phaseMember:
		l.refuse(from, "NotMember", RefusedUnsolicited, fmt.Sprintf("it is about %v", msg.Node))
	case l.state.Member(from) == nil:
		l.refuse(from, "NotMember", RefusedNotMember, "the sender is not known as a member")
	case msg.Status == gossip.StatusNone:
		l.receiveStranger(from)
	case msg.Status == gossip.Removed && l.leftInOrder():
		l.stop(component.StopLeft, "it was removed after it left, says "+from.String())
	default:
		l.gossiper.sendLastState() // News that only this node has must not be lost with it.
		l.stop(component.StopDowned, words)
	}
}

// leftInOrder reports whether a removal is what this node waited for. If its components
// have not handed over, it is so only if the others are known to have accepted its leave:
// a node that stood still for longer than the leave-timeout has just given up on its
// components, and was taken for dead long before.
func (l *leaving) leftInOrder() bool {
	return l.confirmed && (len(l.held()) == 0 || l.ownStatus() >= gossip.Exiting)
}

// receiveStranger handles the word of a member that it has never heard of this node. If
// that lasts, and no majority answers this node, the members that recorded it have gone
// before the others heard of it. It cannot come back as it is: its state may hold what
// the others have decided otherwise. After a restart it joins anew.
func (l *leaving) receiveStranger(from gossip.NodeID) {
	if l.now.Mono.Sub(l.joinedAt) < l.cfg.RetryUnsuccessfulJoinAfter || l.footing.connected() {
		return
	}
	reason := component.StopDowned
	if l.ownStatus() < gossip.Up {
		reason = component.StopJoinFailed
	}
	l.stop(reason, fmt.Sprintf("the cluster has gone on without hearing of it, says %v: restart the node", from))
}
