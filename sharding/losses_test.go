// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/protocol"
)

// written keeps what any goroutine has logged.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// take returns the text that was logged since the last call.
func (w *written) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.b.Reset()
	return w.b.String()
}

// Tells that fail are counted by reason. They are logged in one line for each reason, with
// their number: first after lineGather, then every lineEvery, and at the end.
func TestLossesAreCountedAndLoggedOnceAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log written
		l := losses{lines: lines{log: slog.New(slog.NewTextHandler(&log, nil))}}
		lines := func(after time.Duration) []string {
			<-time.After(after)
			synctest.Wait()
			return strings.Split(strings.TrimSpace(log.take()), "\n")
		}
		for range 300 {
			l.note("account", "a", protocol.CodeUnknownOutcome, "")
		}
		l.note("account", "b", protocol.CodeEntityFailed, "no storage")
		require.Equal(t, []string{""}, lines(lineGather/2))
		first := strings.Join(lines(lineGather), "\n")
		require.Equal(t, 1, strings.Count(first, `reason="unknown outcome" count=300 entity=a`), first)
		require.Equal(t, 1, strings.Count(first, `reason="entity failed" count=1 entity=b detail="no storage"`), first)
		for range 10 {
			l.note("account", "a", protocol.CodeUnknownOutcome, "")
			require.Equal(t, []string{""}, lines(time.Second))
		}
		next := lines(lineEvery)
		require.Len(t, next, 1)
		require.Contains(t, next[0], "count=10")
		require.Equal(t, []string{""}, lines(2*lineEvery), "nothing more happened")
		l.note("account", "a", protocol.CodeOverloaded, "")
		l.note("account", "a", protocol.CodeNotDelivered, "")
		l.note("account", "a", protocol.CodeExpired, "")
		l.end()
		require.Len(t, lines(0), 3)
		l.note("account", "a", protocol.CodeOverloaded, "")
		require.Equal(t, []string{""}, lines(2*lineEvery), "it has ended")
		sum := Failures{NotDelivered: 1, UnknownOutcome: 310, EntityFailed: 1, Overloaded: 2, Other: 1}
		require.Equal(t, sum, failuresOf(l.counts()))
		require.EqualValues(t, 315, sum.Total())
	})
}
