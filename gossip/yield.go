// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gossip

import (
	"cmp"
	"slices"
)

// Yield says to which other cluster of its name a cluster has yielded. The zero Yield says
// that it goes on.
type Yield struct {
	To ClusterID
	// At are addresses of members of that cluster; the zero Address where there are fewer.
	At [YieldAddresses]Address
}

// YieldAddresses is the number of addresses that a [Yield] has room for.
const YieldAddresses = 3

// IsZero reports whether the cluster goes on.
func (y Yield) IsZero() bool { return y == Yield{} }

// Compare orders yields by cluster, then by the addresses.
func (y Yield) Compare(o Yield) int {
	c := y.To.Compare(o.To)
	for i := range y.At {
		c = cmp.Or(c, y.At[i].Compare(o.At[i]))
	}
	return c
}

// Addresses returns those of At that are set.
func (y Yield) Addresses() []Address {
	return slices.DeleteFunc(slices.Clone(y.At[:]), Address.IsZero)
}

// Validate reports what is wrong with y: a birth that no cluster has, or an address that
// cannot be dialled. The errors unwrap to [ErrInvalid].
func (y Yield) Validate() error {
	if !isBirth(y.To.Born) {
		return invalid(FaultTime, NodeID{}, "epochs or a cluster born at %d", y.To.Born)
	}
	for _, a := range y.Addresses() {
		if err := a.Validate(); err != nil {
			return err
		}
	}
	return nil
}
