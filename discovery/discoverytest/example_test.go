// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package discoverytest_test

import (
	"fmt"
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

// With a source that the test controls the suite checks more: this is the body of
// func TestContract(t *testing.T). The configured list never fails and never waits.
func ExampleTestSource() {
	t := new(testing.T) // The parameter of the test.
	discoverytest.TestSource(t, discoverytest.Source{
		Holding: func(tb testing.TB, contactPoints int) discovery.Discovery {
			tb.Helper()
			var endpoints []string
			for i := range contactPoints {
				endpoints = append(endpoints, fmt.Sprintf("node-%d:7946", i))
			}
			found, err := discovery.NewStatic(endpoints)
			if err != nil {
				tb.Fatal(err)
			}
			return found
		},
		Most: discovery.MaxTargets,
	})
}
