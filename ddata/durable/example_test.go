// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"context"
	"fmt"
	"os"

	"github.com/quorate/quorate/ddata/durable"
	"github.com/quorate/quorate/ddata/store"
)

// What was applied is there at the next start.
func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "durable")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	config := durable.Default()
	config.Dir, config.Cluster = dir, "bank"
	for range 2 {
		s, err := durable.Open(ctx, config)
		if err != nil {
			fmt.Println(err)
			return
		}
		_ = s.Load(ctx, "all", func([]byte) error { return nil }, func(r store.Record) error {
			fmt.Printf("start %d: %s is %s\n", s.Starts(), r.Key, r.Value)
			return nil
		})
		err = s.Apply(ctx, []store.Batch{{Group: "all", Put: []store.Record{{Key: "colour", Value: []byte("red")}}}})
		fmt.Println("acknowledged:", err == nil)
		_ = s.Close()
	}
	// Output:
	// acknowledged: true
	// start 2: colour is red
	// acknowledged: true
}
