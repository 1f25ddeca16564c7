// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// Claim is what a node says of itself while clusters are looked for, in each question and
// each answer. It is believed only in the answer to a question, from the address that was
// asked.
type Claim struct {
	// Record is the record that the node has on its disk, or, unless Kept, in its process alone.
	Record Record
	// Kept says that the record outlives the process.
	Kept bool
	// List is where the node looks for its cluster: its seed nodes, or, where Found says so,
	// what its last lookup has found. At most [MaxListed].
	List  []gossip.Address
	Found bool
	// Cluster is the cluster of which the node is a member, or none.
	Cluster gossip.ClusterID
	// Standing says that the node can prove a majority of its cluster.
	Standing bool
	// Leaving says that the node is on its way out of its cluster.
	Leaving bool
	// Yielded says that its cluster has yielded to another one.
	Yielded bool
	// Voters are the voters of its cluster that are members of it: not those that were
	// listed or remembered at its founding and never entered.
	Voters []gossip.NodeID
	// Evidence, in an answer, is what the node knows of the claim in the question.
	Evidence Evidence
}

// MaxListed is the largest number of addresses in the list of a [Claim]. Of a longer list
// the first ones are told.
const MaxListed = 1000

// claim returns what this node says of itself.
func (q *inquiry) claim() Claim {
	c := Claim{Record: q.kept, Kept: q.memory.durable, List: q.seeds[:min(len(q.seeds), MaxListed)], Found: q.found}
	if q.phase == phaseMember {
		c.Leaving, c.Yielded = !admits(q.ownStatus()), !q.state.Yielded().IsZero()
		c.Cluster, c.Standing = q.state.Cluster(), q.footing.goesOn() && !c.Yielded
		c.Voters = presentVoters(q.state)
	}
	return c
}

// answerTo returns what this node says of itself to one that claims something at an address.
func (q *inquiry) answerTo(at gossip.Address, theirs Claim) Claim {
	c := q.claim()
	c.Evidence = q.knownAddresses().evidence(at, theirs)
	return c
}

// warnOfNodesWithoutRecord tells which nodes keep no record over their processes, if others do. Those speak for no
// voter after a restart of all, so that those who remember may be too few to start the cluster again.
func (q *inquiry) warnOfNodesWithoutRecord() {
	var without []gossip.Address
	kept := q.memory.durable
	if !kept {
		without = append(without, q.self.Address)
	}
	for _, a := range q.fresh() {
		switch {
		case a.claim.Kept:
			kept = true
		case a.related:
			without = append(without, a.from.Address)
		}
	}
	if kept && len(without) > 0 {
		slices.SortFunc(without, gossip.Address.Compare)
		q.out.Decide("join", q.self.String(), "records are not kept", cutText(fmt.Sprintf("%v have no data directory, others have", without)))
		q.out.Publish(NodesWithoutRecord{Addresses: without})
	}
}

// presentVoters returns the voters that are members of a state.
func presentVoters(s *gossip.State) []gossip.NodeID {
	return slices.DeleteFunc(slices.Clone(s.Config().Voters), func(n gossip.NodeID) bool { return s.Member(n) == nil })
}

// lineage is that of the node's cluster, or of the one that it remembers; zero: it is in
// none and remembers none.
func (c Claim) lineage() uint64 {
	return cmp.Or(c.Cluster.Lineage(), c.Record.Cluster.Lineage())
}

// rank says which of two related clusters with standing goes on.
type rank struct {
	voters  int // Present ones.
	cluster gossip.ClusterID
}

func (c Claim) rank() rank { return rank{len(c.Voters), c.Cluster} }

// before reports whether the cluster of r goes on: the one with more voters, then the older
// one, then the one with the lower nonce.
func (r rank) before(o rank) bool {
	return cmp.Or(cmp.Compare(o.voters, r.voters), r.cluster.Compare(o.cluster)) < 0
}
