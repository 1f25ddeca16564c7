// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package follow_test

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/discovery/follow"
)

// The source tells one value and then waits; that of a real registry tells each change.
func ExampleNew() {
	set := follow.New(follow.DefaultLimits(), func(ctx context.Context, service string, tell func([]string)) error {
		tell([]string{service + "-1", service + "-2"})
		<-ctx.Done()
		return ctx.Err()
	})
	defer func() { _ = set.Close() }()
	nodes, err := set.Latest(context.Background(), "bank")
	if err != nil {
		panic(err)
	}
	fmt.Println(nodes)
	// Output: [bank-1 bank-2]
}
