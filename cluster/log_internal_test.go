// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
)

// The logger of the program stays what it is; a level leaves out what is below it, of derived loggers too, and
// changes while they are used.
func TestALevelIsPutBeforeTheLoggerOfTheProgram(t *testing.T) {
	var out bytes.Buffer
	program := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l, cfg := &logging{output: &bytes.Buffer{}}, defaultLog()
	log, err := l.open(cfg, program, true)
	require.NoError(t, err)
	of := log.With("node", "one").WithGroup("of")
	said := func() []string {
		out.Reset()
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
			of.Log(t.Context(), level, "said", "by", "node")
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	require.Len(t, said(), 4)
	require.Contains(t, said()[0], "level=DEBUG msg=said node=one of.by=node")
	for level, lines := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1, logByProgram: 4} {
		cfg.Level = level
		require.NoError(t, cfg.Validate())
		l.set(cfg)
		require.Len(t, said(), lines, level)
	}
}

// With a format the node has every level, whatever the logger of the program leaves out.
func TestANodeLogsInAFormatOfItsOwn(t *testing.T) {
	var out bytes.Buffer
	program := slog.New(slog.DiscardHandler)
	l := &logging{output: &out}
	_, err := l.open(LogConfig{Level: logByProgram, Format: "json"}, program, true)
	require.ErrorContains(t, err, `log.format: is "json", and this program logs by a logger of its own`)
	log, err := l.open(LogConfig{Level: logByProgram, Format: "json"}, program, false)
	require.NoError(t, err)
	log.Debug("left out")
	log.Info("said", "by", "node")
	var line map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	require.Equal(t, "said", line["msg"])
	require.Equal(t, "node", line["by"])
	l.set(LogConfig{Level: "debug", Format: "json"})
	log.Debug("said")
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
	out.Reset()
	log, err = l.open(LogConfig{Level: "warn", Format: "text"}, program, false)
	require.NoError(t, err)
	log.Info("left out")
	log.Warn("said")
	require.Contains(t, out.String(), "level=WARN msg=said\n")
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
}

// In a format of its own the node says to which trace a line belongs.
func TestLinesHaveTheirTrace(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		var out bytes.Buffer
		l := &logging{output: &out}
		log, err := l.open(LogConfig{Level: logByProgram, Format: format}, slog.Default(), false)
		require.NoError(t, err)
		span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
		log.With("node", "one").InfoContext(trace.ContextWithSpanContext(t.Context(), span), "said")
		for _, id := range []string{"trace_id", span.TraceID().String(), "span_id", span.SpanID().String()} {
			require.Contains(t, out.String(), id)
		}
		out.Reset()
		log.InfoContext(t.Context(), "said")
		require.NotContains(t, out.String(), "trace_id")
	}
}

func TestFaultsOfTheSectionLog(t *testing.T) {
	err := LogConfig{Level: "loud", Format: "xml"}.Validate()
	require.ErrorContains(t, err, `level: "loud" is neither program, debug, info, warn nor error`)
	require.ErrorContains(t, err, `format: "xml" is neither program, text nor json`)
	require.Error(t, LogConfig{Level: "info+2", Format: "text"}.Validate())
}
