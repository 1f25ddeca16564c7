// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// answers are the moments, by this node's own clock, at which it sent heartbeats that
// were answered.
type answers struct {
	*core

	// contact is when this node sent the last heartbeat that each node answered with
	// standing.
	contact map[gossip.NodeID]machine.Instant

	// known is when this node sent the last heartbeat that was answered by a node that
	// knows this one as a member, with standing or without.
	known map[gossip.NodeID]machine.Instant

	// expected is when the first heartbeat left to a node that may not have answered
	// yet.
	expected map[gossip.NodeID]machine.Instant
}

func newAnswers(c *core) *answers {
	return &answers{
		core: c, contact: map[gossip.NodeID]machine.Instant{}, known: map[gossip.NodeID]machine.Instant{},
		expected: map[gossip.NodeID]machine.Instant{},
	}
}

// answered notes an answer with standing.
func (a *answers) answered(by gossip.NodeID, sentAt machine.Instant) {
	if last, ok := a.contact[by]; !ok || sentAt > last {
		a.contact[by] = sentAt
		a.moveStanding()
	}
}

// expect notes that the first heartbeat to a node leaves now.
func (a *answers) expect(node gossip.NodeID) { a.expected[node] = a.now.Mono }

// isKnownTo notes that a node that knows this one has answered.
func (a *answers) isKnownTo(node gossip.NodeID, sentAt machine.Instant) {
	a.known[node] = max(a.known[node], sentAt)
}

// forget drops what is known of a node that is not asked any more.
func (a *answers) forget(n gossip.NodeID) {
	delete(a.contact, n)
	delete(a.known, n)
	delete(a.expected, n)
}

// replies are the answers of this node to the heartbeats of others.
type replies struct {
	*core

	withheld withheld
}

// withheld is the latest heartbeat of each member that was answered without standing
// because the member is not established here, see [core.isEstablished]: of one that was
// just promoted, until this node knows that its promotion has converged. Then the
// heartbeat is answered once more, with standing, so that a newcomer does not wait for
// its next one. It holds members alone, so their number bounds it.
type withheld map[gossip.NodeID]uint64

func newReplies(c *core) *replies { return &replies{core: c, withheld: withheld{}} }

// receive answers a heartbeat.
func (r *replies) receive(from gossip.NodeID, msg Heartbeat) {
	if r.phase != phaseMember {
		// A member whose welcome is still on its way is asked to prove that it
		// lives; it does so by asking to join again.
		r.refuseSilently(RefusedNotReady)
		return
	}
	if r.dismiss(from) {
		return
	}
	member := r.state.Member(from)
	r.out.Send(from, r.answer(member, msg.Sequence))
	if member == nil {
		r.out.Send(from, NotMember{Node: from, Status: gossip.StatusNone})
	}
}

// answer is the answer to a heartbeat of a member, nil for a node that is none. It
// proves something if the member has proved itself here, see [core.isEstablished].
func (r *replies) answer(member *gossip.Member, sequence uint64) HeartbeatReply {
	reply := HeartbeatReply{Sequence: sequence}
	if member == nil || !r.state.ReachableFrom(r.self, member.Node) {
		return reply
	}
	reply.Known, reply.Standing = true, r.isEstablished(member)
	if reply.Standing {
		delete(r.withheld, member.Node)
	} else {
		r.withheld[member.Node] = sequence
	}
	return reply
}

// sendLate answers heartbeats that were answered without standing, of members that are
// established now. What it says is as old as the heartbeat, as with any answer.
func (r *replies) sendLate() {
	if r.surveyed.same && !r.surveyed.links.seen {
		return
	}
	for _, n := range slices.SortedFunc(maps.Keys(r.withheld), gossip.NodeID.Compare) {
		if !r.lives(n) {
			continue
		}
		if reply := r.answer(r.state.Member(n), r.withheld[n]); reply.Standing {
			r.out.Send(n, HeartbeatReply{Sequence: reply.Sequence, Standing: true})
		}
	}
}

// forget drops what is known of a node that is no member any more.
func (r *replies) forget(n gossip.NodeID) { delete(r.withheld, n) }
