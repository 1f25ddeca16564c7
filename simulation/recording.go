// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/machine"
)

// Recordings of strategy calls. First the lines of a recording and how a run writes
// them; then how a recording is read and checked; then the replay, in which each call,
// each second and the end must agree with the next line. A difference is a
// [DivergenceError].

// ErrRecording is matched by every error about content that is not a recording.
var ErrRecording = errors.New("simulation: not a recording")

// recordingLine is one line of a recording, in JSON: a call with its answer, a
// checkpoint in each second, or the end of the run. Lines are in the order of the
// world's time.
type recordingLine struct {
	// At is the world time in nanoseconds since the start; Trace is the hash, and
	// Lines the number, of the trace's lines at that time.
	At    int64  `json:"at"`
	Trace string `json:"trace"`
	Lines uint64 `json:"lines"`

	Call *recordedCall `json:"call,omitempty"`
	End  *recordedEnd  `json:"end,omitempty"`
}

// recordedCall is a call and its outcome.
type recordedCall struct {
	Node      string          `json:"node"` // The address of the calling node.
	Life      int32           `json:"life"` // The incarnation at that address, from 1.
	Component string          `json:"component"`
	Port      string          `json:"port"`
	Key       string          `json:"key,omitempty"`
	ID        uint64          `json:"id"`
	Request   string          `json:"request"` // The digest of the request.
	Outcome   string          `json:"fate"`
	Answer    int64           `json:"answer"` // World time at which the answer is fed, in nanoseconds.
	Type      string          `json:"type,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`
	Is        string          `json:"is,omitempty"` // Name of the error in errorsByName; empty for other errors.
	Error     *string         `json:"error,omitempty"`
}

// recordedEnd says how the run ended.
type recordedEnd struct {
	Violation string `json:"violation,omitempty"`
}

// asked returns what identifies the call, without its outcome.
func (c recordedCall) asked() string {
	return fmt.Sprintf("call %d of %s by %s of %s in life %d, request %s", c.ID, callName(c.Port, c.Key), c.Component, c.Node, c.Life, c.Request)
}

// errorsByName are the errors that keep their identity in a recording. Of other errors
// only the text is kept.
func errorsByName() map[string]error {
	return map[string]error{
		"deadline": context.DeadlineExceeded, "busy": machine.ErrBusy,
		"unavailable": ErrUnavailable, "failed": ErrCallFailed,
	}
}

// plainTypes are the types of answers that every recording can hold.
func plainTypes() map[string]reflect.Type {
	types := make(map[string]reflect.Type)
	for _, v := range []any{"", 0, int64(0), uint64(0), 0.0, false} {
		t := reflect.TypeOf(v)
		types[t.String()] = t
	}
	return types
}

// recorder writes a recording. A nil recorder writes nothing.
type recorder struct {
	out   *json.Encoder
	types map[string]reflect.Type
}

func newRecorder(out io.Writer, types map[string]reflect.Type) *recorder {
	if out == nil {
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return &recorder{out: encoder, types: types}
}

// write writes a line with the present time and state of the trace.
func (r *recorder) write(w *World, l recordingLine) error {
	l.At, l.Trace, l.Lines = w.now, hex(w.trace.hash), w.trace.count
	if err := r.out.Encode(l); err != nil {
		return fmt.Errorf("simulation: write recording: %w", err)
	}
	return nil
}

func hex(hash uint64) string { return fmt.Sprintf("%016x", hash) }

// call writes a call and its answer. An answer that would be read back differently is
// an error: a replay with it would be another run.
func (r *recorder) call(w *World, n *Node, a pendingCall, f outcome) error {
	if r == nil {
		return nil
	}
	c := describe(n, a)
	c.Outcome, c.Answer = f.name, f.at
	if err := r.answer(&c, f); err != nil {
		return fmt.Errorf("simulation: an answer of %s cannot be recorded: %w", c.Port, err)
	}
	return r.write(w, recordingLine{Call: &c})
}

func (r *recorder) answer(c *recordedCall, f outcome) error {
	if f.err != nil {
		text := f.err.Error()
		c.Error = &text
		for name, err := range errorsByName() {
			if errors.Is(f.err, err) && text == err.Error() {
				c.Is = name
			}
		}
	}
	if f.result != nil {
		value, err := json.Marshal(f.result)
		if err != nil {
			return err
		}
		c.Type, c.Value = reflect.TypeOf(f.result).String(), value
	}
	back, err := c.outcome(r.types)
	switch {
	case err != nil:
		return err
	case !reflect.DeepEqual(back.result, f.result):
		return fmt.Errorf("%+v is read back as %+v", f.result, back.result)
	}
	return nil
}

// describe returns the recorded form of a call, without its outcome.
func describe(n *Node, a pendingCall) recordedCall {
	return recordedCall{
		Node: n.place.address.String(), Life: n.incarnation, Component: n.group.Components()[a.key.of].Name,
		Port: a.key.port, Key: a.key.key, ID: uint64(a.id), Request: hex(a.digest),
	}
}

// outcome returns the outcome of a recorded call.
func (c *recordedCall) outcome(types map[string]reflect.Type) (outcome, error) {
	f := outcome{name: c.Outcome, at: c.Answer}
	if c.Error != nil {
		f.err = errors.New(*c.Error)
		if known, ok := errorsByName()[c.Is]; ok {
			f.err = known
		}
	}
	if c.Type == "" {
		return f, nil
	}
	t, ok := types[c.Type]
	if !ok {
		return f, fmt.Errorf("answers of type %s are not known", c.Type)
	}
	value := reflect.New(t)
	decoder := json.NewDecoder(bytes.NewReader(c.Value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value.Interface()); err != nil {
		return f, fmt.Errorf("answer of type %s: %w", c.Type, err)
	}
	f.result = value.Elem().Interface()
	return f, nil
}

// maxRecordingLine bounds a line of a recording, in bytes: enough for an answer about
// a hundred thousand shards with a reason for each.
const maxRecordingLine = 64 << 20

// Recording holds the calls of a run with their answers, and the state of its trace at
// each second. It is used for one replay.
type Recording struct {
	lines []recordingLine
	next  int
	since int64 // World time at which recording and replay last agreed.
}

// ReadRecording reads a recording that a world with [Options.Record] has written. Any
// input is possible; an error matches [ErrRecording] unless reading itself has failed.
func ReadRecording(in io.Reader) (*Recording, error) {
	r := &Recording{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecordingLine)
	for lines.Scan() {
		var l recordingLine
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&l); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrRecording, len(r.lines)+1, err)
		}
		if err := r.append(l); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrRecording, len(r.lines)+1, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%w: line %d has more than %d bytes", ErrRecording, len(r.lines)+1, maxRecordingLine)
	case err != nil:
		return nil, err
	case len(r.lines) == 0 || r.lines[len(r.lines)-1].End == nil:
		return nil, fmt.Errorf("%w: it has no end", ErrRecording)
	}
	return r, nil
}

// append checks a line that was read, and adds it.
func (r *Recording) append(l recordingLine) error {
	last := recordingLine{}
	if len(r.lines) > 0 {
		last = r.lines[len(r.lines)-1]
	}
	_, err := strconv.ParseUint(l.Trace, 16, 64)
	switch {
	case err != nil || len(l.Trace) != 16:
		return fmt.Errorf("the hash %q is not one", l.Trace)
	case last.End != nil:
		return errors.New("it is after the end")
	case l.At < last.At || l.Lines < last.Lines:
		return errors.New("it is before the line above it")
	case l.Call != nil && l.Call.Answer < l.At:
		return errors.New("the answer is before the call")
	case l.Call != nil && l.End != nil:
		return errors.New("it is a call and the end")
	}
	r.lines = append(r.lines, l)
	return nil
}

// Calls returns how many calls the recording has.
func (r *Recording) Calls() int {
	calls := 0
	for i := range r.lines {
		if r.lines[i].Call != nil {
			calls++
		}
	}
	return calls
}

// DivergenceError says where a replay differs from its recording. The end of the trace
// is in the [Failure] that it comes with.
type DivergenceError struct {
	// Line is the line of the recording, from 1, and At the world time, at which the
	// replay differs. Since is the time until which they agreed.
	Line      int
	At, Since time.Duration

	// Want is that line of the recording, Got what happens in the replay.
	Want, Got string
}

// Error says where the replay differs, and how.
func (e *DivergenceError) Error() string {
	return fmt.Sprintf("simulation: the replay diverges at %v, having agreed until %v: line %d of the recording has %s; the replay has %s",
		e.At, e.Since, e.Line, e.Want, e.Got)
}

// text describes a line.
func (l *recordingLine) text() string {
	at := fmt.Sprintf("at %v with %d lines of trace %s", time.Duration(l.At), l.Lines, l.Trace)
	switch {
	case l.Call != nil:
		return l.Call.asked() + ", " + at
	case l.End != nil && l.End.Violation != "":
		return "the violation " + strconv.Quote(l.End.Violation) + ", " + at
	case l.End != nil:
		return "the end, " + at
	default:
		return "a checkpoint " + at
	}
}

// agree takes the next line of the recording if it is equal to the replay's line,
// apart from the answer, which the replay's line does not have.
func (r *Recording) agree(w *World, got recordingLine) (*recordingLine, error) {
	got.At, got.Trace, got.Lines = w.now, hex(w.trace.hash), w.trace.count
	want := recordingLine{}
	if r.next < len(r.lines) {
		want = r.lines[r.next]
	}
	if r.next < len(r.lines) && want.text() == got.text() {
		r.next++
		r.since = w.now
		return &r.lines[r.next-1], nil
	}
	e := &DivergenceError{
		Line: r.next + 1, At: w.Now(), Since: time.Duration(r.since), Want: "nothing more", Got: got.text(),
	}
	if r.next < len(r.lines) {
		e.Want = want.text()
	}
	return nil, e
}

// answer returns the recorded outcome of a call.
func (r *Recording) answer(w *World, n *Node, a pendingCall) (outcome, error) {
	c := describe(n, a)
	l, err := r.agree(w, recordingLine{Call: &c})
	if err != nil {
		return outcome{}, err
	}
	f, err := l.Call.outcome(w.strategies.types)
	if err != nil {
		return outcome{}, fmt.Errorf("%w: line %d: %w", ErrRecording, r.next, err)
	}
	return f, nil
}

// checkpoint writes or compares the state of the trace, once in each second of the
// world.
func (w *World) checkpoint() error {
	switch {
	case w.replay != nil:
		_, err := w.replay.agree(w, recordingLine{})
		return err
	case w.record != nil:
		return w.record.write(w, recordingLine{})
	}
	return nil
}

// Conclude ends a recording, or checks that a replay has ended like its recording: at
// the same time with the same trace and the same violation, if any. Without a
// recording and a replay it does nothing. It is called once, after the last Run. The
// error is the violation of the run, or a [*Failure] with a [*DivergenceError].
func (w *World) Conclude() error {
	end := recordingLine{End: &recordedEnd{}}
	diverged := (*DivergenceError)(nil)
	if failure := (*Failure)(nil); errors.As(w.failure, &failure) {
		// A panic has a stack below its first line, and addresses in it.
		end.End.Violation, _, _ = strings.Cut(failure.Err.Error(), "\n")
	}
	switch {
	case w.replay != nil && !errors.As(w.failure, &diverged):
		if _, err := w.replay.agree(w, end); err != nil {
			w.failure = nil // The violation is one of another run than the recorded one.
			w.Fail(err)
		}
	case w.record != nil:
		if err := w.record.write(w, end); err != nil {
			w.Fail(err)
		}
	}
	return w.failure
}
