// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
)

// What the machine publishes for others stands first ([Refused], [SettingsDiffer], [RecordLost]); then the
// commands, each followed by its answer; then what the driver reports, and what it is to carry out ([Probe],
// [Block]).

// Refused is published for each message, command or node that this node or a peer
// refused. Nothing is dropped without such an event.
type Refused struct {
	// Peer is the other node; the uid may be unknown.
	Peer gossip.NodeID
	// What names the message or command.
	What    string
	Refusal Refusal
	// Reason says why, for people.
	Reason string
	// Differences are the settings that differ, when that is the reason.
	Differences []Difference
}

// SettingsDiffer is published when a node joined although settings that should
// be equal are not, at the joiner and at the node through which it joined.
type SettingsDiffer struct {
	Peer        gossip.NodeID
	Differences []Difference
}

// SilentSeeds is published when this node has founded a cluster upon its list of seed nodes,
// some of which did not answer: if a cluster runs there, there are two.
type SilentSeeds struct{ Addresses []gossip.Address }

// NodesWithoutRecord is published when this node enters a cluster, and some of the nodes that it has heard of,
// itself included, keep no record on a disk, though others do.
type NodesWithoutRecord struct{ Addresses []gossip.Address }

// RecordLost is published when the node's record could not be written and was removed:
// the node goes on, but speaks for no voter after a restart.
type RecordLost struct{ Reason string }

// Form is the command of an operator to found a cluster with this node as its only voter,
// whatever other voters remember. It is refused while a member of a cluster that goes on
// answers. [FormAnswered] tells the outcome.
type Form struct {
	// ID is given back in the answer.
	ID uint64
}

// FormAnswered is published to answer a [Form].
type FormAnswered struct {
	ID uint64
	// Cluster is the cluster that was founded, which the node enters as soon as its
	// record holds it; zero if the command was refused.
	Cluster gossip.ClusterID
	// Reason says for people why the command was refused.
	Reason string
}

// Join is the command to join a cluster through seed nodes. All nodes are given the same
// addresses. If no node remembers a cluster, more than half of the seed nodes found one;
// a single seed node does so at once.
type Join struct{ Seeds []gossip.Address }

// Discover is the command to join a cluster among contact points that are looked up, or
// to form one with them, as [Dependencies.Bootstrap] says.
type Discover struct{}

// Leave is the command to let a member leave in order. [CommandAnswered] answers it.
type Leave struct {
	// Address and UID name the member. With a UID that incarnation is meant and no other;
	// without one, whoever is the member at the address when the command is carried out.
	Address gossip.Address
	UID     gossip.UID
	// ID is given back in the answer. Zero: no answer is asked for.
	ID uint64
}

// Prepare is the command that the whole cluster prepares to be stopped. Afterwards nobody is
// let in, and when one member leaves, all do.
type Prepare struct{}

// Down is the command to down a member. It must be known to have stopped or to be cut
// off: downing a member that others can reach makes it stop. [CommandAnswered] answers it.
type Down struct {
	// Address and UID name the member, as those of [Leave] do.
	Address gossip.Address
	UID     gossip.UID
	// ID is given back in the answer. Zero: no answer is asked for.
	ID uint64
}

// CommandAnswered is published to answer a [Leave] or a [Down] with an ID when it has been carried
// out, or when it changes nothing. That the member leaves, or is down, already is no error.
type CommandAnswered struct {
	ID uint64
	// Absent says that no member was meant, and what became of it. Nil: there is one.
	Absent *Absent
	// NotReady says for people why this node cannot carry the command out, empty if it can.
	NotReady string
}

// LoadDowning is the command to load a downing strategy, and to make it the cluster's
// once all members have it. Until then this node decides by the strategy of the cluster,
// which it keeps. A strategy that is loaded already is replaced by the one that comes
// with the command.
type LoadDowning struct{ Strategy Strategy }

// Unloaded is published when this node will not ask a downing strategy again: another has
// replaced it, all members know that, and none can choose it any more; or one with the
// same identity has replaced it. It is also the answer to a [LoadDowning] that is
// refused.
type Unloaded struct {
	Strategy gossip.DowningStrategy
	Load     uint64 // The number of the strategy, see [Strategy].
}

// Settled is published when a strategy that was asked, and keeps others out ([Strategy.Keeps]),
// need not do so for a decision any more: nobody is missing, and who was downed is removed.
type Settled struct{ Load uint64 }

// PeerRefused is the input by which the driver tells that a peer's transport
// refuses this node.
type PeerRefused struct {
	// Peer is the node that was dialled, never the node that the answering side says it
	// is. It has a uid only if the connection was meant for that incarnation.
	Peer gossip.NodeID
	// As is the address by which the node that answered calls itself, where that is not the
	// one that was dialled; zero otherwise.
	As gossip.Address
	// Removed says that the peer knows this incarnation as removed or down.
	Removed bool
	// Final says that no repetition helps: the peer is of another cluster, or speaks no
	// common version of the protocol.
	Final  bool
	Reason string
}

// WronglyDialled is the input by which the driver tells that the node By has dialled this one
// for another: for an earlier incarnation, or under another address. By knows this address, so
// it is asked which cluster it is in.
type WronglyDialled struct{ By gossip.NodeID }

// Probe is an effect: the driver dials Address anew and reports by [Probed] which node
// answered. The driver gives up after Limit; the machine has a timer of its own.
type Probe struct {
	Address gossip.Address
	Roles   []string // Roles that the joiner must be allowed to have.
	Limit   time.Duration
}

// Probed is the input that answers a [Probe].
type Probed struct {
	Address gossip.Address
	// Node is the node that answered, if Err is nil.
	Node gossip.NodeID
	Err  error
}

// Block is an effect: the transport closes its connections to Node, which was removed,
// and refuses it from now on.
type Block struct {
	Node   gossip.NodeID
	Reason string
}
