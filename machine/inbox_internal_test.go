// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An inbox is a queue up to its bound, signals while and only while inputs wait, and has no
// more room than it needs.
func TestAnInboxIsABoundedQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 300).Draw(t, "most")
		b := newInbox(most)
		var want []*entry
		var room <-chan struct{}
		t.Repeat(map[string]func(*rapid.T){
			"offer": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "inputs") {
					e := new(entry)
					require.Equal(t, len(want) < most, b.offer(e))
					if len(want) < most {
						want = append(want, e)
					}
				}
			},
			"wait": func(t *rapid.T) {
				e := new(entry)
				if len(want) < most {
					require.Nil(t, b.offerOrWait(e))
					want = append(want, e)
					return
				}
				room = b.offerOrWait(e)
				require.False(t, isReady(room))
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 100).Draw(t, "inputs") {
					e := b.take()
					if len(want) == 0 {
						require.Nil(t, e)
						continue
					}
					require.Same(t, want[0], e)
					want = slices.Delete(want, 0, 1)
					require.True(t, room == nil || isReady(room))
				}
			},
			"signal": func(t *rapid.T) {
				require.Equal(t, len(want) > 0, isReady(b.ready))
				b.goOn()
				require.Len(t, b.ready, min(1, len(want)))
			},
			"": func(t *rapid.T) {
				require.Equal(t, len(want), b.waiting())
				require.LessOrEqual(t, len(b.ring), most)
				if len(want) == 0 {
					require.LessOrEqual(t, len(b.ring), inboxKept)
				}
			},
		})
	})
}

func isReady(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
