// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fdtest_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/fd"
	"github.com/quorate/quorate/fd/fdtest"
)

// Your own detector passes the suite in a test: this is the body of func
// TestContract(t *testing.T).
func ExampleTestDetector() {
	t := new(testing.T) // The parameter of the test.
	fdtest.TestDetector(t, func(tb testing.TB) fd.Detector {
		tb.Helper()
		detector, err := fd.NewDeadline(5 * time.Second)
		if err != nil {
			tb.Fatal(err)
		}
		return detector
	})
}
