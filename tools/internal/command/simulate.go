// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/membership/membershipsim/scenario"
	"github.com/quorate/quorate/sharding/shardingsim"
	"github.com/quorate/quorate/simulation"
	"github.com/quorate/quorate/tools/internal/picture"
)

// A run is started from the flags or from a recording ([Simulation.Run]), with its trace
// and its recording going to files or to the output ([create]), and its result printed as
// JSON or as figures. Scenarios of sharding and of distributed data are run by
// [Simulation.runComponent]; every fault of a family is tried by [Simulation.exhaust].

// Simulation is the command that runs a cluster in virtual time.
type Simulation struct {
	Nodes    int           `default:"7" help:"How many nodes, 1 to 10000."`
	Seed     uint64        `default:"1" help:"What decides everything that is random. Equal seeds print equal bytes."`
	Scenario string        `default:"chaos" help:"What is done to the cluster."`
	Duration time.Duration `help:"For how long it is done, in virtual time; the scenario's own time by default."`
	Settle   time.Duration `help:"How long the cluster may take to settle afterwards, in virtual time; 2m by default, and more where its settings ask for more."`
	Trace    string        `type:"path" placeholder:"FILE" help:"Write every line of the trace to this file, - for the standard output."`
	Record   string        `type:"path" placeholder:"FILE" help:"Write what strategies are asked and answer to this file."`
	Replay   string        `type:"path" placeholder:"FILE" help:"Repeat the run of a recording, with its answers: nobody is asked. The arguments are those of the recording."`

	ExhaustiveFlags `embed:""`
}

// Help is the text after the one-line help.
func (*Simulation) Help() string {
	var names strings.Builder
	for _, s := range scenario.All() {
		fmt.Fprintf(&names, "  %-15s %s\n", s.Name, s.About)
	}
	for _, s := range components() {
		fmt.Fprintf(&names, "  %-15s %s\n", s.Name, s.About)
	}
	return `Runs the machines of production on one thread in virtual time, does something to
the cluster, checks the invariants after each step, and requires that the cluster
settles in the end. A run is a function of its arguments; one that was recorded is
repeated with the answers of its strategies instead, and ends where it turns out
another run, as it may after the code has changed. The exit status is 0
when all held and 1 when an invariant broke; the output then ends with the last
lines of the trace and the command that repeats the run. How far a run has come
is shown on the standard error output when that is a terminal.

With -html the run, or the replay of a recording, is also a page: a lane for each
node, with its states, cuts, messages, who hosts what, and the violation if there is
one. It is one file, and can be played.

Scenarios:
` + names.String() + `
Those of sharding and of distributed data take 2 to 100 nodes and have times of their
own. Their disks answer calls and are part of the world, so that there is no recording.

` + exhaustiveHelp() + `
Examples:
  quorate simulate -nodes 100 -seed 7
  quorate simulate -nodes 1000 -scenario steady
  quorate simulate -scenario split -seed 3 -trace trace.txt
  quorate simulate -scenario strategies -seed 5 -record calls.jsonl
  quorate simulate -replay calls.jsonl
  quorate simulate -scenario split -seed 3 -html run.html
  quorate simulate -scenario data-older -nodes 4 -seed 7
  quorate simulate -exhaustive 5 -downing plugins/witness -html table.html
  quorate simulate -exhaustive 4 -family joining -cases needless
  quorate --json simulate -scenario churn`
}

// gcPercent lets the heap of a simulation grow to several times its live size: a
// simulation makes garbage at a high rate and holds little.
const gcPercent = 300

// traceBuffer is the size of the buffer of the trace, in bytes.
const traceBuffer = 1 << 20

// Run runs the scenario.
func (c *Simulation) Run(s *Session) error {
	if s.JSON && c.Trace == "-" {
		return RejectedError{Text: "--json and -trace - both want the standard output: write the trace to a file"}
	}
	if c.Exhaustive != 0 {
		return c.exhaust(s)
	}
	if c.Record != "" && c.Replay != "" {
		return RejectedError{Text: "-record and -replay together: a replay has no answers of its own"}
	}
	options := scenario.Options{
		Scenario: c.Scenario, Nodes: c.Nodes, Seed: c.Seed, Duration: c.Duration, Settle: c.Settle,
	}
	if c.Replay != "" {
		recording, err := os.Open(c.Replay)
		if err != nil {
			return RejectedError{Text: err.Error()}
		}
		defer func() { _ = recording.Close() }() // It was only read.
		options.Replay = recording
	}
	trace, err := create(c.Trace, s.Stdout)
	if err != nil {
		return err
	}
	recording, err := create(c.Record, nil)
	if err != nil {
		return errors.Join(err, trace.close())
	}
	options.Trace, options.Record = trace.writer(), recording.writer()
	var observer *picture.Observer
	if c.HTML != "" {
		observer = picture.New(shardingsim.Hosted)
		options.Begin = observer.Begin
	}
	if terminal(s.Stderr) {
		options.Progress = progress(s.Stderr)
	}
	percent := debug.SetGCPercent(gcPercent)
	result, err := c.run(options)
	debug.SetGCPercent(percent)
	if options.Progress != nil {
		fmt.Fprint(s.Stderr, clearLine)
	}
	if closed := errors.Join(trace.close(), recording.close()); closed != nil {
		return fmt.Errorf("write the trace and the recording: %w", closed)
	}
	violation := (*simulation.Failure)(nil)
	broken := errors.As(err, &violation)
	if observer != nil && observer.Seen() && (err == nil || broken) {
		if err := c.draw(observer, err); err != nil {
			return RejectedError{Text: err.Error()}
		}
	}
	switch {
	case broken:
		return c.violated(s, violation)
	case err != nil:
		return RejectedError{Text: err.Error()}
	case s.JSON:
		return s.PrintJSON(passed(result))
	}
	return c.print(s, result)
}

// draw writes the page of a run.
func (c *Simulation) draw(observer *picture.Observer, err error) error {
	run := observer.Finish(err)
	run.Recorded = c.Replay != ""
	return run.Write(c.HTML)
}

// output is where the trace, or the recording, goes; nil if it goes nowhere.
type output struct {
	buffer *bufio.Writer
	file   *os.File // Nil if the output is the standard output.
}

// create opens the output at a path, nil if the path is empty. "-" means stdout, or a
// file of that name if stdout is nil.
func create(path string, stdout io.Writer) (*output, error) {
	switch {
	case path == "":
		return nil, nil // It goes nowhere.
	case path == "-" && stdout != nil:
		return &output{buffer: bufio.NewWriterSize(stdout, traceBuffer)}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, RejectedError{Text: err.Error()}
	}
	return &output{buffer: bufio.NewWriterSize(file, traceBuffer), file: file}, nil
}

func (t *output) writer() io.Writer {
	if t == nil {
		return nil
	}
	return t.buffer
}

func (t *output) close() error {
	switch {
	case t == nil:
		return nil
	case t.file == nil:
		return t.buffer.Flush()
	}
	return errors.Join(t.buffer.Flush(), t.file.Close())
}

// terminal reports whether w is a terminal.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && Terminal(file)
}

// clearLine makes the line of a terminal empty.
const clearLine = "\r\x1b[K"

// progress returns a function that shows the progress of a run.
func progress(w io.Writer) func(now, of time.Duration) {
	return func(now, of time.Duration) {
		if now > of {
			fmt.Fprintf(w, "%ssettling for %v", clearLine, (now - of).Truncate(time.Second))
			return
		}
		fmt.Fprintf(w, "%s%v of %v simulated", clearLine, now.Truncate(time.Second), of)
	}
}

// runReport is the result of a run in JSON.
type runReport struct {
	OK        bool                    `json:"ok"`
	Scenario  string                  `json:"scenario"`
	Seed      uint64                  `json:"seed"`
	Nodes     int                     `json:"nodes,omitempty"`
	Virtual   string                  `json:"virtual,omitempty"`
	Settled   string                  `json:"settled,omitempty"`
	Members   int                     `json:"members,omitempty"`
	Faults    []simulation.FaultCount `json:"faults,omitempty"`
	Fenced    int                     `json:"fenced,omitempty"`
	Steps     uint64                  `json:"steps,omitempty"`
	Sent      uint64                  `json:"sent,omitempty"`
	Lost      uint64                  `json:"lost,omitempty"`
	Refused   uint64                  `json:"refused,omitempty"`
	Codec     uint64                  `json:"codec,omitempty"`
	Checked   int                     `json:"checked,omitempty"`
	Calls     uint64                  `json:"calls,omitempty"`
	Fates     []simulation.FaultCount `json:"fates,omitempty"`
	Lines     uint64                  `json:"lines,omitempty"`
	Trace     string                  `json:"trace,omitempty"` // Hash over the trace, in hexadecimal.
	Violation string                  `json:"violation,omitempty"`
	Replay    string                  `json:"replay"`
}

func passed(r scenario.Result) runReport {
	return runReport{
		OK: true, Scenario: r.Scenario, Seed: r.Seed, Nodes: r.Nodes,
		Virtual: r.Virtual.String(), Settled: settled(r), Members: r.Members,
		Faults: r.Faults, Fenced: r.Fences, Steps: r.Stats.Steps, Sent: r.Stats.Sent, Lost: r.Stats.Lost,
		Refused: r.Stats.Refused, Codec: r.Stats.Codec, Checked: r.Checked, Calls: r.Stats.Calls, Fates: r.Outcomes, Lines: r.Lines,
		Trace: fmt.Sprintf("%016x", r.Hash), Replay: r.Replay,
	}
}

// settled returns how long the cluster took to settle, or nothing where that is not known.
func settled(r scenario.Result) string {
	if r.Checked == 0 {
		return ""
	}
	return r.Settled.String()
}

// violated reports a broken invariant.
func (c *Simulation) violated(s *Session, violation *simulation.Failure) error {
	if s.JSON {
		report := runReport{
			Scenario: c.Scenario, Seed: violation.Seed, Nodes: c.Nodes, Virtual: violation.At.String(),
			Violation: violation.Err.Error(), Replay: violation.Replay(),
		}
		if c.Replay != "" { // The options were those of the recording.
			report.Scenario, report.Nodes = violation.Scenario, 0
		}
		if err := s.PrintJSON(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Stdout, "%v\n%s seed=%d\n", violation, s.Paint(31, "FAIL"), violation.Seed)
	}
	return errors.New("an invariant does not hold")
}

// print writes the figures of a run, and the verdict as the last line.
func (c *Simulation) print(s *Session, r scenario.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes, scenario %s, seed %d\n\n", r.Nodes, r.Scenario, r.Seed)
	var unknown []string
	if r.Checked == 0 { // The scenarios of components say nothing of these.
		unknown = []string{"settled after", "nodes fenced", "states checked"}
	}
	for _, row := range []struct {
		name  string
		value any
		what  string
	}{
		{"virtual time", r.Virtual.Round(time.Millisecond), ""},
		{"settled after", r.Settled.Round(time.Millisecond), "after the last fault"},
		{"members", r.Members, "at the end, all of them up in one state"},
		{"nodes fenced", r.Fences, "removed, and their work given to others"},
		{"steps", r.Stats.Steps, "of machines"},
		{"states checked", r.Checked, "each on every invariant"},
		{"messages sent", r.Stats.Sent, ""},
		{"messages lost", r.Stats.Lost, "to chance and to cut links"},
		{"messages refused", r.Stats.Refused, "they were for a node that was gone"},
		{"messages encoded", r.Stats.Codec, "and decoded, the others were handed over"},
		{"calls", r.Stats.Calls, "of strategies that may block"},
		{"trace", fmt.Sprintf("%016x", r.Hash), fmt.Sprintf("the hash of its %d lines", r.Lines)},
	} {
		if !slices.Contains(unknown, row.name) {
			fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-17s %-18v %s", row.name, row.value, row.what), " "))
		}
	}
	writeCounts(&b, "faults", r.Faults)
	writeCounts(&b, "fates of calls", r.Outcomes)
	fmt.Fprintf(&b, "\nrepeat: %s\n", r.Replay)
	fmt.Fprintf(&b, "%s seed=%d nodes=%d trace=%016x\n", s.Paint(32, "ok"), r.Seed, r.Nodes, r.Hash)
	_, err := io.WriteString(s.Stdout, b.String())
	return err
}

// writeCounts lists how often each fault struck, or each outcome of a call occurred, in
// lines that fit a terminal.
func writeCounts(b *strings.Builder, what string, counts []simulation.FaultCount) {
	if len(counts) == 0 {
		return
	}
	const indent = "                    "
	fmt.Fprintf(b, "  %-17s", what)
	width := len(indent) - 1
	for i, f := range counts {
		text := fmt.Sprintf("%s %d", f.Name, f.Times)
		if i < len(counts)-1 {
			text += ","
		}
		if width+1+len(text) > columns {
			b.WriteString("\n" + indent[:len(indent)-1])
			width = len(indent) - 1
		}
		b.WriteString(" " + text)
		width += 1 + len(text)
	}
	b.WriteString("\n")
}
