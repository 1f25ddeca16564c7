// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// What others have answered comes first ([answers]), then how this node answers the
// heartbeats of others: at once ([replies.receive]), and once more to those that could not
// be given standing before ([replies.sendLate]).

// answers holds when, by this node's own clock, it sent the heartbeats that were
// answered.
type answers struct {
	*core

	// contact is, for each node, when this node sent the last heartbeat that the node
	// answered with standing.
	contact map[gossip.NodeID]machine.Instant

	// known is, for each node that knows this one as a member, when this node sent the
	// last heartbeat that was answered, with standing or without.
	known map[gossip.NodeID]machine.Instant

	// expected is when the first heartbeat was sent to each node that may not have
	// answered yet.
	expected map[gossip.NodeID]machine.Instant
}

func newAnswers(c *core) *answers {
	return &answers{
		core: c, contact: map[gossip.NodeID]machine.Instant{}, known: map[gossip.NodeID]machine.Instant{},
		expected: map[gossip.NodeID]machine.Instant{},
	}
}

// answered notes an answer that gives standing.
func (a *answers) answered(by gossip.NodeID, sentAt machine.Instant) {
	if last, ok := a.contact[by]; !ok || sentAt > last {
		a.contact[by] = sentAt
		a.moveStanding()
	}
}

// expect notes that the first heartbeat to a node is sent now.
func (a *answers) expect(node gossip.NodeID) { a.expected[node] = a.now.Mono }

// isKnownTo notes an answer from a node that knows this one as a member.
func (a *answers) isKnownTo(node gossip.NodeID, sentAt machine.Instant) {
	a.known[node] = max(a.known[node], sentAt)
}

// unexpect drops that a node is expected to answer, since it gets no heartbeats any more.
// A relay may still ask it. What a node has said that is down does not count.
func (a *answers) unexpect(n gossip.NodeID) {
	delete(a.expected, n)
	if !a.lives(n) {
		a.forget(n)
	}
}

// forget drops what is known of a node.
func (a *answers) forget(n gossip.NodeID) {
	delete(a.contact, n)
	delete(a.known, n)
	delete(a.expected, n)
}

// replies answers the heartbeats of other nodes.
type replies struct {
	*core

	withheld withheld
}

// withheld holds the sequence of the latest heartbeat of each member that was answered
// without standing because the member is not established here, see [core.isEstablished]:
// it was just promoted, and this node does not know yet that the promotion has converged.
// When this node knows, it answers that heartbeat once more, with standing, so that a
// newcomer need not wait for its next heartbeat. Only members have entries, so their
// number bounds the map.
type withheld map[gossip.NodeID]uint64

func newReplies(c *core) *replies { return &replies{core: c, withheld: withheld{}} }

// receive answers a heartbeat, or a question that came with an answer, and asks in its turn
// if own is a question.
func (r *replies) receive(from gossip.NodeID, sequence uint64, own Question) {
	if r.phase != phaseMember {
		// The welcome of a joining member is still on its way: the member is asked to
		// prove that it lives, which it does by asking to join again.
		r.refuseSilently(RefusedNotReady)
		return
	}
	if r.dismiss(from) {
		return
	}
	member := r.state.Member(from)
	reply := r.answer(member, sequence)
	reply.Question = own
	r.out.Send(from, reply)
	if member == nil {
		r.out.Send(from, NotMember{Node: from, Status: gossip.StatusNone})
	}
}

// answer returns the answer to a heartbeat of a member; member is nil if the sender is
// none. The answer gives standing if the member is established, see [core.isEstablished].
func (r *replies) answer(member *gossip.Member, sequence uint64) HeartbeatReply {
	known, standing := r.grants(member)
	reply := HeartbeatReply{Sequence: sequence, Known: known, Standing: standing}
	if !known {
		return reply
	}
	if reply.Standing {
		delete(r.withheld, member.Node)
	} else {
		r.withheld[member.Node] = sequence
	}
	return reply
}

// grants returns what this node says to a member, nil if the asker is none: that it knows
// the member, and that its word counts for the member's standing. It does not count for
// one that is not established, see [core.isEstablished], or that many accuse: then this
// node takes part in cutting it off, as whoever removes it relies on, see
// [fences.heldBy]. And it counts for nobody once this node has confirmed that it hosts
// nothing: its vote may then help a side to remove members that go on hearing it, and
// whoever removes them does not know since when it has heard that they are down.
func (r *replies) grants(member *gossip.Member) (known, standing bool) {
	if member == nil || member.Status == gossip.Down || !r.state.ReachableFrom(r.self, member.Node) {
		return false, false
	}
	return true, !r.hosting.dropped && r.isEstablished(member) && !r.isAccusedByMany(member.Node)
}

// sendLate answers the withheld heartbeats of members that have been established since. A
// late answer counts from the moment at which the heartbeat was sent, as any answer does.
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

// forget drops the withheld answer of a node that is no member any more.
func (r *replies) forget(n gossip.NodeID) { delete(r.withheld, n) }
