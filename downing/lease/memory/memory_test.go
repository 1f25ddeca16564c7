// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/downing/lease/leasetest"
	"github.com/quorate/quorate/downing/lease/memory"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	leasetest.Test(t, leasetest.Place{
		TTL: 30 * time.Second,
		New: func(testing.TB) leasetest.Server {
			s := memory.New()
			return leasetest.Server{
				Open: func(testing.TB) lease.Store { return s },
				Cut: func(cut bool) {
					if cut {
						s.Fail(errors.New("down"))
					} else {
						s.Fail(nil)
					}
				},
			}
		},
		Run: func(t *testing.T, name string, part func(t *testing.T)) {
			t.Helper()
			t.Run(name, func(t *testing.T) { synctest.Test(t, part) })
		},
	})
}
