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

// The order here: whom this node asks, what it does with an answer, and what follows from all
// answers: which clusters it may join, the newest record and the highest birth. What nodes
// say of themselves is in claim.go, and which of them have to do with each other in
// relation.go.

// inquiry holds whom this node asks about clusters, and what they have answered. A node
// without a cluster asks until it has one; a member goes on asking the nodes that should
// be in its cluster, and answers questions itself.
type inquiry struct {
	*core

	memory     *memory
	strategies *strategies
	footing    *footing

	// seeds are the addresses with which the node was told to join, or, if found says so, at
	// which discovery has found contact points.
	seeds []gossip.Address
	found bool

	// required is how many of them at least must vote where nobody remembers a cluster;
	// zero: more than half of them.
	required int

	// attempt numbers the searches, so that answers to earlier ones are recognized.
	attempt uint64

	// heard is the last answer of each address, sorted by address; relatedBy is what this node
	// was when it was last determined which of the answers are related.
	heard     []answer
	relatedBy relationKey

	// began is when the node was told to join for the first time.
	began machine.Instant

	// asked are the questions that may still be answered, by the address that was asked.
	// swept is when outdated ones were dropped last.
	asked map[gossip.Address]clusterQuestion
	swept machine.Instant

	// refusals are the addresses whose nodes refused this one since they answered last.
	refusals map[gossip.Address]refusal

	// strangers are the nodes that answered and have nothing to do with this one, sorted by
	// address.
	strangers []stranger

	// known is when this node last heard, by asking back, of a node that knows its address
	// and is in a cluster, or remembers one; zero: never.
	known machine.Instant
}

// clusterQuestion is the question to the node at an address which cluster it is in.
type clusterQuestion struct {
	at machine.Instant // When it was asked last.
	// back says that the address was asked only because the node there had asked this one:
	// this node has no reason of its own to ask there.
	back   bool
	backAt machine.Instant // When it was asked back last.
}

const (
	// askBackEvery is the least time between two questions by which an address is asked back.
	askBackEvery = 2 * time.Second

	// maxAskedBack bounds the addresses that are asked back at a time.
	maxAskedBack = 256
)

// ask asks an address which cluster the node there is in.
func (q *inquiry) ask(a gossip.Address) {
	if a == q.self.Address {
		return
	}
	q.send(a, clusterQuestion{at: q.now.Mono, backAt: q.asked[a].backAt}, false)
}

// askBack asks whoever has asked this node: what it claims is believed only of the node
// that answers there. A member does so only when the node claims another cluster.
func (q *inquiry) askBack(a gossip.Address, theirs Claim) {
	before, known := q.asked[a]
	switch {
	case q.phase != phaseJoining && q.phase != phaseMember || a == q.self.Address:
		return
	case q.phase == phaseMember && (theirs.Cluster.IsZero() || theirs.Cluster == q.state.Cluster()):
		return
	case known && before.backAt != 0 && q.now.Mono.Sub(before.backAt) < askBackEvery:
		return
	case !known && q.askedBack() >= maxAskedBack:
		return
	}
	own := known && !before.back && q.now.Mono.Sub(before.at) <= q.answersLast() || q.phase == phaseJoining && q.asks(a)
	q.send(a, clusterQuestion{at: q.now.Mono, back: !own, backAt: q.now.Mono}, true)
}

// askedBack counts the addresses that were only asked back.
func (q *inquiry) askedBack() int {
	n := 0
	for _, l := range q.asked { //quorate:unordered counted
		if l.back {
			n++
		}
	}
	return n
}

// send sends a question, and notes it.
func (q *inquiry) send(a gossip.Address, question clusterQuestion, back bool) {
	if q.asked == nil {
		q.asked = map[gossip.Address]clusterQuestion{}
	}
	if q.now.Mono.Sub(q.swept) > askBackEvery {
		q.swept = q.now.Mono
		for old, past := range q.asked { //quorate:unordered each is looked at by itself
			if q.now.Mono.Sub(past.at) > q.answersLast() {
				delete(q.asked, old)
			}
		}
	}
	q.asked[a] = question
	q.out.Send(gossip.NodeID{Address: a}, InitJoin{Attempt: q.attempt, Claim: q.claim(), Back: back})
}

// restart begins a new search, among these seed nodes.
func (q *inquiry) restart(seeds []gossip.Address) {
	if q.phase == phaseIdle {
		q.began = q.now.Mono
	}
	q.seeds, q.heard = nil, nil
	for _, seed := range seeds {
		if !slices.Contains(q.seeds, seed) {
			q.seeds = append(q.seeds, seed)
		}
	}
}

// nextAttempt makes all answers to earlier questions count as late.
func (q *inquiry) nextAttempt() { q.attempt++ }

// others returns the seed nodes except this one.
func (q *inquiry) others() []gossip.Address {
	return slices.DeleteFunc(slices.Clone(q.seeds), func(a gossip.Address) bool { return a == q.self.Address })
}

// whomToAsk returns, sorted, the addresses of the seed nodes and of all voters that this
// node, or a node that answered, remembers.
func (q *inquiry) whomToAsk() []gossip.Address {
	all := slices.Concat(q.seeds, q.memory.wanted.addresses(), q.memory.wanted.Yielded.Addresses())
	if basis := q.basis(); basis.Remembers() {
		all = append(all, basis.addresses()...)
	}
	slices.SortFunc(all, gossip.Address.Compare)
	return slices.DeleteFunc(slices.Compact(all), func(a gossip.Address) bool { return a == q.self.Address })
}

// asks reports whether this node asks an address of its own accord.
func (q *inquiry) asks(a gossip.Address) bool {
	_, asks := slices.BinarySearchFunc(q.whomToAsk(), a, gossip.Address.Compare)
	return asks
}

// answer is the last claim that was heard of a node.
type answer struct {
	from  gossip.NodeID
	claim Claim
	at    machine.Instant // When the claim was heard last.
	since machine.Instant // When the node began to claim the same.
	back  bool            // It was only asked back, see [clusterQuestion].

	// related says that this node has to do with the cluster of the node, or, where both are
	// in none, with the node itself.
	related bool
}

// relationKey is what this node contributes to its relations to others. When it changes, all
// answers are judged again.
type relationKey struct {
	list     *gossip.Address // The first one of the list, which is replaced as a whole.
	listed   int
	found    bool
	cluster  gossip.ClusterID // Of the record.
	yielded  gossip.ClusterID
	isMember bool
}

func (q *inquiry) relationKey() relationKey {
	s := relationKey{
		listed: len(q.seeds), found: q.found, isMember: q.phase == phaseMember,
		cluster: q.kept.Cluster, yielded: q.kept.Yielded.To,
	}
	if s.listed > 0 {
		s.list = &q.seeds[0]
	}
	return s
}

// relate judges all answers again when what this node would say of itself has changed.
func (q *inquiry) relate() {
	if now := q.relationKey(); now != q.relatedBy {
		q.relatedBy = now
		for i := range q.heard {
			q.heard[i].related = q.isRelated(q.heard[i])
		}
	}
}

// isMember tells whether the node is in a cluster.
func (a answer) isMember() bool { return !a.claim.Cluster.IsZero() }

// continues reports whether an answer says the same as an earlier one of the same node,
// which still counted when the new one came.
func (a answer) continues(before answer, limit time.Duration) bool {
	return a.from == before.from && a.claim.Record.Data == before.claim.Record.Data &&
		a.claim.Cluster == before.claim.Cluster && a.claim.Leaving == before.claim.Leaving && a.at.Sub(before.at) <= limit
}

// note takes the answer of a node.
func (q *inquiry) note(from gossip.NodeID, claim Claim) {
	i, found := q.find(from.Address)
	a := answer{from: from, claim: claim, at: q.now.Mono, since: q.now.Mono, back: q.asked[from.Address].back}
	a.related = q.isRelated(a)
	if found {
		if a.continues(q.heard[i], q.answersLast()) {
			a.since = q.heard[i].since
		}
		q.heard[i] = a
	} else {
		q.heard = slices.Insert(q.heard, i, a)
	}
	delete(q.refusals, from.Address)
	q.noteStranger(from, claim, a.related)
	if a.back && claim.Evidence.has(AddressKnown) && (a.isMember() || claim.Record.Remembers()) {
		q.known = q.now.Mono
	}
}

// refusal is why the node at an address refused a connection of this node.
type refusal struct {
	at  machine.Instant
	why string
}

// OwnEntry says of an address in a list that the node there is the one that asks, which is called otherwise.
func OwnEntry(called gossip.Address) string {
	return fmt.Sprintf("is this node, which is called %v: write that into the list", called)
}

// noteRefused notes that the node at an address that is asked refuses this one.
func (q *inquiry) noteRefused(in PeerRefused) {
	if q.phase != phaseJoining || !q.asks(in.Peer.Address) {
		return
	}
	why := "refuses this node: " + oneLine(in.Reason)
	switch {
	case in.As == q.self.Address:
		why = OwnEntry(in.As)
	case !in.As.IsZero():
		why = fmt.Sprintf("answers as %v: write that into the list", in.As)
	}
	if q.refusals == nil {
		q.refusals = map[gossip.Address]refusal{}
	}
	since := q.now.Mono
	if before, known := q.refusals[in.Peer.Address]; known && before.why == why {
		since = before.at
	}
	q.refusals[in.Peer.Address] = refusal{since, why}
}

// fresh returns the answers that are recent enough to count.
func (q *inquiry) fresh() []answer {
	q.relate()
	return slices.DeleteFunc(slices.Clone(q.heard), func(a answer) bool { return q.now.Mono.Sub(a.at) > q.answersLast() })
}

// find returns the index of the answer from an address, or the index at which it belongs.
func (q *inquiry) find(address gossip.Address) (int, bool) {
	return slices.BinarySearchFunc(q.heard, address, func(a answer, address gossip.Address) int {
		return a.from.Address.Compare(address)
	})
}

// of returns the answer from an address.
func (q *inquiry) of(address gossip.Address) (answer, bool) {
	i, found := q.find(address)
	if !found {
		return answer{}, false
	}
	return q.heard[i], true
}

// answersLast is how long an answer counts.
func (q *inquiry) answersLast() time.Duration { return 2 * q.cfg.JoinIntervalMax }

// isRelated judges whether an answer is related; [inquiry.fresh] keeps it.
func (q *inquiry) isRelated(a answer) bool {
	if a.isMember() {
		return q.claim().isRelatedTo(a.claim, a.claim.Evidence)
	}
	return areRelated(q.claim(), q.self.Address, a.claim, a.from.Address)
}

// remembers reports whether this node remembers a cluster.
func (q *inquiry) remembers() bool { return q.memory.wanted.Remembers() }

// isAlone reports whether this node remembers nothing, and its configured list is itself
// alone: it is to be a cluster of one, or there is a mistake in its list.
func (q *inquiry) isAlone() bool {
	return !q.remembers() && !q.found && len(q.seeds) == 1 && q.seeds[0] == q.self.Address
}

// hasReason reports whether this node may follow an answer: it asked there of its own accord,
// it remembers a cluster, or its configured list names others, so that it is no accident that
// nodes ask it. Where the list was found by discovery, discovery will name such a node too.
func (q *inquiry) hasReason(a answer) bool {
	return !a.back || q.remembers() || !q.found && !q.isAlone()
}

// mayJoin reports whether this node may join the cluster of a member that answered, once that
// cluster has standing. Until then it founds none.
func (q *inquiry) mayJoin(a answer) bool {
	listed := q.isAlone() && a.claim.Evidence.has(AddressListed)
	return a.isMember() && a.related && (q.hasReason(a) || listed)
}

// recordCounts reports whether the record of a node that answered counts.
func (q *inquiry) recordCounts(a answer) bool {
	sameLineage := q.remembers() && q.claim().lineage() == a.claim.lineage()
	return a.related && (!a.back || sameLineage || !q.found && !q.isAlone())
}

// unrelatedContact reports whether a contact point is a member of an unrelated cluster with standing:
// it may be this node's own cluster, whose members have not found this node yet.
func (q *inquiry) unrelatedContact() bool {
	return q.found && !q.remembers() && slices.ContainsFunc(q.fresh(), func(a answer) bool {
		return a.claim.Standing && !a.back && !a.related && slices.Contains(q.seeds, a.from.Address)
	})
}

// basis returns the newest record of this node and of the related nodes that answer, or the
// list of seed nodes if none of these remembers a cluster.
func (q *inquiry) basis() Record {
	best := q.memory.wanted
	for _, a := range q.fresh() {
		if a.claim.Record.supersedes(best) && q.recordCounts(a) {
			best = a.claim.Record
		}
	}
	if !best.Remembers() {
		best = listed(q.seeds, q.required)
	}
	return best
}

// noBirthLeft is the reason why nothing is founded after [gossip.LatestBirth].
const noBirthLeft = "a clock is or was off by centuries, here or where somebody answered: no cluster can be born after what is remembered; " +
	"delete the data directories of all nodes while they are stopped, and the epochs in what they write to"

// nextBirth returns the birth of a cluster that would be founded now: above all births
// that this node or a node that answered knows of.
func (q *inquiry) nextBirth() int64 {
	birth := max(q.now.Wall.UnixMilli(), q.memory.wanted.floor()+1)
	for _, a := range q.fresh() {
		birth = max(birth, a.claim.Record.floor()+1)
	}
	return birth
}

// hear takes the claim of a node. It returns false if that node was not asked.
func (q *inquiry) hear(from gossip.NodeID, what string, attempt uint64, claim Claim) bool {
	if !q.wasAsked(from, what, attempt) {
		return false
	}
	q.note(from, claim)
	return true
}

// wasAsked reports whether a node answers a question of this node, and refuses its answer
// otherwise.
func (q *inquiry) wasAsked(from gossip.NodeID, what string, attempt uint64) bool {
	question, known := q.asked[from.Address]
	if attempt > q.attempt || !known || q.now.Mono.Sub(question.at) > q.answersLast() {
		q.refuse(from, what, RefusedUnsolicited, "no such question was asked")
		return false
	}
	return true
}

// compared returns the settings of this node that a join compares. A member compares the
// strategy of its cluster.
func (q *inquiry) compared() []Setting {
	all := append(strategySettings(q.strategies.active()), q.settings...)
	return sortedSettings(append(all, Setting{"membership.seed-nodes", q.seedsCompared(), ShouldEqual}))
}

// seedsCompared is what other nodes compare of this node's seed nodes: the list, or, where
// contact points are looked up, how many of them have to vote. Which of them are found
// differs from one moment to the next.
func (q *inquiry) seedsCompared() string {
	if q.required > 0 {
		return fmt.Sprintf("looked up, required-contact-point-nr %d", q.required)
	}
	return seedsText(q.seeds)
}

// seedsText writes a list of seed nodes in the form that is compared. Lists that differ
// do not protect from a second cluster where no node remembers the first.
func seedsText(seeds []gossip.Address) string {
	var all []string
	for _, a := range seeds {
		all = append(all, a.String())
	}
	slices.Sort(all)
	return cutText(strings.Join(all, ","))
}
