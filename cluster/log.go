// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/machine/meter"
)

// The section log makes the logger of the node out of that of the program: with another handler
// if it names a format, and behind a level that a reload changes ([logging]).

// The texts of [LogConfig] that leave a setting to the program.
const logByProgram = "program"

// LogConfig says what the node logs, and in which form. It is about the node alone: the program logs as it does.
type LogConfig struct {
	// Level is the least level of the lines of the node. "program", the default: the logger of the program decides, or
	// with a format of its own the node logs from "info" on. A logger of the program that leaves out a level does so
	// whatever is set here; with a format every level can be had.
	Level string `koanf:"level" oneof:"program|debug|info|warn|error" reload:"yes"`

	// Format has the node write its lines to standard error by itself: as "text", key=value, or as "json", an object in
	// each line. "program", the default: by the logger of the program, which is the one of [WithLogger]. A program that
	// gives a logger keeps it, and refuses another format.
	Format string `koanf:"format" oneof:"program|text|json"`
}

// defaultLog leaves everything to the program.
func defaultLog() LogConfig { return LogConfig{Level: logByProgram, Format: logByProgram} }

// logFormats returns what makes the handler of each format.
func logFormats() map[string]func(io.Writer, *slog.HandlerOptions) slog.Handler {
	return map[string]func(io.Writer, *slog.HandlerOptions) slog.Handler{
		"text": func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) },
		"json": func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) },
	}
}

// Validate reports every fault.
func (c LogConfig) Validate() error {
	var faults field.Faults
	known := slices.Contains([]string{logByProgram, "debug", "info", "warn", "error"}, c.Level)
	faults.Refuse(!known, "level", "%q is neither program, debug, info, warn nor error", c.Level)
	faults.Refuse(c.Format != logByProgram && logFormats()[c.Format] == nil, "format", "%q is neither program, text nor json", c.Format)
	return faults.Err()
}

// everything is below every level.
const everything = slog.Level(-1 << 30)

// level returns the least level. The configuration is valid.
func (c LogConfig) level() (level slog.Level) {
	switch {
	case c.Level != logByProgram:
		_ = level.UnmarshalText([]byte(c.Level)) // It is one that slog knows.
	case c.Format == logByProgram:
		level = everything
	}
	return level
}

// logging is the logger of a node.
type logging struct {
	level  slog.LevelVar
	output io.Writer // Standard error, except in tests.
}

// open returns the logger that a configuration asks for. Own says that the program has given one.
func (l *logging) open(c LogConfig, program *slog.Logger, own bool) (*slog.Logger, error) {
	l.set(c)
	handler := program.Handler()
	if c.Format != logByProgram {
		if own {
			return nil, field.Errorf("log.format", "is %q, and this program logs by a logger of its own: leave it at %q", c.Format, logByProgram)
		}
		output := l.output
		if output == nil {
			output = os.Stderr
		}
		handler = traceHandler{logFormats()[c.Format](output, &slog.HandlerOptions{Level: everything})}
	}
	return slog.New(levelHandler{handler, &l.level}), nil
}

// set changes the level. The configuration is valid.
func (l *logging) set(c LogConfig) { l.level.Set(c.level()) }

// levelHandler is a handler that leaves out what is below a level.
type levelHandler struct {
	slog.Handler

	least *slog.LevelVar
}

// Enabled reports whether a level is logged.
func (h levelHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.least.Level() && h.Handler.Enabled(ctx, level)
}

// WithAttrs returns a handler with attributes.
func (h levelHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelHandler{h.Handler.WithAttrs(attrs), h.least}
}

// WithGroup returns a handler with a group.
func (h levelHandler) WithGroup(name string) slog.Handler {
	return levelHandler{h.Handler.WithGroup(name), h.least}
}

// traceHandler is a handler that adds the ids of the trace and the span to which a line belongs. They are attributes
// like others: where a logger has a group they are in it.
type traceHandler struct{ slog.Handler }

// Handle writes a record.
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(meter.TraceIDs(ctx)...)
	return h.Handler.Handle(ctx, r)
}

// WithAttrs returns a handler with attributes.
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup returns a handler with a group.
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}

// prepareLog takes another level over.
func prepareLog(_ context.Context, n *Node, _, to configuration) (Prepared, error) {
	return Prepared{Commit: func() { n.log.set(to.Log) }}, nil
}
