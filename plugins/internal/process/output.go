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

	"github.com/quorate/quorate/machine/meter"
)

// Output is split into lines ([output.Write], [output.flush]), each within a rate
// ([output.permitted]), and what is left out is counted ([output.confess]). A line that
// is a record of hclog keeps its level and attributes ([output.parse]).

const (
	// maxLineBytes is the longest line that is logged whole. The rest of a longer line is
	// left out, and its record says how much.
	maxLineBytes = 16 << 10
	// maxAttributes is how many keys of one record are logged.
	maxAttributes = 64
	// Lines are logged at most linesPerSecond, after a burst of linesBurst, and bytes at
	// a corresponding rate. A plugin that prints without pause must not fill the disk of
	// its node: it gets 1.4 GB a day. Left-out lines are counted, and the count is
	// logged, at most every confessEvery and at the end.
	linesPerSecond = 100
	linesBurst     = 1000
	bytesPerSecond = 16 << 10
	bytesBurst     = 512 << 10
	confessEvery   = 10 * time.Second
	// The output of a plugin is never the message of a record, which belongs to the node:
	// a reader or a search of the log must not take one for the other.
	messageLogged  = "the plugin logs"
	messagePrinted = "the plugin prints"
	// tailBytes is how much of the latest output is kept for errors.
	tailBytes = 512
)

// output logs what a process prints, line by line. A line may be a record of hclog, as
// package sdk writes them; any other line is logged as text.
type output struct {
	log     *slog.Logger
	stream  string
	leftOut func(bytes int)   // Told of every byte that is not logged; may be nil.
	printed func(line string) // Takes each line in place of the log; nil if the log does.

	mu      sync.Mutex // Guards what follows: one pipe is read by one goroutine, but errors quote the tail.
	line    []byte
	cut     int // Bytes of the present line that were left out.
	panicky bool
	tail    []byte

	lines, bytes budget
	skipped      int       // Lines left out since the log last said how many.
	skippedBytes int       // Bytes of the skipped lines.
	confessed    time.Time // When the log last said how many.
}

// budget bounds a rate.
type budget struct {
	perSecond, burst float64
	left             float64
	at               time.Time
}

// refill adds the budget of the time since the last call.
func (b *budget) refill(now time.Time) {
	if b.at.IsZero() {
		b.left = b.burst
	} else {
		b.left = min(b.burst, b.left+now.Sub(b.at).Seconds()*b.perSecond)
	}
	b.at = now
}

func newOutput(log *slog.Logger, stream string, leftOut func(bytes int), printed func(line string)) *output {
	return &output{
		log: log, stream: stream, leftOut: leftOut, printed: printed,
		lines: budget{perSecond: linesPerSecond, burst: linesBurst}, bytes: budget{perSecond: bytesPerSecond, burst: bytesBurst},
	}
}

// another returns the output for the same stream that reaches the host on another way.
func (o *output) another() *output { return newOutput(o.log, o.stream, o.leftOut, o.printed) }

// Write takes a piece of the stream. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keep(p)
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		room := min(maxLineBytes-len(o.line), len(piece))
		o.line = append(o.line, piece[:room]...)
		o.cut += len(piece) - room
		o.count(len(piece) - room)
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
	o.confess(time.Now())
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
	now := time.Now()
	if !o.permitted(len(line), now) {
		o.skipped++
		o.skippedBytes += len(line) + cut
		o.count(len(line)) // What was cut is counted.
		return
	}
	if now.Sub(o.confessed) >= confessEvery {
		o.confess(now)
	}
	if o.printed != nil {
		o.printed(printable(string(line)))
		return
	}
	ctx, level, message, attrs := o.parse(line)
	if cut > 0 {
		attrs = append(attrs, slog.Int("bytes_left_out", cut))
	}
	o.log.LogAttrs(ctx, level, message, attrs...)
}

// count counts bytes that are not logged.
func (o *output) count(bytes int) {
	if bytes > 0 && o.leftOut != nil {
		o.leftOut(bytes)
	}
}

// confess logs how many lines were left out.
func (o *output) confess(now time.Time) {
	if o.skipped > 0 {
		o.log.LogAttrs(context.Background(), slog.LevelWarn, "the plugin printed more than is logged",
			slog.String("stream", o.stream), slog.Int("lines_left_out", o.skipped), slog.Int("bytes_left_out", o.skippedBytes))
		o.skipped, o.skippedBytes, o.confessed = 0, 0, now
	}
}

// permitted takes the cost of a line from the budget, if there is enough.
func (o *output) permitted(size int, now time.Time) bool {
	o.lines.refill(now)
	o.bytes.refill(now)
	if o.lines.left < 1 || o.bytes.left < float64(size) {
		return false
	}
	o.lines.left--
	o.bytes.left -= float64(size)
	return true
}

// parse turns a line into a record, with the context of the trace that it names.
func (o *output) parse(line []byte) (context.Context, slog.Level, string, []slog.Attr) {
	ctx := context.Background()
	if level, attrs, traced, ok := parseRecord(ctx, line); ok {
		return traced, level, messageLogged, attrs
	}
	text := printable(string(line))
	o.panicky = o.panicky || strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
	level := slog.LevelInfo
	if o.panicky {
		level = slog.LevelError
	}
	return ctx, level, messagePrinted, []slog.Attr{slog.String("text", text), slog.String("stream", o.stream)}
}

// parseRecord reads a record of hclog: a JSON object with @level, @message and the
// author's attributes, which become a group of their own so that none is taken for an
// attribute of the node, but for the ids of a trace: these are in the context. The time of the record is the host's, at
// which the line came.
func parseRecord(ctx context.Context, line []byte) (slog.Level, []slog.Attr, context.Context, bool) {
	if line[0] != '{' {
		return 0, nil, ctx, false
	}
	var record map[string]any
	if err := json.Unmarshal(line, &record); err != nil {
		return 0, nil, ctx, false
	}
	name, ok := record["@level"].(string)
	level, known := levels(name)
	message, text := record["@message"].(string)
	if !ok || !known || !text {
		return 0, nil, ctx, false
	}
	traceID, _ := record[meter.TraceIDKey].(string)
	spanID, _ := record[meter.SpanIDKey].(string)
	traced := meter.WithTraceIDs(ctx, traceID, spanID)
	var attrs []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(record)) {
		switch {
		case key == "@level" || key == "@message" || key == "@timestamp" || key == "@module":
		case traced != ctx && (key == meter.TraceIDKey || key == meter.SpanIDKey):
		case len(attrs) < maxAttributes:
			attrs = append(attrs, attribute(key, record[key]))
		}
	}
	return level, []slog.Attr{slog.String("text", printable(message)), slog.GroupAttrs("with", attrs...)}, traced, true
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

// printable removes from text what could disturb a terminal or a log.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) && r != '\t' && r != '\n' { // Cf: marks that turn the direction of text.
			return ' '
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(text, "\r\n"), "?"))
}
