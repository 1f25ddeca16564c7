// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// logBurst is how many lines of one text a limited log has in logPeriod.
	logBurst = 8
	// logPeriod is the time after which the lines of a text are counted anew.
	logPeriod = time.Minute
	// logTexts bounds the texts that are counted by themselves. The others are counted together.
	logTexts = 256
)

// LimitLog returns a logger for lines that others can cause: members, clients, operators, and entities that handle
// their messages. It writes to log, but of each text and level 8 lines in a minute at most. The next line after that
// says by the attribute "omitted" how many were left out. Lines for debugging are all written. Texts are to be
// constants, and what differs from line to line attributes: a text that holds what others have said would be counted by
// itself.
func LimitLog(log *slog.Logger) *slog.Logger {
	if _, is := log.Handler().(*limitedHandler); is {
		return log
	}
	return slog.New(&limitedHandler{log.Handler(), new(logCounts)})
}

// limitedHandler passes on what is within the limits.
type limitedHandler struct {
	slog.Handler

	counts *logCounts // Shared with the handlers that were made of this one.
}

// logCounts counts the lines of each text.
type logCounts struct {
	mu    sync.Mutex
	texts map[logText]*logCount
}

type logText struct {
	level slog.Level
	text  string
}

type logCount struct {
	since          time.Time // When the period began.
	lines, omitted uint64
}

// Handle implements [slog.Handler].
func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.Handler.Handle(ctx, r)
	}
	omitted, ok := h.counts.take(logText{r.Level, r.Message}, r.Time)
	if !ok {
		return nil
	}
	if omitted > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Uint64("omitted", omitted))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h *limitedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attrs), h.counts}
}

// WithGroup implements [slog.Handler].
func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.counts}
}

// take counts a line, and reports whether it is written, and how many before it were not.
func (c *logCounts) take(text logText, now time.Time) (omitted uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.texts[text]
	if n == nil {
		if c.texts == nil {
			c.texts = make(map[logText]*logCount)
		}
		if len(c.texts) >= logTexts {
			text = logText{}
		}
		if n = c.texts[text]; n == nil {
			n = &logCount{since: now}
			c.texts[text] = n
		}
	}
	if now.Sub(n.since) >= logPeriod {
		n.since, n.lines = now, 0
	}
	if n.lines++; n.lines > logBurst {
		n.omitted++
		return 0, false
	}
	omitted, n.omitted = n.omitted, 0
	return omitted, true
}
