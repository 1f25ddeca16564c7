// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package majority

import (
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing"
	"github.com/quorate/quorate/downing/lease"
)

// Settings are what a strategy is made with. The zero value is not valid; start from
// [Default], and give the lease and the owner.
type Settings struct {
	// LeaseMajorityConfig has the role, the delay, the name of the lease, the kind of its store
	// and how long the lease lasts.
	downing.LeaseMajorityConfig

	// Owner is the address of the node. A side that is refused looks by the address whether the
	// holder is one of its own members.
	Owner string

	// RequestTimeout is how long the store may take for one answer, and RetryInterval is the
	// pause after a call whose result is unknown.
	RequestTimeout, RetryInterval time.Duration

	// Patience is how long the lease is kept, or asked for, after a question has ended: a question that follows soon
	// finds it held.
	Patience time.Duration
}

// Default returns the defaults of the section, 2 seconds for a call, half a second before the
// next attempt, and 15 seconds of patience.
func Default() Settings {
	return Settings{
		LeaseMajorityConfig: downing.Default().LeaseMajority,
		RequestTimeout:      2 * time.Second, RetryInterval: 500 * time.Millisecond, Patience: 15 * time.Second,
	}
}

// renewal is the part of a lease after which its holder renews it.
const renewal = 8

// Validate reports every fault of s in one error, each a [field.Error].
func (s Settings) Validate() error {
	var faults field.Faults
	faults.Add(s.LeaseMajorityConfig.Validate())
	faults.Add(lease.CheckName("lease-name", s.Lease))
	faults.Refuse(s.Owner == "", "owner", "is empty: it is the address of the node")
	faults.Refuse(s.RequestTimeout <= 0 || s.RetryInterval <= 0 || s.Patience <= 0, "request-timeout",
		"%v with pauses of %v and %v of patience: all of them are above 0", s.RequestTimeout, s.RetryInterval, s.Patience)
	faults.Refuse(s.ReleaseAfter/renewal+2*(s.RequestTimeout+s.RetryInterval) > s.ReleaseAfter/2, "release-after",
		"%v is too short for calls of %v and pauses of %v", s.ReleaseAfter, s.RequestTimeout, s.RetryInterval)
	return faults.Err()
}
