// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
)

// lines parses what a handler wrote, in the names of slog.
func lines(t *testing.T, text []byte) []map[string]any {
	t.Helper()
	var records []map[string]any
	for line := range bytes.Lines(text) {
		record := map[string]any{}
		require.NoError(t, json.Unmarshal(line, &record))
		records = append(records, record)
	}
	return records
}

// A host parses @timestamp, @level and @message as text, and the time in timeFormat. An
// attribute with one of the names gets another name.
func TestRecordsHaveTheFormThatHostsUnderstand(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(newLogHandler(&out))
	log.Warn("vote refused", "msg", 1, "@message", 2, "level", "x", "nodes", 3, slog.Group("g", "msg", "kept"), slog.Group("", "time", 4))
	log.With("@level", true).WithGroup("@timestamp").Info("grouped", "msg", "kept")
	log.Debug("d")
	log.Log(t.Context(), slog.LevelError+4, "e")
	got := lines(t, out.Bytes())
	_, err := time.Parse(timeFormat, got[0]["@timestamp"].(string))
	require.NoError(t, err)
	for _, record := range got {
		require.IsType(t, "", record["@timestamp"])
		delete(record, "@timestamp")
	}
	require.Equal(t, map[string]any{
		"@level": "warn", "@message": "vote refused", "msg_": 1., "_@message": 2., "level_": "x", "nodes": 3.,
		"g": map[string]any{"msg": "kept"}, "time_": 4.,
	}, got[0])
	require.Equal(t, map[string]any{
		"@level": "info", "@message": "grouped", "_@level": true, "_@timestamp": map[string]any{"msg": "kept"},
	}, got[1])
	require.Equal(t, "debug", got[2]["@level"])
	require.Equal(t, "error", got[3]["@level"])
}

// A line that is logged with the context of a call has the ids of its trace.
func TestRecordsHaveTheTraceOfTheirCall(t *testing.T) {
	var out bytes.Buffer
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	slog.New(newLogHandler(&out)).InfoContext(trace.ContextWithSpanContext(t.Context(), span), "asked")
	got := lines(t, out.Bytes())[0]
	require.Equal(t, span.TraceID().String(), got["trace_id"])
	require.Equal(t, span.SpanID().String(), got["span_id"])
}

// The handler keeps the rules of slog, but for the names of the three fields, and for a
// time of zero, which a host could not parse.
func TestTheHandlerKeepsTheRulesOfSlog(t *testing.T) {
	var out bytes.Buffer
	slogtest.Run(t, func(*testing.T) slog.Handler {
		out.Reset()
		return newLogHandler(&out)
	}, func(t *testing.T) map[string]any {
		t.Helper()
		record := lines(t, out.Bytes())[0]
		for theirs, ours := range map[string]string{"@timestamp": slog.TimeKey, "@level": slog.LevelKey, "@message": slog.MessageKey} {
			if v, ok := record[theirs]; ok {
				record[ours] = v
				delete(record, theirs)
			}
		}
		if t.Name() == "TestTheHandlerKeepsTheRulesOfSlog/zero-time" {
			delete(record, slog.TimeKey)
		}
		return record
	})
}
