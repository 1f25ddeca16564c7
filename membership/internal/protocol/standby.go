// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Of the relays only the first relaysAtWork ask. The others stand by ([standingRelay.standsBy]): each of
// them is asked as any member is, and begins as soon as fewer than relaysAtWork of those
// before it have asked it. A member that the first ones do not ask, since its links to
// them are broken, calls the others ([standingRelay.callStandbys], [standingRelay.receiveCall]).
//
// None of this is asked for by a rule of safety, as who relays is not: whoever removes a
// node counts every voter as one that may have lent to it.

const (
	// relaysAtWork is how many relays ask while all is well. With one, a node would lose its
	// standing for a moment when that relay stops; with two, when both stop at once and the
	// next ones are late.
	relaysAtWork = 2

	// standbySlack divides the heartbeat interval: by so much may the question of a relay come
	// late before others take its place. With the default settings what was lent with the
	// question before counts for as long again.
	standbySlack = 2

	// calledFor is for how many heartbeat intervals a relay that was called asks; callsEvery
	// is after how many a member repeats its call while it has enough others.
	calledFor  = 30
	callsEvery = 10
)

// standby is what a node knows of which relays ask, and which of them stand by.
type standby struct {
	// asked is when each relay last asked this node.
	asked map[gossip.NodeID]machine.Instant

	// first are the relays that should ask this node, as far as it knows, since when it
	// knows of both.
	first      []gossip.NodeID
	firstSince machine.Instant

	// calledAt is when this node last called relays; calledUntil is until when it asks
	// because it was called itself, as a relay.
	calledAt, calledUntil machine.Instant

	// never says that this node never stands by.
	never bool
}

// noteAsk notes that a relay has asked this node. If no relay asks for too long, a timer has
// this node act at once ([standingRelay.checkRelays]); if only some do, it acts in its next round.
func (r *standingRelay) noteAsk(relay gossip.NodeID) {
	if r.standby.asked == nil {
		r.standby.asked = map[gossip.NodeID]machine.Instant{}
	}
	r.standby.asked[relay] = r.now.Mono
	r.out.Arm(timerStandby, r.now.Mono.Add(r.patience()+1))
}

// checkRelays has this node ask, or call, if no relay has asked it for too long.
func (r *standingRelay) checkRelays() {
	if r.phase == phaseMember {
		r.beginOrEnd()
		r.callStandbys()
	}
}

// patience is how long after the question of a relay the next one is late.
func (r *standingRelay) patience() time.Duration {
	interval := r.cfg.FailureDetector.HeartbeatInterval
	return interval + interval/standbySlack
}

// hasAsked tells whether a relay has asked this node in the last interval.
func (r *standingRelay) hasAsked(relay gossip.NodeID) bool {
	at, ok := r.standby.asked[relay]
	return ok && r.now.Mono.Sub(at) <= r.patience()
}

// standsBy tells whether this node, a relay, leaves it to those before it to ask.
func (r *standingRelay) standsBy() bool {
	if r.standby.never || r.now.Mono < r.standby.calledUntil {
		return false
	}
	atWork := 0
	for _, relay := range r.believed() {
		if relay.Node == r.self {
			break
		}
		if r.hasAsked(relay.Node) {
			atWork++
		}
	}
	return atWork >= relaysAtWork
}

// callStandbys calls the relays that stand by, if one of the first ones is late. It repeats the
// call before those that it called stand by again.
func (r *standingRelay) callStandbys() {
	if r.phase != phaseMember || r.relays || !r.monitorsSome() || !r.hasManyVoters() {
		return
	}
	var relays []gossip.NodeID
	for _, relay := range r.believed() {
		if relay.Node != r.self {
			relays = append(relays, relay.Node)
		}
	}
	first := relays[:min(len(relays), relaysAtWork)]
	if !slices.Equal(first, r.standby.first) {
		r.standby.first, r.standby.firstSince = first, r.now.Mono
	}
	missing := func(n gossip.NodeID) bool { return !r.hasAsked(n) }
	if !slices.ContainsFunc(first, missing) || r.now.Mono.Sub(r.standby.firstSince) <= r.patience() {
		return
	}
	pause := r.cfg.FailureDetector.HeartbeatInterval
	if len(slices.DeleteFunc(slices.Clone(relays), missing)) >= relaysAtWork {
		pause *= callsEvery
	}
	if r.standby.calledAt != 0 && r.now.Mono.Sub(r.standby.calledAt) < pause {
		return
	}
	r.standby.calledAt = r.now.Mono
	for _, relay := range relays[len(first):] {
		r.out.Send(relay, GiveStanding{})
	}
}

// receiveCall has this node ask for a while, if it is a relay that stands by: the first ones
// do not reach the caller.
func (r *standingRelay) receiveCall(from gossip.NodeID) {
	if member := r.state.Member(from); r.phase != phaseMember || member == nil || member.Status == gossip.Down {
		r.refuseSilently(RefusedNotMember)
		return
	}
	r.standby.calledUntil = r.now.Mono.Add(calledFor * r.cfg.FailureDetector.HeartbeatInterval)
	r.beginOrEnd()
}

// forgetAskers drops what is known of relays that are members no more.
func (r *standingRelay) forgetAskers() {
	maps.DeleteFunc(r.standby.asked, func(n gossip.NodeID, _ machine.Instant) bool { return r.state.Member(n) == nil })
}
