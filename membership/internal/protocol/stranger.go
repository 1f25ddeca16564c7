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

const (
	// strangeAfter is for how long a node answers as one that has nothing to do with this one
	// before it is called a stranger: what discovery finds may differ for a moment.
	strangeAfter = 5 * time.Second

	// strangeFor is how long a stranger that does not answer any more is remembered.
	strangeFor = 30 * time.Second

	// maxStrangers bounds the strangers that are remembered.
	maxStrangers = 64
)

// Stranger is a node of the same cluster name that answers, and that has nothing to do with
// this node's cluster by lists and lineage.
type Stranger struct {
	Node gossip.NodeID
	// Cluster is the cluster that it is in, or none.
	Cluster gossip.ClusterID
	// Reason says in one sentence why, with both lists, and what to do.
	Reason string
}

// Strangers is published when other strangers answer than before.
type Strangers struct{ All []Stranger }

// stranger is a [Stranger] with when it was heard first and last.
type stranger struct {
	Stranger
	first, last machine.Instant
	told        bool
}

// noteStranger notes whether a node that answered has to do with this one.
func (q *inquiry) noteStranger(from gossip.NodeID, theirs Claim, related bool) {
	mine := q.claim()
	i, known := slices.BinarySearchFunc(q.strangers, from.Address, func(s stranger, a gossip.Address) int { return s.Node.Address.Compare(a) })
	switch {
	case related || len(mine.List) == 0 || len(theirs.List) == 0:
		if known {
			told := q.strangers[i].told
			q.strangers = slices.Delete(q.strangers, i, i+1)
			q.tellStrangers(told)
		}
		return
	case !known && len(q.strangers) >= maxStrangers:
		return
	case !known:
		q.strangers = slices.Insert(q.strangers, i, stranger{first: q.now.Mono})
	}
	s := &q.strangers[i]
	said := Stranger{from, theirs.Cluster, unrelated(from.Address, theirs, mine)}
	news := !s.told && q.now.Mono.Sub(s.first) >= strangeAfter || s.told && s.Stranger != said
	s.Stranger, s.last = said, q.now.Mono
	s.told = s.told || news
	if news {
		q.out.Decide("cluster", from.String(), "unrelated", said.Reason)
	}
	q.tellStrangers(news)
}

// forgetStrangers drops those that have not answered for long.
func (q *inquiry) forgetStrangers() {
	dropped := false
	q.strangers = slices.DeleteFunc(q.strangers, func(s stranger) bool {
		old := q.now.Mono.Sub(s.last) > strangeFor
		dropped = dropped || old && s.told
		return old
	})
	q.tellStrangers(dropped)
}

// tellStrangers publishes the strangers if they have changed.
func (q *inquiry) tellStrangers(changed bool) {
	if changed {
		q.out.Publish(Strangers{q.toldStrangers()})
	}
}

// toldStrangers returns the strangers that are told of.
func (q *inquiry) toldStrangers() []Stranger {
	var all []Stranger
	for _, s := range q.strangers {
		if s.told {
			all = append(all, s.Stranger)
		}
	}
	return all
}

// unrelated says why a node at an address has nothing to do with this one, and what an
// operator can do.
func unrelated(at gossip.Address, theirs, mine Claim) string {
	is := "is in no cluster"
	if !theirs.Cluster.IsZero() {
		is = fmt.Sprintf("is in cluster %v of this name", theirs.Cluster)
	}
	cure := "if both are to be one cluster, give all nodes one list and restart one side; if not, give one side another name"
	switch {
	case mine.Found:
		cure = "have discovery find the nodes of one cluster only, or give one side another name"
	case mine.Cluster.IsZero() && mine.Record.Remembers() && theirs.Standing:
		cure = "this node remembers another cluster: start the voters of that, or delete the data-dir of this node to join the one there"
	}
	return cutText(fmt.Sprintf("%v %s, and is not related to this node: %s there, %s here: %s", at, is, theirs.listText(), mine.listText(), cure))
}

// listText describes the list of a claim.
func (c Claim) listText() string {
	const most = 8
	kind := "seed nodes"
	if c.Found {
		kind = "found by discovery"
	}
	var all []string
	for _, a := range c.List[:min(len(c.List), most)] {
		all = append(all, a.String())
	}
	if more := len(c.List) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return kind + " [" + strings.Join(all, ", ") + "]"
}
