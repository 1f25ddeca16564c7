// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Changed is published after each change of what it holds. It is immutable.
type Changed struct {
	State *gossip.State
	// Self is the node of this machine.
	Self gossip.NodeID
	// Leader is the leader as this node sees it, or none.
	Leader gossip.NodeID
	// Converged says that every member that counts is known to have seen State.
	Converged bool
	// Base holds the sets of voters in each of which a side must win.
	Base gossip.Base
}

// Standing is published when the moment moves up to which this node may host.
// The node hosts if and only if its clock shows at most Until. Looking is up to
// whoever begins something, at the moment of beginning; there is no event for
// the passing of Until, because a node that was frozen could not publish it.
type Standing struct {
	// Until is [machine.Never] for a lone voter, and zero for a node that may
	// not host at all.
	Until machine.Instant
	// Dropped says that the node leaves in order and has given its standing up.
	Dropped bool
}

// Fenced is published for each member that was removed, when nothing of it can be
// hosting any more: what it hosted may get new homes. It is published once, and
// again when a component is attached, which may have missed it.
type Fenced struct {
	Node gossip.NodeID
	// Graceful says that the node left in order, having confirmed its stop.
	Graceful bool
}

// Stopping is the last event: this node must stop everything it hosts and end.
type Stopping struct {
	Reason StopReason
	// Detail says why, for people.
	Detail string
}

// StopReason says why a node ends.
type StopReason uint8

// The reasons for which a node ends.
const (
	// StopLeft: the node left in order.
	StopLeft StopReason = iota + 1
	// StopDowned: the node was downed or removed by others, or downed itself.
	StopDowned
	// StopRefused: the cluster refused the node for good.
	StopRefused
	// StopJoinFailed: the node could not join within the time that it was given.
	StopJoinFailed
	// StopYielded: the node's cluster met another one of its name, which goes on.
	StopYielded
	// StopDisk: the node's record can be neither written nor removed.
	StopDisk
)

// String returns the name of the reason.
func (r StopReason) String() string {
	switch r {
	case StopLeft:
		return "left"
	case StopDowned:
		return "downed"
	case StopRefused:
		return "refused"
	case StopJoinFailed:
		return "join-failed"
	case StopYielded:
		return "yielded"
	case StopDisk:
		return "disk"
	default:
		return "none"
	}
}

// Refused is published for each message, command or node that was refused, here
// or by a peer. Nothing is dropped without one.
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

// RecordLost is published when the node's record could not be written and was
// removed: the node goes on, and speaks for no voter after a restart.
type RecordLost struct{ Reason string }

// Form is the command of an operator to found a cluster with this node as its only
// voter, whatever other voters remember. It is refused while a member of a cluster
// that goes on answers. [FormAnswered] tells what became of it.
type Form struct {
	// ID is given back in the answer.
	ID uint64
}

// FormAnswered is published to answer a [Form].
type FormAnswered struct {
	ID uint64
	// Cluster is the one that was founded, which the node enters as soon as it is in
	// the node's record; zero if the command was refused.
	Cluster gossip.ClusterID
	// Reason says why it was refused, for people.
	Reason string
}

// Join is the command to join a cluster through seed nodes. All nodes are given the
// same addresses. If nobody remembers a cluster, more than half of them found one;
// one alone does so at once.
type Join struct{ Seeds []gossip.Address }

// Leave is the command to let the member at an address leave in order.
type Leave struct{ Address gossip.Address }

// Down is the command to down the member at an address. It must be known to have
// stopped or to be cut off: downing a member that others can reach makes it stop.
type Down struct{ Address gossip.Address }

// LoadDowning is the command to take a downing strategy in, and to make it the
// cluster's once all members have it. Until that is done this node decides by the
// strategy of the cluster, which it keeps. A strategy that is loaded already is
// replaced by what comes with the command.
type LoadDowning struct{ Strategy Strategy }

// Unloaded is published when this node will not ask a downing strategy again: it
// was replaced by another, all know that, and nobody can choose it any more; or it
// was replaced by one with the same identity. It is also the answer to a
// [LoadDowning] that is refused.
type Unloaded struct {
	Strategy gossip.DowningStrategy
	Load     uint64 // As in [Strategy].
}

// Services is the command to record that a service runs on this node.
type Services struct{ Service machine.Service }

// Hold is published by a component that has work to hand over before the node
// may leave. It is repeated as often as the component likes.
type Hold struct{ Component string }

// Stopped is published by a component when it has handed its work over, after
// this node's status became [gossip.Leaving]: it hosts nothing any more.
type Stopped struct{ Component string }

// PeerRefused is the input by which the driver tells that a peer's transport
// refuses this node.
type PeerRefused struct {
	// Peer is who was dialled, never who the answering side says it is. It has a
	// uid only if the connection was meant for that incarnation.
	Peer gossip.NodeID
	// Removed says that the peer knows this incarnation as removed or down.
	Removed bool
	// Final says that no repetition helps: another cluster, no common version of
	// the protocol.
	Final  bool
	Reason string
}

// Probe is an effect: the driver dials Address anew and reports by [Probed] who
// answered. It gives up after Limit; the machine has a timer of its own.
type Probe struct {
	Address gossip.Address
	Roles   []string // That the joiner must be allowed to have.
	Limit   time.Duration
}

// Probed is the input that answers a [Probe].
type Probed struct {
	Address gossip.Address
	// Node is who answered, if Err is nil.
	Node gossip.NodeID
	Err  error
}

// Block is an effect: the transport closes the connections to Node, which was
// removed, and refuses it from now on.
type Block struct {
	Node   gossip.NodeID
	Reason string
}
