// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest_test

import (
	"testing"

	"github.com/quorate/quorate/discovery"
	"github.com/quorate/quorate/discovery/discoverytest"
)

// A method of your own passes the suite in a test: this is the body of
// func TestContract(t *testing.T).
func ExampleTestDiscovery() {
	t := new(testing.T) // The parameter of the test.
	discoverytest.TestDiscovery(t, func(tb testing.TB) discovery.Discovery {
		tb.Helper()
		found, err := discovery.NewStatic([]string{"10.0.0.1:7946", "10.0.0.2:7946"})
		if err != nil {
			tb.Fatal(err)
		}
		return found
	})
}
