// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/quorate/quorate/machine/meter"
)

// timeFormat is the time format of hclog, whose JSON go-plugin understands.
const timeFormat = "2006-01-02T15:04:05.000000Z07:00"

// newLogHandler returns a handler that writes records in the form that a host
// understands: one JSON object a line, with @timestamp, @level and @message.
func newLogHandler(w io.Writer) slog.Handler {
	return &logHandler{inner: slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hostForm})}
}

// hostForm renames the attributes that every record has, and attributes of the author
// that would be mistaken for them.
func hostForm(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		return slog.String("@timestamp", a.Value.Time().Format(timeFormat))
	case slog.LevelKey:
		level, _ := a.Value.Any().(slog.Level)
		return slog.String("@level", levelName(level))
	case slog.MessageKey:
		return slog.String("@message", a.Value.String())
	default:
		return a
	}
}

// levelName returns the nearest level name that a host knows.
func levelName(l slog.Level) string {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warn"
	case l >= slog.LevelInfo:
		return "info"
	default:
		return "debug"
	}
}

// logHandler keeps an author's attributes apart from those that every record has.
type logHandler struct {
	inner   slog.Handler
	grouped bool
}

var _ slog.Handler = (*logHandler)(nil)

// Enabled is true from debug on: the node filters by its own level.
func (h *logHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.inner.Enabled(ctx, l) }

// Handle writes a record, with the trace and the span of the call if ctx is that of one: a host finds them.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	out := slog.NewRecord(r.Time, r.Level, r.Message, 0)
	out.AddAttrs(meter.TraceIDs(ctx)...)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.apart(a))
		return true
	})
	return h.inner.Handle(ctx, out)
}

// WithAttrs returns a handler that adds the attributes to each record.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	renamed := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		renamed[i] = h.apart(a)
	}
	return &logHandler{h.inner.WithAttrs(renamed), h.grouped}
}

// WithGroup returns a handler that puts later attributes into a group.
func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	if !h.grouped {
		name = apartName(name)
	}
	return &logHandler{h.inner.WithGroup(name), true}
}

// apart renames an attribute at the top level whose name every record uses.
func (h *logHandler) apart(a slog.Attr) slog.Attr {
	if h.grouped {
		return a
	}
	if a.Key == "" && a.Value.Kind() == slog.KindGroup {
		// The attributes of a group without a name are inlined.
		group := a.Value.Group()
		renamed := make([]slog.Attr, len(group))
		for i, one := range group {
			renamed[i] = h.apart(one)
		}
		return slog.Attr{Value: slog.GroupValue(renamed...)}
	}
	a.Key = apartName(a.Key)
	return a
}

func apartName(key string) string {
	switch {
	case key == slog.TimeKey, key == slog.LevelKey, key == slog.MessageKey:
		return key + "_"
	case strings.HasPrefix(key, "@"):
		return "_" + key
	default:
		return key
	}
}
