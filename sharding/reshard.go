// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"fmt"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Resharding says how far a change of the number of shards of a kind is, as one node knows.
type Resharding struct {
	From    int `json:"from"`    // The number of shards before the change.
	To      int `json:"to"`      // The number of shards when it is over.
	Retired int `json:"retired"` // How many of the former shards are retired: their entities live in the new ones.
}

// ReshardError is the error of [System.Reshard] when no change begins.
type ReshardError struct {
	Kind   string
	Shards int
	Reason string // Why, in words; of a change that is under way, how far it is.
}

// Error names the kind and the number, and says why.
func (e *ReshardError) Error() string {
	return fmt.Sprintf("sharding: %s does not get %d shards: %s", protocol.Clip(e.Kind), e.Shards, e.Reason)
}
