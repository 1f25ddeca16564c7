// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// Lines that others can cause are counted: by their texts ([LimitLog], logCounts.take), or, where they are about one of
// many subjects, by that ([About], logCounts.isDue).

const (
	// logBurst is how many lines of one text a limited log has in logPeriod.
	logBurst = 8
	// logPeriod is the time after which the lines of a text are counted anew.
	logPeriod = time.Minute
	// logTexts bounds the texts that are counted by themselves. The others are counted together.
	logTexts = 256
	// logSubjects bounds the remembered subjects. When there are more all are forgotten, which only costs repetitions.
	logSubjects = 1024
)

// LimitLog returns a logger for lines that others can cause: members, clients, operators, and entities that handle
// their messages. It writes to log, but of each text and level 8 lines in a minute at most. The next line after that
// says by the attribute "omitted" how many were left out. Lines for debugging are all written. Texts are to be
// constants, and what differs from line to line attributes: a text that holds what others have said would be counted by
// itself. Lines that are [About] something have a limit of their own.
//
// No other limiter of logs stands beside this one.
func LimitLog(log *slog.Logger) *slog.Logger {
	if _, is := log.Handler().(*limitedHandler); is {
		return log
	}
	return slog.New(&limitedHandler{log.Handler(), new(logCounts)})
}

// About returns a context for a line about one of many subjects, such as a peer that is refused again and again, in one
// of the variants in which that happens. A limited log writes a line about a subject once in a minute for each variant,
// and 8 variants in a minute, since others may have chosen their words. Further lines are written for debugging.
func About(ctx context.Context, variant string, subject ...string) context.Context {
	return context.WithValue(ctx, aboutKey{}, about{strings.Join(subject, "\x00"), variant})
}

type aboutKey struct{}

// about is a subject in one of its variants.
type about struct{ subject, variant string }

// limitedHandler passes on what is within the limits.
type limitedHandler struct {
	slog.Handler

	counts *logCounts // Shared with the handlers that were made of this one.
}

// logCounts counts the lines of each text, and knows which subjects have had lines lately.
type logCounts struct {
	mu       sync.Mutex
	texts    map[logText]*logCount
	subjects map[string]logSubject
}

// logSubject has the variants of a subject that were written, each with the time of its last line. A variant that was
// not written is not remembered either, so that it cannot displace those that were.
type logSubject map[string]time.Time

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
	if of, is := ctx.Value(aboutKey{}).(about); is {
		if !h.counts.isDue(of, r.Time) {
			if r.Level = slog.LevelDebug; !h.Enabled(ctx, r.Level) {
				return nil
			}
		}
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

// isDue reports whether a line about a subject is written, and notes that.
func (c *logCounts) isDue(of about, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := c.subjects[of.subject]
	maps.DeleteFunc(written, func(_ string, at time.Time) bool { return now.Sub(at) >= logPeriod })
	if _, lately := written[of.variant]; lately || len(written) >= logBurst {
		return false
	}
	if written == nil {
		if c.subjects == nil || len(c.subjects) >= logSubjects {
			c.subjects = make(map[string]logSubject)
		}
		written = make(logSubject)
		c.subjects[of.subject] = written
	}
	written[of.variant] = now
	return true
}
