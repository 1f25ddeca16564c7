// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
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

// Services is the command to record that a service runs on this node.
type Services struct{ Service machine.Service }

// Busy is published by a component that has work to hand over before the node
// may leave. A component may repeat it as often as it likes.
type Busy struct{ Component string }

// Drained is published by a component when it has handed its work over, after
// this node's status became [gossip.Leaving]: it hosts nothing any more.
type Drained struct{ Component string }
