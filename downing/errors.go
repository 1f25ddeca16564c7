// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// ErrUnknownStrategy is returned by [New] for a strategy that is not built in.
var ErrUnknownStrategy = errors.New("downing: unknown strategy")

// ErrContract is matched by every [*ContractError], with [errors.Is].
var ErrContract = errors.New("downing: contract broken")

// ContractError says how a view or a decision breaks its contract. It is found
// with [errors.As] and matches [ErrContract].
type ContractError struct {
	// Node is the node concerned; zero if no single node is.
	Node gossip.NodeID
	// What describes the fault.
	What string
}

// Error implements error.
func (e *ContractError) Error() string {
	if e.Node.IsZero() {
		return "downing: " + e.What
	}
	return "downing: " + e.Node.String() + " " + e.What
}

// Unwrap returns [ErrContract].
func (e *ContractError) Unwrap() error { return ErrContract }

// broken returns a ContractError about a node, or about none when node is zero.
func broken(node gossip.NodeID, format string, args ...any) error {
	return &ContractError{Node: node, What: fmt.Sprintf(format, args...)}
}
