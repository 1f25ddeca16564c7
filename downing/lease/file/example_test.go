// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package file_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/file"
)

func Example() {
	dir, err := os.MkdirTemp("", "leases") // In production one directory for all processes.
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	leases, err := file.New(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = leases.Close() }()
	keeper, err := lease.NewKeeper(leases, lease.Default(), "bank", "10.0.0.1:7946")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = keeper.Close() }()

	held, err := keeper.Acquire(context.Background())
	fmt.Println(held.Token, err)
	// Output: 1 <nil>
}
