// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/gossip"
)

// What a record holds comes first, then how two records compare, then how a record is
// made of a state or of a list of seed nodes. Last is for which voters a node with a
// record speaks.

// Record is what a node must not forget over a restart, so that of its old cluster and of
// clusters that are founded later at most one goes on. A node that has a disk keeps its
// record there, synced before any node relies on it; without a disk the record ends with
// the process.
//
//	R1  The promise only grows: a node votes for a birth once, and for no lower one after.
//	R2  The stamp only grows while the node is in one cluster.
//	R3  A Config counts a node as having seen it only when the node's record holds it.
type Record struct {
	// Data names this record. After the loss of a disk the record gets another name.
	Data gossip.DataID

	// Promise is the highest birth that the node has voted for or entered, in
	// unix milliseconds.
	Promise int64

	// Cluster is the last cluster that the node was a member of, or none.
	Cluster gossip.ClusterID

	// Stamp says how new the voters are.
	Stamp Stamp

	// Voters are the voters of the newest Config that the node has seen; Previous are
	// those before it, while the node does not know that the change converged. Both are
	// sorted by node.
	Voters, Previous []Voter

	// Yielded is to which cluster Cluster has yielded; zero: it has not.
	Yielded gossip.Yield

	// EpochBorn is the highest birth with which epochs began in a cluster that the node
	// belonged to, in unix milliseconds.
	EpochBorn int64
}

// Voter is one voter of a [Record].
type Voter struct {
	Node gossip.NodeID
	// Data names the voter's record, zero for a listed seed node that has not voted.
	Data gossip.DataID
}

// isAbsent tells whether v is a vote that nobody has, see [listed].
func (v Voter) isAbsent() bool {
	return v.Data == 0 && v.Node.UID < gossip.UIDUnknown && v.Node.UID > gossip.UIDUnknown-gossip.MaxMembers
}

// Stamp orders the Configs of all clusters of one name. The zero Stamp is that of
// the list of seed nodes.
type Stamp struct {
	Born int64  // Birth of the cluster, in unix milliseconds.
	Gen  uint64 // Generation of the cluster's Config.
	By   gossip.UID
}

// Compare orders stamps by birth, then by generation, then by who made the Config.
func (s Stamp) Compare(o Stamp) int {
	return cmp.Or(cmp.Compare(s.Born, o.Born), cmp.Compare(s.Gen, o.Gen), cmp.Compare(s.By, o.By))
}

// IsZero reports whether s is the stamp of the list of seed nodes.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// String returns "none", or the birth and the generation.
func (s Stamp) String() string {
	if s.IsZero() {
		return "none"
	}
	return fmt.Sprintf("%d/%d", s.Born, s.Gen)
}

// Remembers reports whether the node was a member of a cluster.
func (r Record) Remembers() bool { return !r.Stamp.IsZero() }

// Settled reports whether the last change of voters is known to have converged.
func (r Record) Settled() bool { return len(r.Previous) == 0 }

// supersedes reports whether r is to be relied upon rather than o: it is newer, or has
// seen the same change converge.
func (r Record) supersedes(o Record) bool {
	c := r.Stamp.Compare(o.Stamp)
	return c > 0 || c == 0 && r.Settled() && !o.Settled()
}

// equal reports whether all fields are equal.
func (r Record) equal(o Record) bool {
	return r.Data == o.Data && r.Promise == o.Promise && r.Cluster == o.Cluster && r.Stamp == o.Stamp &&
		r.Yielded == o.Yielded && r.EpochBorn == o.EpochBorn && slices.Equal(r.Voters, o.Voters) && slices.Equal(r.Previous, o.Previous)
}

// floor is the birth above which a cluster must be born to come after every cluster that
// the record knows of.
func (r Record) floor() int64 { return max(r.Promise, r.EpochBorn, r.Stamp.Born) }

// base returns the sets of voters in each of which the founders of a cluster upon this
// record must win.
func (r Record) base() gossip.Base {
	base := gossip.Base{nodesOf(r.Voters)}
	if !r.Settled() {
		base = append(base, nodesOf(r.Previous))
	}
	return base
}

// everybody returns the voters of both sets; some may be listed twice.
func (r Record) everybody() []Voter { return slices.Concat(r.Voters, r.Previous) }

// addresses returns the addresses of the voters, sorted, without doubles.
func (r Record) addresses() []gossip.Address {
	var all []gossip.Address
	for _, v := range r.everybody() {
		all = append(all, v.Node.Address)
	}
	slices.SortFunc(all, gossip.Address.Compare)
	return slices.Compact(all)
}

func nodesOf(voters []Voter) []gossip.NodeID {
	nodes := make([]gossip.NodeID, len(voters))
	for i, v := range voters {
		nodes[i] = v.Node
	}
	return nodes
}

// Validate reports whether r, which may come from a disk or from the network, can
// be a record.
func (r Record) Validate() error {
	var faults []error
	refuse := func(bad bool, format string, values ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, values...))
		}
	}
	refuse(r.Data == 0, "no data id")
	if err := r.Yielded.Validate(); err != nil {
		return err
	}
	for _, born := range []int64{r.Promise, r.EpochBorn, r.Stamp.Born, r.Cluster.Born} {
		refuse(born < 0 || born > gossip.LatestBirth, "birth %d", born)
	}
	refuse(r.Remembers() && (len(r.Voters) == 0 || r.Cluster.IsZero()), "stamp %v without voters or a cluster", r.Stamp)
	refuse(!r.Remembers() && len(r.Voters)+len(r.Previous) > 0, "voters without a stamp")
	for _, voters := range [][]Voter{r.Voters, r.Previous} {
		refuse(len(voters) > gossip.MaxMembers, "%d voters, at most %d", len(voters), gossip.MaxMembers)
		for i, v := range voters {
			if err := v.Node.Validate(); err != nil {
				return err
			}
			refuse(i > 0 && voters[i-1].Node.Compare(v.Node) >= 0, "voter %v twice or out of order", v.Node)
		}
	}
	return errors.Join(faults...)
}

// recordOf returns r brought up to date with a state. Converged says that the state's
// last change of voters is over.
func (r Record) recordOf(s *gossip.State, converged bool) Record {
	config := s.Config()
	r.Cluster, r.Stamp = s.Cluster(), stampOf(s)
	r.Voters, r.Previous = votersOf(config.Voters, config), nil
	if !converged {
		r.Previous = votersOf(config.Previous, config)
	}
	r.EpochBorn, r.Yielded = s.EpochBorn(), s.Yielded()
	r.Promise = max(r.Promise, s.Cluster().Born, s.EpochBorn())
	return r
}

func votersOf(nodes []gossip.NodeID, config gossip.Voters) []Voter {
	voters := make([]Voter, len(nodes))
	for i, n := range nodes {
		voters[i].Node = n
		if i < len(config.Data) && config.Voters[i] == n {
			voters[i].Data = config.Data[i] // By index, without a search: recordOf runs for each new state.
		} else {
			voters[i].Data = config.DataOf(n)
		}
	}
	return voters
}

func stampOf(s *gossip.State) Stamp {
	config := s.Config()
	return Stamp{Born: s.Cluster().Born, Gen: config.Gen, By: config.By}
}

// canHold says why a record of the node could not be brought up to date with a foreign
// state. Such a record would be written all the same, and be unreadable after a restart.
func (r Record) canHold(s *gossip.State) error {
	if r.holds(s) {
		return nil
	}
	if err := r.recordOf(s, false).Validate(); err != nil {
		return fmt.Errorf("no record can hold it: %w", err)
	}
	return nil
}

// holds reports whether a node with this record may be counted as having seen a state,
// because the state's Config and the birth of its epochs would survive a restart of the
// node.
func (r Record) holds(s *gossip.State) bool {
	return r.Cluster == s.Cluster() && r.Stamp == stampOf(s) && r.EpochBorn >= s.EpochBorn()
}

// listed returns the record that a list of seed nodes stands for. Its voters are the
// addresses; a node at such an address that remembers nothing may speak for that voter.
// Where more votes are required than a majority of the list, it has absent voters besides:
// any two sets of voters that win have to meet, also the sets of two lists.
func listed(seeds []gossip.Address, required int) Record {
	var r Record
	for _, a := range seeds {
		r.Voters = append(r.Voters, Voter{Node: gossip.NodeID{Address: a, UID: gossip.UIDUnknown}})
	}
	for i := len(seeds); i > 0 && i < 2*required-1; i++ {
		r.Voters = append(r.Voters, Voter{Node: gossip.NodeID{Address: seeds[0], UID: gossip.UIDUnknown - gossip.UID(i)}})
	}
	slices.SortFunc(r.Voters, func(a, b Voter) int { return a.Node.Compare(b.Node) })
	return r
}

// voterIndex finds the voters of a basis for which a node may vote, by the node's address and
// record: the voters whose record it has, wherever they ran, and the listed seed node at its
// address if it remembers no cluster. A node that lost its disk votes for no remembered voter.
type voterIndex struct {
	byMemory map[gossip.DataID][]gossip.NodeID
	listed   map[gossip.Address][]gossip.NodeID
}

func newVoterIndex(basis []Voter) voterIndex {
	s := voterIndex{map[gossip.DataID][]gossip.NodeID{}, map[gossip.Address][]gossip.NodeID{}}
	for _, v := range basis {
		if v.isAbsent() {
			continue
		}
		if v.Data != 0 {
			s.byMemory[v.Data] = append(s.byMemory[v.Data], v.Node)
		} else {
			s.listed[v.Node.Address] = append(s.listed[v.Node.Address], v.Node)
		}
	}
	return s
}

// of returns the voters for which the node at an address votes.
func (s voterIndex) of(at gossip.Address, record Record) []gossip.NodeID {
	spoken := s.byMemory[record.Data]
	if listed := s.listed[at]; len(listed) > 0 && !record.Remembers() {
		spoken = slices.Concat(spoken, listed)
	}
	return spoken
}
