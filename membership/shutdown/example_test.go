// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package shutdown_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/quorate/quorate/membership/shutdown"
)

// A program without a node ends its server before its store.
func Example() {
	end, err := shutdown.New(20*time.Second, slog.New(slog.DiscardHandler), shutdown.Phases(20*time.Second)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, task := range []struct{ phase, name string }{{shutdown.Close, "store"}, {shutdown.Serve, "server"}} {
		if _, err := end.Add(task.phase, task.name, func(context.Context) error {
			fmt.Println(task.name, "ends")
			return nil
		}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(end.Run(context.Background(), "SIGTERM").Err())
	// Output:
	// server ends
	// store ends
	// <nil>
}
