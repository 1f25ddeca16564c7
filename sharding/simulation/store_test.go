// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	world "github.com/quorate/quorate/membership/simulation"
	"github.com/quorate/quorate/sharding/simulation"
)

// written runs a cluster under random faults whose entities write to a storage with
// epochs. With every other seed a witness decides who survives, which may be a minority.
func written(seed uint64, lax bool) (*simulation.Cluster, error) {
	opt := troubled(seed)
	witness := &world.Witness{}
	if seed%2 == 1 {
		opt.Membership.Downing = witness.Downing()
	}
	c := simulation.New(opt)
	if seed%2 == 1 {
		witness.Serve(c.World)
	}
	c.Ledger.Store.Lax = lax
	return suffer(seed, c)
}

// A storage that refuses lower epochs accepts each message of an entity once and in order,
// however late writes land, and refuses no owner for good, also where a minority may
// survive.
// covers I1, I20.
func TestAStoreWithEpochsIsWrittenInOrder(t *testing.T) {
	first, n := seeds(t, few)
	var sum simulation.Writes
	for seed := first; seed < first+n; seed++ {
		c, err := written(seed, false)
		if err != nil {
			t.Fatalf("%v\nreplay: QUORATE_SEED=%d go test -run TestAStoreWithEpochsIsWrittenInOrder ./simulation", err, seed)
		}
		w := c.Ledger.Counts().Writes
		sum.Claims, sum.Accepted, sum.Refused = sum.Claims+w.Claims, sum.Accepted+w.Accepted, sum.Refused+w.Refused
	}
	require.NotZero(t, sum.Refused, "late writes of owners that were replaced")
	t.Logf("%d seeds: %+v", n, sum)
}

// Without epochs the same worlds write out of order: the check finds what it is for.
func TestAStoreWithoutEpochsIsFoundOut(t *testing.T) {
	for seed := range uint64(30) {
		if _, err := written(seed, true); err != nil {
			require.ErrorContains(t, err, "I20: the store accepts message")
			return
		}
	}
	require.Fail(t, "the seeds are green with a store that accepts everything")
}
