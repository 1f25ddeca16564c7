// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package fdtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/fd"
)

// How well a judge judges: first what was measured or made up, a [Trace], then its figures.

// Trace is the answers of one node, which dies in the end.
type Trace struct {
	Name string
	// Answers are when the answers arrived, sorted, after any origin; at least one.
	Answers []time.Duration
	// Death is when the node died: not before the last answer.
	Death time.Duration
}

// Figures are what a judge makes of a trace, within the bounds of silence.
type Figures struct {
	// False is how often the node was marked while it lived, and Wrongly for how long in all.
	False   int           `json:"false_marks"`
	Wrongly time.Duration `json:"wrongly_ns"`
	// Detection is how long after its death the node was marked.
	Detection time.Duration `json:"detection_ns"`
}

// traceTime is how long the nodes of the traces live.
const traceTime = 20 * time.Minute

// Traces makes traces of a node that answers each second: with delays as in a quiet network, with
// delays of an exponential distribution, with one of ten answers lost, and with the pauses of a
// collector or a scheduler, of 1 to 4.5 s. Equal seeds give equal traces.
func Traces(seed uint64) []Trace {
	r := rand.New(rand.NewPCG(seed, 14))
	uniform := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	var paused time.Duration // When the last pause ends.
	return []Trace{
		answering("regular", func(at time.Duration) (time.Duration, bool) { return at + uniform(20*time.Millisecond), true }),
		answering("jitter", func(at time.Duration) (time.Duration, bool) {
			return at + time.Duration(r.ExpFloat64()*float64(150*time.Millisecond)), true
		}),
		answering("lossy", func(at time.Duration) (time.Duration, bool) { return at + uniform(20*time.Millisecond), r.IntN(10) > 0 }),
		answering("pauses", func(at time.Duration) (time.Duration, bool) {
			if at > paused && r.IntN(30) == 0 {
				paused = at + time.Second + uniform(3500*time.Millisecond)
			}
			return max(at, paused) + uniform(20*time.Millisecond), true
		}),
	}
}

// answering makes a trace: draw says when the answer to the heartbeat of a moment arrives, and
// whether it does.
func answering(name string, draw func(at time.Duration) (time.Duration, bool)) Trace {
	t := Trace{Name: name, Death: traceTime}
	for at := interval; at < traceTime; at += interval {
		if when, arrives := draw(at); arrives && when <= t.Death {
			t.Answers = append(t.Answers, when)
		}
	}
	slices.Sort(t.Answers)
	return t
}

// Bounds of a recorded trace: a judge is asked about each second of it, and there may be as many
// answers as seconds.
const (
	maxTrace = 12 * 24 * time.Hour
	maxLines = int(maxTrace / time.Second)
)

// ReadTrace reads a recorded trace: a text with the moment of an answer on each line, in seconds
// after any origin, such as 12.034. The last line is the moment of the death, up to 12 days after
// the first. Empty lines and those that begin with # do not count.
func ReadTrace(name string, r io.Reader) (Trace, error) {
	t := Trace{Name: name}
	lines := bufio.NewScanner(r)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		seconds, err := strconv.ParseFloat(line, 64)
		at := time.Duration(seconds * float64(time.Second))
		switch {
		case err != nil || !(seconds >= 0 && seconds < 1e9):
			return Trace{}, fmt.Errorf("%s, line %d: %q is no number of seconds from 0 to 1e9", name, number, line)
		case len(t.Answers) > 0 && at < t.Answers[len(t.Answers)-1]:
			return Trace{}, fmt.Errorf("%s, line %d: %s is before the moment of the line above", name, number, line)
		case len(t.Answers) > 0 && at-t.Answers[0] > maxTrace:
			return Trace{}, fmt.Errorf("%s, line %d: %s is more than %v after the first line", name, number, line, maxTrace)
		case len(t.Answers) > maxLines:
			return Trace{}, fmt.Errorf("%s, line %d: there are more than %d answers", name, number, maxLines)
		}
		t.Answers = append(t.Answers, at)
	}
	if err := lines.Err(); err != nil {
		return Trace{}, fmt.Errorf("%s: %w", name, err)
	}
	last := len(t.Answers) - 1
	if last < 1 {
		return Trace{}, fmt.Errorf("%s: a trace is the moments of one answer and of the death at least", name)
	}
	t.Answers, t.Death = t.Answers[:last], t.Answers[last]
	return t, nil
}

// errNotMarked says that bounds have no effect, which is a defect of the measurement.
var errNotMarked = errors.New("fdtest: a silent node is not marked at the greatest silence")

// Measure has a judge judge a trace, in a batch each second, and applies the bounds of the
// default configuration to what it says, as a node does. The error is that of the judge, or
// says how an answer breaks the contract.
func Measure(ctx context.Context, j fd.Judge, t Trace) (Figures, error) {
	bounds := fd.Default().Bounds()
	node := fd.Subject{ID: t.Name, Available: true}
	var f Figures
	judged, batches, next, last := true, uint64(0), 0, t.Answers[0]
	for now := last - last%interval + interval; ; now += interval {
		node.Ages = node.Ages[:0:0]
		for ; next < len(t.Answers) && t.Answers[next] <= now; next++ {
			last = t.Answers[next]
			node.Ages = append(node.Ages, now-last)
		}
		batches++
		b := fd.Batch{Number: batches, Subjects: []fd.Subject{node}}
		if batches > 1 {
			b.Elapsed = interval
		}
		v, err := j.Judge(ctx, b)
		if err == nil {
			err = v.Check(b)
		}
		if err != nil {
			return f, fmt.Errorf("%s, batch %d: %w", t.Name, batches, err)
		}
		judged = judged || len(node.Ages) > 0
		for _, c := range v.Changes {
			judged = c.Available
		}
		silence := now - last
		before := node.Available
		node.Available = silence < bounds.MinSilence || silence < bounds.MaxSilence && judged
		switch {
		case node.Available && now > t.Death+bounds.MaxSilence+interval:
			return f, errNotMarked
		case node.Available:
		case now > t.Death:
			f.Detection = now - t.Death
			return f, nil
		default:
			f.Wrongly += interval
			if before {
				f.False++
			}
		}
	}
}
