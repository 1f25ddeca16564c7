// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/gossip"
)

// The trace of a run. A line is kept as values; text is made only when someone reads it
// or when the trace is written out. The hash covers the time, nodes, verb and type of each
// line, its note if that is text, and the bytes of messages that went through their codec.

// verb is what a line of the trace says.
type verb uint8

const (
	verbFed verb = iota
	verbReceived
	verbFired
	verbSent
	verbDropped
	verbPublished
	verbDecided
	verbCalled
	verbAnswered
	verbWorld
)

var verbNames = [...]string{ //nolint:gochecknoglobals // A constant table.
	"fed", "received", "fired", "sent", "dropped", "published", "decided", "called", "answered", "world",
}

// line is one line of the trace before it is text: most lines are never read, so that
// text is made only on demand.
type line struct {
	at    int64
	place int32 // The node that the line is about, -1 for the world.
	peer  int32 // The other node, -1 for none.
	verb  verb
	note  any
}

// tracedType is what the trace keeps about the Go type of a note.
type tracedType struct {
	number uint64
	name   string
	plain  bool // Values print the same in every run, since they hold no pointers.
}

// Trace is the record of a run: a hash over every line, the number of lines,
// and the last lines as text.
type Trace struct {
	world *World
	hash  uint64
	count uint64
	ring  []line
	types map[reflect.Type]*tracedType
	out   io.Writer
}

// linesDefault is how many lines a trace keeps by default.
const linesDefault = 400

func newTrace(w *World, lines int, out io.Writer) *Trace {
	if lines <= 0 {
		lines = linesDefault
	}
	return &Trace{world: w, hash: offset64, ring: make([]line, 0, lines), types: make(map[reflect.Type]*tracedType), out: out}
}

const (
	offset64 = 14695981039346656037
	prime64  = 1099511628211
)

func (t *Trace) mix(x uint64) {
	h := (t.hash ^ x) * prime64
	t.hash = h ^ h>>29
}

// bytes mixes an encoded message into the hash.
func (t *Trace) bytes(b []byte) {
	for _, c := range b {
		t.hash = (t.hash ^ uint64(c)) * prime64
	}
	t.mix(uint64(len(b)))
}

func (t *Trace) text(s string) {
	for i := range len(s) {
		t.hash = (t.hash ^ uint64(s[i])) * prime64
	}
	t.mix(uint64(len(s)))
}

func (t *Trace) add(l line) {
	t.mix(uint64(l.at))
	t.mix(uint64(uint32(l.place))<<32 | uint64(uint32(l.peer)))
	switch note := l.note.(type) {
	case string:
		t.mix(uint64(l.verb))
		t.text(note)
	default:
		t.mix(uint64(l.verb) | t.typeOf(l.note).number<<8)
	}
	if len(t.ring) < cap(t.ring) {
		t.ring = append(t.ring, l)
	} else {
		t.ring[t.count%uint64(len(t.ring))] = l
	}
	t.count++
	if t.out != nil {
		_, err := fmt.Fprintln(t.out, t.format(l))
		if err != nil {
			t.world.Fail(fmt.Errorf("simulation: write trace: %w", err))
			t.out = nil
		}
	}
}

func (t *Trace) typeOf(v any) *tracedType {
	typ := reflect.TypeOf(v)
	if s, ok := t.types[typ]; ok {
		return s
	}
	s := &tracedType{number: uint64(len(t.types) + 1), name: "nil"}
	if typ != nil {
		s.name, s.plain = strings.TrimPrefix(typ.String(), "*"), plain(typ)
	}
	t.types[typ] = s
	return s
}

// plain reports whether values of a type print the same in every run.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for field := range t.Fields() {
			if !plain(field.Type) {
				return false
			}
		}
		return true
	case reflect.Array, reflect.Slice:
		return plain(t.Elem())
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		return false
	default:
		return true
	}
}

// Hash returns the hash of all lines so far. Two runs of one seed have equal
// hashes.
func (t *Trace) Hash() uint64 { return t.hash }

// Count returns the number of lines so far.
func (t *Trace) Count() uint64 { return t.count }

// Last returns the last n lines, or as many as are kept, oldest first.
func (t *Trace) Last(n int) []string {
	n = min(n, len(t.ring))
	lines := make([]string, 0, n)
	for i := t.count - uint64(n); i < t.count; i++ {
		lines = append(lines, t.format(t.ring[i%uint64(cap(t.ring))]))
	}
	return lines
}

// maxNote bounds the text of one note.
const maxNote = 240

func (t *Trace) format(l line) string {
	var b strings.Builder
	b.WriteString(strconv.FormatFloat(time.Duration(l.at).Seconds(), 'f', 6, 64))
	if l.place >= 0 {
		b.WriteByte(' ')
		b.WriteString(t.world.places[l.place].address.String())
	}
	b.WriteByte(' ')
	b.WriteString(verbNames[l.verb])
	if l.peer >= 0 {
		b.WriteByte(' ')
		b.WriteString(t.world.places[l.peer].address.String())
	}
	b.WriteByte(' ')
	b.WriteString(t.note(l.note))
	return b.String()
}

func (t *Trace) note(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	s := t.typeOf(v)
	var text string
	switch v := v.(type) {
	case interface{ Describe() string }:
		text = strings.ReplaceAll(v.Describe(), "\n", "; ")
	case gossip.NodeID:
		return v.String()
	case error:
		text = v.Error()
	default:
		if !s.plain {
			return s.name
		}
		text = fmt.Sprintf("%+v", v)
	}
	if len(text) > maxNote {
		text = text[:maxNote] + "…"
	}
	return s.name + " " + text
}
