// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machinetest_test

import (
	"testing"

	"github.com/quorate/quorate/machine/machinetest"
)

// A test of what a machine does: this is the body of func TestGoldenTraces(t *testing.T),
// which rewrites the file when a flag of the test says so.
func ExampleTrace() {
	t := new(testing.T) // The parameter of the test.
	rewrite := false    // What the flag says.
	machinetest.Trace(t, "testdata/reminder.txt", rewrite, func() string {
		return "0s armed remind at 1s\n1s published tea\n"
	})
}
