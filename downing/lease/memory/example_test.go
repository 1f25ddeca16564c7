// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
)

// A test takes the lease away from its holder, and the store from all.
func Example() {
	leases := memory.New()
	claim := lease.Claim{Name: "bank", Owner: "a", TTL: 20 * time.Second}
	first, err := leases.Take(context.Background(), claim)
	fmt.Println(first.Granted, first.Token, err)

	leases.Steal("bank", "b", time.Minute)
	second, err := leases.Take(context.Background(), claim)
	fmt.Println(second.Granted, second.Owner, err)

	leases.Fail(errors.New("the store is down"))
	_, err = leases.Take(context.Background(), claim)
	fmt.Println(err)
	// Output:
	// true 1 <nil>
	// false b <nil>
	// the store is down
}
