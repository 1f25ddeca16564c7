// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Changed is published after each change of any of its fields. It is immutable.
type Changed struct {
	State *gossip.State
	// Self is the node on which the event is published.
	Self gossip.NodeID
	// Leader is the leader as this node sees it, or none.
	Leader gossip.NodeID
	// Converged says that every member that counts is known to have seen State.
	Converged bool
	// Base holds the sets of voters. A side of a partition must win in each of them.
	Base gossip.Base
}

// Standing is published when the instant changes until which this node may host. The
// node may host exactly as long as its clock shows at most Until. A component compares
// its clock with Until whenever it begins something; no event says that Until has
// passed, because a node that was frozen could not publish it.
type Standing struct {
	// Until is [machine.Never] for a lone voter, and zero for a node that may
	// not host at all.
	Until machine.Instant
	// Dropped says that the node leaves in order and has given up its standing.
	Dropped bool
}

// Fenced is published for each member that was removed, once that member can host
// nothing any more: what it hosted may be hosted elsewhere. The event is published
// once, and again when a component is attached, which may have missed it.
type Fenced struct {
	Node gossip.NodeID
	// Graceful says that the node left in order, having confirmed its stop.
	Graceful bool
}

// Stopping is the last event: this node must stop everything that it hosts, and end.
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
	// StopYielded: the node's cluster met another cluster of the same name, which goes
	// on.
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

// Services is the command to record that a service runs on this node.
type Services struct{ Service machine.Service }

// Busy is published by a component that must hand over its work before the node may
// leave. A component may publish it as often as it likes.
type Busy struct{ Component string }

// Drained is published by a component that has handed over its work, after this node's
// status became [gossip.Leaving]: the component hosts nothing any more.
type Drained struct{ Component string }
