// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// lineBytesMax is the longest line that is logged whole. What is beyond is
	// left out, and the record says how much.
	lineBytesMax = 16 << 10
	// attributesMax is how many keys of one record are taken over.
	attributesMax = 64
	// Lines are logged at most linesPerSecond, after a burst of linesBurst. A
	// plugin that talks without pause must not fill the disk of its node. What is
	// left out is counted, and the count is logged.
	linesPerSecond = 100
	linesBurst     = 1000
	// tailBytes is how much of the latest output is kept for errors.
	tailBytes = 512
)

// output logs what a process prints, line by line. Lines may be records of hclog,
// as package sdk writes them; others are logged as they are.
type output struct {
	log    *slog.Logger
	stream string

	mu      sync.Mutex // Guards what follows: one pipe is read by one goroutine, but errors quote the tail.
	line    []byte
	cut     int // Bytes of the present line that are left out.
	panicky bool
	tail    []byte

	tokens  float64
	at      time.Time
	skipped int // Lines left out since the last that was logged.
}

func newOutput(log *slog.Logger, stream string) *output {
	return &output{log: log, stream: stream, tokens: linesBurst}
}

// Write takes a piece of the stream. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(p)
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		room := min(lineBytesMax-len(o.line), len(piece))
		o.line = append(o.line, piece[:room]...)
		o.cut += len(piece) - room
		if ended {
			o.flush()
		}
		rest = after
	}
	return len(p), nil
}

// Close logs the last line and what was left out.
func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.flush()
	}
	o.confess()
	return nil
}

// Tail returns the latest output, for errors.
func (o *output) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.tail)
}

func (o *output) keep(p []byte) {
	p = p[max(0, len(p)-tailBytes):]
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - tailBytes; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
}

// flush logs the present line.
func (o *output) flush() {
	line, cut := o.line, o.cut
	o.line, o.cut = o.line[:0], 0
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	if !o.permitted() {
		o.skipped++
		return
	}
	o.confess()
	level, message, attrs := o.parse(line)
	if cut > 0 {
		attrs = append(attrs, slog.Int("bytes_left_out", cut))
	}
	o.log.LogAttrs(context.Background(), level, message, attrs...)
}

// confess logs how many lines were left out.
func (o *output) confess() {
	if o.skipped > 0 {
		o.log.LogAttrs(context.Background(), slog.LevelWarn, "the plugin printed more than is logged",
			slog.String("stream", o.stream), slog.Int("lines_left_out", o.skipped))
		o.skipped = 0
	}
}

// permitted takes a token if there is one.
func (o *output) permitted() bool {
	now := time.Now()
	if !o.at.IsZero() {
		o.tokens = min(linesBurst, o.tokens+now.Sub(o.at).Seconds()*linesPerSecond)
	}
	o.at = now
	if o.tokens < 1 {
		return false
	}
	o.tokens--
	return true
}

// parse turns a line into a record.
func (o *output) parse(line []byte) (slog.Level, string, []slog.Attr) {
	if level, message, attrs, ok := parseRecord(line); ok {
		return level, message, attrs
	}
	text := printable(string(line))
	o.panicky = o.panicky || strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
	level := slog.LevelInfo
	if o.panicky {
		level = slog.LevelError
	}
	return level, text, []slog.Attr{slog.String("stream", o.stream)}
}

// parseRecord reads a record of hclog: a JSON object with @level, @message and
// what the author added. The time is that of the host, which is when the line came.
func parseRecord(line []byte) (slog.Level, string, []slog.Attr, bool) {
	if line[0] != '{' {
		return 0, "", nil, false
	}
	var record map[string]any
	if err := json.Unmarshal(line, &record); err != nil {
		return 0, "", nil, false
	}
	name, ok := record["@level"].(string)
	level, known := levels(name)
	message, text := record["@message"].(string)
	if !ok || !known || !text {
		return 0, "", nil, false
	}
	var attrs []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(record)) {
		switch {
		case key == "@level" || key == "@message" || key == "@timestamp" || key == "@module":
		case len(attrs) < attributesMax:
			attrs = append(attrs, attribute(key, record[key]))
		}
	}
	return level, printable(message), attrs, true
}

// attribute is one key of a record.
func attribute(key string, value any) slog.Attr {
	if text, ok := value.(string); ok {
		value = printable(text)
	}
	return slog.Any(printable(key), value)
}

// levels translates the name of a level of hclog.
func levels(name string) (slog.Level, bool) {
	switch name {
	case "trace":
		return slog.LevelDebug - 4, true
	case "debug":
		return slog.LevelDebug, true
	case "info":
		return slog.LevelInfo, true
	case "warn":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	default:
		return 0, false
	}
}

// printable returns text without what could disturb a terminal or a log.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\t' && r != '\n' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(text, "\r\n"), "?"))
}
