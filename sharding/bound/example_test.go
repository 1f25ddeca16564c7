// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/sharding/bound"
)

// Work may write as long as it holds a permit. The context of a single write looks at the permit too, and has a limit.
func ExampleWithTimeout() {
	held, errGone := true, errors.New("the permit is gone")
	ctx, end := bound.New(context.Background(), func() bool { return held }, errGone)
	defer end(nil)
	write, cancel := bound.WithTimeout(ctx, time.Minute)
	defer cancel()

	fmt.Println(write.Err())
	held = false // Nobody has ended a context.
	fmt.Println(write.Err(), "-", context.Cause(write))
	// Output:
	// <nil>
	// context canceled - the permit is gone
}
