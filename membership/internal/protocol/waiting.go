// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// A node that waits for long says so ([joining.publishWaiting]), with an answer for each voter
// ([inquiry.voterAnswer]) and one sentence for all ([Waiting.reason]).

// waitingAfter is how many unanswered questions it takes until this node reports that it
// waits, and for which voters.
const waitingAfter = 2

// Waiting is published again and again while a node waits for a cluster to join, or
// to be founded.
type Waiting struct {
	// Basis is the stamp of the voters that are waited for; zero if no node remembers a
	// cluster, and the voters are the listed seed nodes.
	Basis Stamp
	// Voters are the voters whose votes count, with what each of them answered.
	Voters []VoterAnswer
	// Enough says that the nodes that answer can found a cluster: they vote, or wait
	// until they may.
	Enough bool
	// Reason says in one sentence what is missing.
	Reason string
}

// VoterAnswer is what is known of one voter of a [Waiting].
type VoterAnswer struct {
	Voter Voter
	// Status is what the node at the voter's address, or with its memory, answered.
	Status VoterStatus
	// Why is more about that, with what to do, "" if there is nothing to add.
	Why string
	// For is how long the voter's answer has been the same.
	For time.Duration
}

// VoterStatus is what a voter answered.
type VoterStatus uint8

// What voters answer.
const (
	// VoterSilent: nothing came back from the voter, which says nothing about it.
	VoterSilent VoterStatus = iota
	// VoterFree: the voter is in no cluster, and its vote counts.
	VoterFree
	// VoterLostMemory: the node at the voter's address has lost the voter's memory, and speaks
	// for no voter.
	VoterLostMemory
	// VoterLeft: the voter is leaving its cluster, or has left it.
	VoterLeft
	// VoterInCluster: the voter is in a cluster that has no majority at present.
	VoterInCluster
	// VoterRefuses: the node at the voter's address refuses the connection.
	VoterRefuses
	// VoterUnrelated: the node at the voter's address has to do with another cluster.
	VoterUnrelated
)

// String returns the answer in a few words.
func (s VoterStatus) String() string {
	switch s {
	case VoterFree:
		return "in no cluster"
	case VoterLostMemory:
		return "lost its memory"
	case VoterLeft:
		return "has left"
	case VoterInCluster:
		return "in a cluster without a majority"
	case VoterRefuses:
		return "refuses this node"
	case VoterUnrelated:
		return "not related to this node"
	case VoterSilent:
	}
	return "silent"
}

// String returns what the voter answered, or why it did not.
func (v VoterAnswer) String() string {
	if v.Why != "" {
		return v.Why
	}
	return v.Status.String()
}

// publishWaiting reports why this node is not a member yet.
func (j *joining) publishWaiting() {
	if j.asked < waitingAfter {
		return
	}
	w := j.inquiry.waiting(j.formation.couldFound())
	cause := w.Reason
	if j.contactSearch.isNeeded() {
		w.Reason, cause = j.contactSearch.explain(w.Reason)
	}
	if cause != j.complaint {
		j.complaint = cause
		j.out.Decide("join", j.self.String(), "waiting", w.Reason)
	}
	j.out.Publish(w)
}

// waiting says which voters this node waits for; enough says that the nodes that answer
// can found a cluster.
func (q *inquiry) waiting(enough bool) Waiting {
	basis := q.basis()
	w := Waiting{Basis: basis.Stamp, Enough: enough}
	answers := append(q.fresh(), answer{from: q.self, claim: q.claim(), at: q.now.Mono, since: q.began})
	free, voters := map[gossip.NodeID]machine.Instant{}, newVoterIndex(basis.Voters)
	for _, a := range answers {
		if a.claim.Cluster.IsZero() {
			for _, v := range voters.of(a.from.Address, a.claim.Record) {
				if since, ok := free[v]; !ok || a.since < since {
					free[v] = a.since
				}
			}
		}
	}
	for _, v := range basis.Voters {
		if !v.isAbsent() {
			w.Voters = append(w.Voters, q.voterAnswer(v, free, answers))
		}
	}
	w.Reason = w.reason()
	if q.isAlone() {
		w.Reason = q.listens()
	}
	if len(q.toldStrangers()) > 0 {
		w.Reason = cutText(w.Reason + "; " + q.toldStrangers()[0].Reason)
	}
	if q.nextBirth() > gossip.LatestBirth {
		w.Reason = noBirthLeft
	}
	return w
}

// voterAnswer returns what a voter answered, or else the node at its address. free has
// the voters for which a node in no cluster speaks, each with the moment since which it
// does.
func (q *inquiry) voterAnswer(v Voter, free map[gossip.NodeID]machine.Instant, answers []answer) VoterAnswer {
	said, since, why := VoterSilent, q.began, ""
	freeSince, isFree := free[v.Node]
	at := slices.IndexFunc(answers, func(a answer) bool { return a.from.Address == v.Node.Address })
	switch {
	case isFree:
		said, since = VoterFree, freeSince
	case at < 0 && q.refusals[v.Node.Address].why != "":
		refused := q.refusals[v.Node.Address]
		said, since, why = VoterRefuses, refused.at, refused.why
	case at < 0:
		if last, ok := q.of(v.Node.Address); ok {
			since = max(since, last.at)
		}
	case answers[at].from != q.self && !answers[at].related:
		said, since = VoterUnrelated, answers[at].since
	case answers[at].claim.Leaving:
		said, since = VoterLeft, answers[at].since
	case !answers[at].claim.Cluster.IsZero():
		said, since = VoterInCluster, answers[at].since
	default:
		said, since = VoterLostMemory, answers[at].since
	}
	return VoterAnswer{Voter: v, Status: said, Why: why, For: q.now.Mono.Sub(since)}
}

// listens says for people what a node that lists itself alone waits for.
func (q *inquiry) listens() string {
	if q.known == 0 {
		return "the list of this node is itself alone: it listens for some seconds whether a cluster has its address"
	}
	return "the list of this node is itself alone, and a cluster has its address: it joins that if it is listed there, and founds none until its address is forgotten: if it belongs there, write the list of the others"
}

// reason says in one sentence which voters are missing.
func (w Waiting) reason() string {
	var missing []string
	free := 0
	for _, v := range w.Voters {
		if v.Status == VoterFree {
			free++
			continue
		}
		missing = append(missing, fmt.Sprintf("%v (%v)", v.Voter.Node.Address, v))
	}
	who := "the listed seed nodes"
	if !w.Basis.IsZero() {
		who = "the voters of the last cluster"
	}
	rest := "a vote is under way"
	switch gone := "missing: " + strings.Join(missing, ", "); {
	case len(missing) > 0 && w.Enough:
		rest = "they are enough, " + rest + "; " + gone
	case len(missing) > 0:
		rest = gone
	}
	return cutText(fmt.Sprintf("%d of %d of %s are here and in no cluster; %s", free, len(w.Voters), who, rest))
}
