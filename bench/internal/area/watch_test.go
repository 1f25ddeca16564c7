// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A cluster is measured once every entity has answered, whichever was the last to do so.
func TestAnEntityThatHasNotAnsweredIsWaitedFor(t *testing.T) {
	now := time.Now()
	for silent := range 3 {
		w := &watches{each: []*watch{{asked: now}, {asked: now}, {asked: now}}}
		require.Equal(t, now, w.summary(false).oldest)
		w.each[silent].asked = time.Time{}
		require.Zero(t, w.summary(false).oldest, "entity %d is silent", silent)
	}
}
