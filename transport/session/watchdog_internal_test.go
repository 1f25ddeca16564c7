// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A watchdog rings within its time after something begins, however often that is said, and not before something
// begins again, but for the longer time of a rest.
func TestAWatchdogRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Second
		w, began := newWatchdog(every), time.Now()
		rang := func(want time.Duration) {
			t.Helper()
			select {
			case <-w.C:
				w.rings()
			case <-time.After(time.Hour):
			}
			require.Equal(t, want, time.Since(began))
			began = time.Now()
		}
		rang(time.Hour)
		w.watch()
		<-time.After(every / 2)
		w.watch()
		rang(every)
		rang(time.Hour)
		w.rest(time.Minute)
		rang(time.Minute)
		w.rest(time.Minute)
		<-time.After(time.Second)
		w.watch()
		rang(2 * time.Second)
		w.watch() // Before the owner has looked: the rest counts no more.
		w.rest(time.Minute)
		rang(every)
	})
}
