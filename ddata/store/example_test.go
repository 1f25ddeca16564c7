// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/quorate/quorate/ddata/store"
)

// A store on a disk in memory is written, and read again after a crash.
func ExampleMemory() {
	ctx := context.Background()
	disk := store.NewMemory(rand.NewPCG(1, 2))
	s, err := disk.Open("bank")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = s.Apply(ctx, []store.Batch{{Group: "all", Put: []store.Record{{Key: "colour", Value: []byte("red")}}}})
	fmt.Println("acknowledged:", err == nil)
	disk.Crash()
	s, err = disk.Open("bank")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	_ = s.Load(ctx, "all", func([]byte) error { return nil }, func(r store.Record) error {
		fmt.Printf("start %d: %s is %s\n", s.Starts(), r.Key, r.Value)
		return nil
	})
	// Output:
	// acknowledged: true
	// start 2: colour is red
}
