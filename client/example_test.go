// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/client"
)

// A client says how each request ends, also where no node is there.
func Example() {
	cfg := client.Default()
	cfg.Addresses = []string{"127.0.0.1:1"}
	c, err := client.Open(cfg, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }() // It returns nil.
	//quorate:realtime It is meant to end.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	err = c.Tell(ctx, "accounts", "acct-42", []byte("message"))
	fmt.Println(err != nil)
	// Output: true
}
