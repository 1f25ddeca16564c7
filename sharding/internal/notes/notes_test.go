// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package notes

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/logtest"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Tells that fail are counted by reason. They are logged in one line for each reason, with
// their number: first after lineGather, then every lineEvery, and at the end.
func TestLossesAreCountedAndLoggedOnceAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Buffer
		l := NewLosses(slog.New(slog.NewTextHandler(&log, nil)))
		lines := func(after time.Duration) []string {
			<-time.After(after)
			synctest.Wait()
			return strings.Split(strings.TrimSpace(log.Take()), "\n")
		}
		for range 300 {
			l.Note("account", "a", protocol.CodeUnknownOutcome, "")
		}
		l.Note("account", "b", protocol.CodeEntityFailed, "no storage")
		require.Equal(t, []string{""}, lines(lineGather/2))
		first := strings.Join(lines(lineGather), "\n")
		require.Equal(t, 1, strings.Count(first, `reason="unknown outcome" count=300 entity=a`), first)
		require.Equal(t, 1, strings.Count(first, `reason="entity failed" count=1 entity=b detail="no storage"`), first)
		for range 10 {
			l.Note("account", "a", protocol.CodeUnknownOutcome, "")
			require.Equal(t, []string{""}, lines(time.Second))
		}
		next := lines(lineEvery)
		require.Len(t, next, 1)
		require.Contains(t, next[0], "count=10")
		require.Equal(t, []string{""}, lines(2*lineEvery), "nothing more happened")
		l.Note("account", "a", protocol.CodeOverloaded, "")
		l.Note("account", "a", protocol.CodeNotDelivered, "")
		l.Note("account", "a", protocol.CodeExpired, "")
		l.End()
		require.Len(t, lines(0), 3)
		l.Note("account", "a", protocol.CodeOverloaded, "")
		require.Equal(t, []string{""}, lines(2*lineEvery), "it has ended")
		want := [protocol.Codes]uint64{
			protocol.CodeNotDelivered: 1, protocol.CodeUnknownOutcome: 310, protocol.CodeEntityFailed: 1, protocol.CodeOverloaded: 2,
			protocol.CodeExpired: 1,
		}
		require.Equal(t, want, l.Counts())
	})
}
