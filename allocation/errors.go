// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"errors"
	"fmt"
)

// ErrUnknownStrategy is returned by [New] for a strategy that is not built in.
var ErrUnknownStrategy = errors.New("allocation: unknown strategy")

// ErrContract is matched by every [*ContractError], with [errors.Is].
var ErrContract = errors.New("allocation: contract broken")

// ContractError says how a request or an answer breaks its contract. It is
// found with [errors.As] and matches [ErrContract].
type ContractError struct {
	// Shard is the shard concerned, if HasShard.
	Shard Shard
	// HasShard says that the fault concerns one shard.
	HasShard bool
	// Region is the region concerned; empty if no single region is.
	Region Region
	// What describes the fault.
	What string
}

// Error implements error.
func (e *ContractError) Error() string {
	s := "allocation: "
	if e.HasShard {
		s += fmt.Sprintf("shard %d: ", e.Shard)
	}
	if e.Region != "" {
		s += fmt.Sprintf("region %q: ", e.Region)
	}
	return s + e.What
}

// Unwrap returns [ErrContract].
func (e *ContractError) Unwrap() error { return ErrContract }

// shardError returns a ContractError about a shard and, unless r is empty, a region.
func shardError(s Shard, r Region, what string) error {
	return &ContractError{Shard: s, HasShard: true, Region: r, What: what}
}

// regionError returns a ContractError about a region, or about none when r is empty.
func regionError(r Region, format string, args ...any) error {
	return &ContractError{Region: r, What: fmt.Sprintf(format, args...)}
}
