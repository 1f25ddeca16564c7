// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"
	"testing/synctest"

	"github.com/quorate/quorate/sharding/state/memory"
	"github.com/quorate/quorate/sharding/state/statetest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	statetest.Test(t, statetest.Place{
		New: func(testing.TB) statetest.Server { return statetest.Server{Store: memory.New()} },
		Run: func(t *testing.T, name string, part func(t *testing.T)) {
			t.Helper()
			t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
		},
	})
}
