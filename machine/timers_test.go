// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The queue fires the timers that a table of armed timers has, in the order of time,
// and keeps no more than a bounded multiple of the armed ones.
func TestTimerQueueAgreesWithATable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q timerQueue
		model := make(map[timerKey]Instant)
		now := Instant(0)
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			key := timerKey{of: ID(rapid.IntRange(0, 1).Draw(t, "of")), timer: rapid.IntRange(0, 5).Draw(t, "timer")}
			switch rapid.IntRange(0, 3).Draw(t, "op") {
			case 0, 1:
				at := now + Instant(rapid.IntRange(-3, 20).Draw(t, "in"))
				q.arm(key, at)
				model[key] = at
			case 2:
				q.disarm(key)
				delete(model, key)
			default:
				now += Instant(rapid.IntRange(0, 10).Draw(t, "pass"))
				last := Instant(math.MinInt64)
				for {
					fired, ok := q.take(now, q.number)
					if !ok {
						break
					}
					at, armed := model[fired]
					require.True(t, armed, "fires only what is armed")
					require.LessOrEqual(t, at, now)
					require.GreaterOrEqual(t, at, last)
					delete(model, fired)
					last = at
				}
				for _, at := range model {
					require.Greater(t, at, now, "nothing due is left")
				}
			}
			require.LessOrEqual(t, len(q.heap), 2*len(model)+66)
			require.Len(t, q.live, len(model))
		}
	})
}
