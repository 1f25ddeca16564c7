// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/quorate/quorate/gossip"

// Two nodes that monitor each other share an exchange. The one with the lower identity
// begins it with its round, and says that the answer may bring a question:
//
//	A -> B  Heartbeat{7, shared}               A asks
//	B -> A  HeartbeatReply{7}, question 9      B answers, and asks
//	A -> B  HeartbeatReply{9}                  A answers
//
// Nothing counts but answers to questions that a node has asked: that B hears of A's
// heartbeat proves nothing to B. A question that goes with an answer has a number of its
// own, whose moment is that at which it is sent, so its answer counts as that to a heartbeat.
//
// B leaves A out of its own rounds as long as its last question that went with an answer was
// answered, and is so young that A's next heartbeat is not late. So whatever is lost, and if A
// begins no more exchanges, B's next round asks A itself.

// On a ring too, nodes monitor mostly those that they are monitored by, if all members know
// of such rings ([heartbeats.allShare]).

// mutualSince is the version of the protocol between nodes from which on nodes monitor each
// other on a ring. All members have to agree on the ring, so it is chosen by the members
// that the state has, as the nodes on it are.
const mutualSince = 4

// allShare tells whether all members that are monitored know of rings on which nodes monitor
// each other.
func (h *heartbeats) allShare() bool {
	for _, member := range h.state.Members() {
		if member.Status != gossip.Down && member.Protocol.Max < mutualSince {
			return false
		}
	}
	return true
}

// sharedSlack divides the heartbeat interval: by so much may a beginning, or the answer to a
// question, come late before a node asks by itself. The rounds of two nodes are not equally
// far apart to the millisecond.
const sharedSlack = 4

// sharedPace divides the heartbeat interval: so much of it passes at least between two
// questions that go with answers to one node, however many heartbeats it sends. The failure
// detector does not learn from one that follows a heartbeat in less.
const sharedPace = 2

// questions are the numbers of two questions to one node, one after the other; 0: none.
type questions struct{ last, before uint64 }

// begins tells whether it is for this node to begin the exchange with another one.
func (h *heartbeats) begins(with gossip.NodeID) bool { return h.self.Compare(with) < 0 }

// question returns this node's question for the answer to a shared heartbeat. There is none
// if it does not monitor the other, or has just asked in this way.
func (h *heartbeats) question(to gossip.NodeID) Question {
	if h.phase != phaseMember || !h.monitors(to) || !h.registry.Expected(to) {
		return Question{}
	}
	if h.isRecent(h.shared[to].last) {
		return Question{}
	}
	q := Question{Sequence: h.begin(h.now.Mono).Sequence}
	h.shared[to] = questions{last: q.Sequence, before: h.shared[to].last}
	h.slot(q.Sequence).extra = h.isRecent(h.answered[to])
	if to == h.shown {
		q.Fingerprint, h.shown = h.state.Fingerprint(), gossip.NodeID{}
	}
	return q
}

// isRecent tells whether a round was sent less than half an interval ago.
func (h *heartbeats) isRecent(sequence uint64) bool {
	at, ok := h.sentAt(sequence)
	return ok && h.now.Mono.Sub(at) < h.cfg.FailureDetector.HeartbeatInterval/sharedPace
}

// isAsked tells whether a target needs no heartbeat of the present round, since questions
// to it go with answers. The answer to the last one may still be under way, if there was one to
// that before.
func (h *heartbeats) isAsked(target gossip.NodeID) bool {
	asked, answered := h.shared[target], h.answered[target]
	at, ok := h.sentAt(asked.last)
	interval, age := h.cfg.FailureDetector.HeartbeatInterval, h.now.Mono.Sub(at)
	switch {
	case !ok || answered < asked.before:
		return false
	case answered < asked.last:
		return age < interval/sharedSlack
	}
	return age < interval+interval/sharedSlack
}
