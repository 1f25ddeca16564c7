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

// The order here: whom this node asks, what it does with an answer, what follows from all
// answers (the newest record and the highest birth), and what this node says of itself.

// inquiry holds whom this node asks about clusters, and what they have answered. A node
// without a cluster asks until it has one; a member goes on asking the nodes that should
// be in its cluster, and answers questions itself.
type inquiry struct {
	*core

	memory     *memory
	strategies *strategies
	footing    *footing

	// seeds are the addresses with which the node was told to join, or at which discovery
	// has found contact points.
	seeds []gossip.Address

	// required is how many of them at least must vote where nobody remembers a cluster;
	// zero: more than half of them.
	required int

	// attempt numbers the searches, so that answers to earlier ones are recognized.
	attempt uint64

	// heard is the last answer of each address, sorted by address.
	heard []answer

	// began is when the node was told to join for the first time.
	began machine.Instant
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
	all := slices.Concat(q.seeds, q.memory.wanted.addresses())
	if basis := q.basis(); basis.Remembers() {
		all = append(all, basis.addresses()...)
	}
	slices.SortFunc(all, gossip.Address.Compare)
	return slices.DeleteFunc(slices.Compact(all), func(a gossip.Address) bool { return a == q.self.Address })
}

// asks reports whether this node asks one of the addresses, and so believes an answer
// from there.
func (q *inquiry) asks(addresses ...gossip.Address) bool {
	if len(addresses) == 0 {
		return false
	}
	asked := q.whomToAsk()
	return slices.ContainsFunc(addresses, func(a gossip.Address) bool {
		_, found := slices.BinarySearchFunc(asked, a, gossip.Address.Compare)
		return found
	})
}

// answer is the last claim that was heard of a node.
type answer struct {
	from  gossip.NodeID
	claim Claim
	at    machine.Instant // When the claim was heard last.
	since machine.Instant // When the node began to claim the same.
}

// continues reports whether an answer says the same as an earlier one of the same node,
// which still counted when the new one came.
func (a answer) continues(before answer, limit time.Duration) bool {
	return a.from == before.from && a.claim.Record.Data == before.claim.Record.Data &&
		a.claim.Cluster == before.claim.Cluster && a.claim.Leaving == before.claim.Leaving && a.at.Sub(before.at) <= limit
}

// note takes the answer of a node.
func (q *inquiry) note(from gossip.NodeID, claim Claim) {
	i, found := q.find(from.Address)
	a := answer{from: from, claim: claim, at: q.now.Mono, since: q.now.Mono}
	if found {
		if a.continues(q.heard[i], q.answersLast()) {
			a.since = q.heard[i].since
		}
		q.heard[i] = a
		return
	}
	q.heard = slices.Insert(q.heard, i, a)
}

// fresh returns the answers that are recent enough to count.
func (q *inquiry) fresh() []answer {
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

// basis returns the newest record of this node and of the nodes that answer, or the list
// of seed nodes if no node remembers a cluster.
func (q *inquiry) basis() Record {
	best := q.memory.wanted
	for _, a := range q.fresh() {
		if a.claim.Record.supersedes(best) {
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

// claim returns what this node says of itself to a node with a record.
func (q *inquiry) claim(to Record) Claim {
	c := Claim{Record: q.kept, Known: q.asks(to.addresses()...)}
	if q.phase == phaseMember {
		c.Leaving = !admits(q.ownStatus())
		c.Cluster, c.Standing = q.state.Cluster(), q.footing.goesOn()
		c.Voters = len(q.state.Config().Voters)
	}
	return c
}

// hear takes the claim of a node. It returns false if that node was not asked.
func (q *inquiry) hear(from gossip.NodeID, what string, attempt uint64, claim Claim) bool {
	if attempt > q.attempt || !q.asks(from.Address) {
		q.refuse(from, what, RefusedUnsolicited, "no such question was asked")
		return false
	}
	q.note(from, claim)
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
