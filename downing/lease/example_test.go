// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"fmt"
	"log"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/memory"
)

func Example() {
	leases := memory.New() // In production a store outside of the process.
	one, err := lease.NewKeeper(leases, lease.Default(), "bank", "10.0.0.1:7946")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = one.Close() }()
	two, err := lease.NewKeeper(leases, lease.Default(), "bank", "10.0.0.2:7946")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = two.Close() }()

	held, err := one.Acquire(context.Background())
	fmt.Println("token:", held.Token, err)
	_, err = two.Acquire(context.Background())
	fmt.Println("refused:", err != nil)

	fmt.Println("given back:", one.Release(context.Background()) == nil)
	held, err = two.Acquire(context.Background())
	fmt.Println("token:", held.Token, err)
	// Output:
	// token: 1 <nil>
	// refused: true
	// given back: true
	// token: 2 <nil>
}
