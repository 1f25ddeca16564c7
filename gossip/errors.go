// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrInvalid is what every [InvalidError] unwraps to.
	ErrInvalid = errors.New("gossip: invalid state")

	// ErrNotCovered is returned by [State.Apply] when the receiver does not have
	// everything on which the delta builds, or cannot tell whether it has. The
	// receiver answers with a digest of its own, see [State.DigestFor].
	ErrNotCovered = errors.New("gossip: delta builds upon news not received yet")

	// ErrOtherCluster is returned by [State.Apply] for a delta of another
	// cluster.
	ErrOtherCluster = errors.New("gossip: delta of another cluster")
)

// Fault is the way in which a value is invalid. It is meant for counters and has a
// short, fixed text.
type Fault uint8

// The faults.
const (
	FaultAddress   Fault = iota + 1 // A host or port that cannot be dialled.
	FaultText                       // A text that is not UTF-8, or has control characters.
	FaultUID                        // A uid of 0.
	FaultDuplicate                  // Two entries for the same node or value.
	FaultUnknown                    // A reference to a node that is not a member.
	FaultCounter                    // A number out of its range.
	FaultStatus                     // A status that does not exist.
	FaultUpNumber                   // An up-number that does not fit the status, or is above the last one.
	FaultReach                      // A reachability row about its own observer, or without a status.
	FaultTime                       // A time that cannot be true.
	FaultLimit                      // More or longer than allowed.
	FaultVoters                     // Voters that cannot follow the known ones.
	FaultStrategy                   // A downing strategy that the node has not loaded.
)

var _ error = (*InvalidError)(nil)

// String returns the text of f.
func (f Fault) String() string {
	switch f {
	case FaultAddress:
		return "address"
	case FaultText:
		return "text"
	case FaultUID:
		return "uid"
	case FaultDuplicate:
		return "duplicate"
	case FaultUnknown:
		return "unknown-node"
	case FaultCounter:
		return "counter"
	case FaultStatus:
		return "status"
	case FaultUpNumber:
		return "up-number"
	case FaultReach:
		return "reachability"
	case FaultTime:
		return "time"
	case FaultLimit:
		return "limit"
	case FaultVoters:
		return "voters"
	case FaultStrategy:
		return "downing-strategy"
	default:
		return fmt.Sprintf("fault-%d", uint8(f))
	}
}

// InvalidError describes a fault of a value that came from another node. It unwraps to
// [ErrInvalid].
type InvalidError struct {
	Fault  Fault
	Node   NodeID // The node concerned; zero if there is none.
	Detail string
}

// Error implements error.
func (e *InvalidError) Error() string {
	if e.Node.IsZero() {
		return "gossip: invalid " + e.Fault.String() + ": " + e.Detail
	}
	return "gossip: invalid " + e.Fault.String() + " of " + e.Node.String() + ": " + e.Detail
}

// Unwrap returns [ErrInvalid].
func (e *InvalidError) Unwrap() error { return ErrInvalid }

func invalid(f Fault, node NodeID, format string, args ...any) error {
	return &InvalidError{Fault: f, Node: node, Detail: fmt.Sprintf(format, args...)}
}
