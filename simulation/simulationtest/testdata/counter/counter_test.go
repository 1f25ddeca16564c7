// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package counter

import (
	"os"
	"testing"
)

func TestNothing(t *testing.T) {}

func TestTheBound(t *testing.T) {
	c := Counter{most: 3}
	for range 5 {
		c.Add()
	}
	if c.n != 3 {
		t.Fatalf("violation at %d in the world of %s", c.n, os.Getenv("COUNTER_WORLD"))
	}
}
