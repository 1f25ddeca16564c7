// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
)

// Of what others cause there are a few lines in a minute, and then how many were left out; each text counts by itself,
// also through loggers that were made of the limited one.
func TestALimitedLogHasFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := machine.LimitLog(slog.New(slog.NewTextHandler(&text, nil)))
		require.Same(t, log, machine.LimitLog(log))
		for range 1000 {
			log.With("node", 1).Warn("message dropped", "from", "n2")
			log.Error("message dropped")
		}
		log.Warn("another")
		log.Debug("not enabled")
		require.Equal(t, 8, strings.Count(text.String(), "level=WARN msg=\"message dropped\" node=1 from=n2\n"))
		require.Equal(t, 17, strings.Count(text.String(), "\n"))
		text.Reset()
		<-time.After(time.Minute)
		log.Warn("message dropped")
		log.Warn("message dropped")
		require.Equal(t, 1, strings.Count(text.String(), "omitted=992"))
		require.Equal(t, 2, strings.Count(text.String(), "\n"))
	})
}

// Texts that are not constants have a bound together.
func TestALimitedLogIsBoundedOverAllTexts(t *testing.T) {
	var text bytes.Buffer
	log := machine.LimitLog(slog.New(slog.NewTextHandler(&text, nil)))
	for i := range 10_000 {
		log.Warn(fmt.Sprint("text ", i))
	}
	require.LessOrEqual(t, strings.Count(text.String(), "\n"), 256+8)
}

// A line about a subject is written once in a minute, those of a few of its variants each, whatever is said about
// others; for debugging all are.
func TestALimitedLogHasALineAboutEachSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := machine.LimitLog(slog.New(slog.NewTextHandler(&text, nil)))
		lines := func() int { defer text.Reset(); return strings.Count(text.String(), "\n") }
		for i := range 1000 {
			log.WarnContext(machine.About(t.Context(), "", "peer", "n1"), "refused")
			log.WarnContext(machine.About(t.Context(), fmt.Sprint(i), "peer", "n2"), "refused")
			log.WarnContext(machine.About(t.Context(), "", "peern", "3"), "refused")
		}
		require.Equal(t, 1+8+1, lines())
		<-time.After(time.Minute)
		log.WarnContext(machine.About(t.Context(), "", "peer", "n1"), "refused")
		log.Warn("refused")
		require.Equal(t, 2, lines())
		all := machine.LimitLog(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
		for range 10 {
			all.InfoContext(machine.About(t.Context(), "", "peer", "n1"), "refused")
		}
		require.Equal(t, 1, strings.Count(text.String(), "level=INFO"))
		require.Equal(t, 9, strings.Count(text.String(), "level=DEBUG"))
	})
}
