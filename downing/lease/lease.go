// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	"github.com/quorate/quorate/config/field"
)

// Store gives leases, each to one owner at a time. Both methods return soon after their
// context has ended, and are safe for concurrent use. An error of either means that what the
// store did is unknown.
type Store interface {
	// Take asks for a lease. If it is free or has ended, it is granted with a token above
	// every token of it before. If it belongs to the owner of the claim already, it is granted
	// again with the token that it has, and its time begins anew. In all other cases it is
	// refused. The time of a lease that is granted begins after Take was called.
	Take(ctx context.Context, c Claim) (Answer, error)

	// Give gives a lease back. If it does not belong to the owner of the claim, nothing
	// happens.
	Give(ctx context.Context, c Claim) error
}

// Claim says which lease is asked for, and by whom.
type Claim struct {
	// Name is the name of the lease: see [CheckName].
	Name string
	// Owner is the name of who asks. No other claimant has it, not even the same program
	// after a restart.
	Owner string
	// TTL is how long the lease lasts unless it is taken again.
	TTL time.Duration
}

// Answer is what a store says.
type Answer struct {
	// Granted says that the lease belongs to the owner of the claim.
	Granted bool
	// Owner is the owner of the lease, which is another one if it was refused.
	Owner string
	// Token is the fencing token, above 0, if the lease was granted.
	Token uint64
	// TTL is how long the lease lasts from the call on, if it was granted.
	TTL time.Duration
}

const maxNameBytes = 63

// CheckName refuses what cannot be the name of a lease in every store. Names have at most 63
// letters in lower case, digits and hyphens, and neither begin nor end with a hyphen. The
// error is a [field.Error] at the key.
func CheckName(key, name string) error {
	good := name != "" && len(name) <= maxNameBytes && name[0] != '-' && name[len(name)-1] != '-'
	for _, r := range name {
		good = good && (r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-')
	}
	if !good {
		return field.Errorf(key, "%q is no name of a lease: letters in lower case, digits and hyphens, at most %d", field.Clip(name), maxNameBytes)
	}
	return nil
}
