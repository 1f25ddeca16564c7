// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package alarm_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/downing/lease/internal/alarm"
)

// An alarm rings once, when it was last set to, and not when it was stopped.
func TestAnAlarmRingsWhenItWasLastSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var rang []time.Duration
		ring := func() { rang = append(rang, time.Since(began)) }
		var a alarm.Alarm
		a.Stop()
		a.Set(time.Second, ring)
		a.Set(3*time.Second, ring)
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Second}, rang)
		a.Set(-time.Second, ring)
		synctest.Wait()
		require.Equal(t, []time.Duration{3 * time.Second, 5 * time.Second}, rang)
		a.Set(time.Second, ring)
		a.Stop()
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Len(t, rang, 2)
	})
}
