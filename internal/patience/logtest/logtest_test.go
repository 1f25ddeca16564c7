// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package logtest_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience/logtest"
)

// What several goroutines log is there as whole lines, in a buffer that is read meanwhile.
func TestABufferIsReadWhileOthersWrite(t *testing.T) {
	var log logtest.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 100 {
				l.Info(fmt.Sprint("line of ", i))
			}
		})
	}
	log.Await(t, `msg="line of 3"`)
	all.Wait()
	require.Equal(t, 400, strings.Count(log.String(), "\n"))
	require.Equal(t, 400, strings.Count(log.Take(), "\n"))
	require.Empty(t, log.String(), "it was taken")
	l.Info("again")
	require.Contains(t, log.Take(), "msg=again")
}
