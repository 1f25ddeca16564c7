// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
)

// library is the logger of go-plugin, which logs much about itself. All of it is at level
// debug, since the launcher logs what matters.
type library struct {
	log     *slog.Logger
	name    string
	implied []any
}

var _ hclog.Logger = (*library)(nil)

func (l *library) Log(_ hclog.Level, msg string, args ...any) {
	l.log.Log(context.Background(), slog.LevelDebug, "go-plugin: "+msg, append(slices.Clip(l.implied), args...)...)
}

func (l *library) Trace(string, ...any)          {} // Frames and buffers: of no use here.
func (l *library) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l *library) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l *library) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l *library) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l *library) IsTrace() bool { return false }
func (l *library) IsDebug() bool { return l.log.Enabled(context.Background(), slog.LevelDebug) }
func (l *library) IsInfo() bool  { return l.IsDebug() }
func (l *library) IsWarn() bool  { return l.IsDebug() }
func (l *library) IsError() bool { return l.IsDebug() }

func (l *library) ImpliedArgs() []any { return l.implied }
func (l *library) Name() string       { return l.name }

func (l *library) With(args ...any) hclog.Logger {
	return &library{log: l.log, name: l.name, implied: append(slices.Clip(l.implied), args...)}
}

func (l *library) Named(name string) hclog.Logger {
	return &library{log: l.log, name: name, implied: l.implied}
}

func (l *library) ResetNamed(name string) hclog.Logger { return l.Named(name) }

func (l *library) SetLevel(hclog.Level)  {} // The level is that of the handler.
func (l *library) GetLevel() hclog.Level { return hclog.Debug }

func (l *library) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.log.Handler(), slog.LevelDebug)
}

func (l *library) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
