// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/tools/soak"
)

// A soak runs worlds until its time is over and prints each violation at once
// ([Soak.Run]); the summary lists worlds, findings and the commands that repeat them.

// Soak is the command that runs fresh seeds over all worlds.
type Soak struct {
	Minutes float64  `default:"1" help:"For how long runs are begun, in minutes of this machine."`
	Runs    int      `help:"Begin no more runs than this; 0 is as many as the time allows."`
	World   []string `placeholder:"NAME" help:"Run this world only; may be given again. All by default."`
	Nodes   int      `help:"How many nodes each run has, 2 to 100; drawn from the seed by default."`
	Seed    uint64   `help:"The first seed, each run has the next one; taken from the clock by default."`
	Jobs    int      `help:"How many runs go beside each other; one a processor by default."`
	Full    bool     `help:"Print the end of the trace of each violation as well."`
}

// Help is the text after the one-line help.
func (*Soak) Help() string {
	var names strings.Builder
	for _, w := range soak.Worlds() {
		fmt.Fprintf(&names, "  %-15s %s\n", w.Name, w.About)
	}
	return `Runs the worlds of the simulations by turns, each run with the next seed and with
2 to 15 nodes, goes on after a violation, and prints for each the command that
repeats it: exactly, but for whole-nodes, which is done again, in an order that the
Go scheduler draws. It ends with a summary: runs, seeds, virtual hours and violations.
The exit status is 0 when all held and 1 when something broke. Ctrl-C ends it with
the summary of what has been run. Progress is shown on the standard error output:
a line that changes on a terminal, a line a minute elsewhere.

Worlds:
` + names.String() + `
Examples:
  quorate soak -minutes 30
  quorate soak -minutes 2 -seed 202611220000
  quorate soak -world pauses -world lanes -minutes 5
  quorate soak -world supervised -nodes 5 -seed 7 -runs 1 -full
  quorate --json soak -minutes 10`
}

// Bounds of the arguments.
const (
	maxSoakNodes   = 100
	maxSoakMinutes = 7 * 24 * 60
)

func (c *Soak) check() error {
	switch {
	case !(c.Minutes > 0 && c.Minutes <= maxSoakMinutes): // This also refuses what is no number.
		return RejectedError{Text: fmt.Sprintf("-minutes %v: want more than 0 and up to %d", c.Minutes, maxSoakMinutes)}
	case c.Nodes != 0 && (c.Nodes < soak.NodesLeast || c.Nodes > maxSoakNodes):
		return RejectedError{Text: fmt.Sprintf("-nodes %d: want %d to %d", c.Nodes, soak.NodesLeast, maxSoakNodes)}
	case c.Runs < 0 || c.Jobs < 0:
		return RejectedError{Text: "-runs and -jobs cannot be negative"}
	}
	return nil
}

// Run runs worlds until the time is over.
func (c *Soak) Run(s *Session) error {
	if err := c.check(); err != nil {
		return err
	}
	worlds, err := soak.Choose(c.World)
	if err != nil {
		return RejectedError{Text: err.Error() + "; see quorate soak -h"}
	}
	began := time.Now()
	plan := soak.Plan{Worlds: worlds, First: c.Seed, Nodes: c.Nodes, Runs: c.Runs, Jobs: c.Jobs}
	if plan.First == 0 {
		plan.First = uint64(began.UnixMilli())
	}
	if plan.Jobs == 0 {
		plan.Jobs = runtime.GOMAXPROCS(0)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.Minutes*float64(time.Minute)))
	defer cancel()
	r := &soakReport{First: plan.First, began: began}
	show := soakProgress(s.Stderr)
	percent := debug.SetGCPercent(gcPercent)
	plan.Run(ctx, func(run soak.Run) {
		r.add(run)
		if run.Err != nil && !s.JSON {
			c.violated(s, run)
		}
		show(r)
	})
	debug.SetGCPercent(percent)
	if terminal(s.Stderr) {
		fmt.Fprint(s.Stderr, clearLine)
	}
	r.Took = time.Since(began).Truncate(time.Millisecond).String()
	return r.print(s)
}

// violated prints a violation at once: a soak may be ended before its summary.
func (c *Soak) violated(s *Session, run soak.Run) {
	if terminal(s.Stderr) {
		fmt.Fprint(s.Stderr, clearLine)
	}
	if c.Full {
		fmt.Fprintln(s.Stdout, run.Err)
	}
	fmt.Fprintf(s.Stdout, "%s world=%s nodes=%d seed=%d: %s\n  repeat: %s\n",
		s.Paint(31, "FAIL"), run.World, run.Nodes, run.Seed, run.Violation(), run.Repeat())
}

// soakReport is the result of a soak.
type soakReport struct {
	OK           bool          `json:"ok"`
	Runs         int           `json:"runs"`
	First        uint64        `json:"first_seed"`
	Last         uint64        `json:"last_seed"`
	VirtualHours float64       `json:"virtual_hours"`
	Took         string        `json:"took"`
	Worlds       []soakedWorld `json:"worlds"`
	Violations   []soakFound   `json:"violations"`

	began time.Time
}

// soakedWorld is the sum of the runs of one world.
type soakedWorld struct {
	World        string  `json:"world"`
	Runs         int     `json:"runs"`
	VirtualHours float64 `json:"virtual_hours"`
	Violations   int     `json:"violations"`
}

// soakFound is one run that found something.
type soakFound struct {
	World     string `json:"world"`
	Nodes     int    `json:"nodes"`
	Seed      uint64 `json:"seed"`
	Violation string `json:"violation,omitempty"`
	Repeat    string `json:"repeat"`
}

func (r *soakReport) add(run soak.Run) {
	r.Runs++
	r.Last = max(r.Last, run.Seed)
	r.VirtualHours += run.Virtual.Hours()
	i := slices.IndexFunc(r.Worlds, func(w soakedWorld) bool { return w.World == run.World })
	if i < 0 {
		i = len(r.Worlds)
		r.Worlds = append(r.Worlds, soakedWorld{World: run.World})
	}
	r.Worlds[i].Runs++
	r.Worlds[i].VirtualHours += run.Virtual.Hours()
	if run.Err != nil {
		r.Worlds[i].Violations++
		r.Violations = append(r.Violations, soakFound{run.World, run.Nodes, run.Seed, run.Violation(), run.Repeat()})
	}
}

// print writes the summary.
func (r *soakReport) print(s *Session) error {
	r.OK = len(r.Violations) == 0
	slices.SortFunc(r.Worlds, func(a, b soakedWorld) int { return strings.Compare(a.World, b.World) })
	if r.Runs == 0 {
		return errors.New("no run was begun")
	}
	if s.JSON {
		if err := s.PrintJSON(r); err != nil {
			return err
		}
		return r.verdict()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n  %-18s %6s %14s %11s\n", "world", "runs", "virtual hours", "violations")
	for _, w := range r.Worlds {
		fmt.Fprintf(&b, "  %-18s %6d %14.1f %11d\n", w.World, w.Runs, w.VirtualHours, w.Violations)
	}
	writeRepeats(&b, r.Violations)
	verdict := s.Paint(32, "ok")
	if !r.OK {
		verdict = s.Paint(31, "FAIL")
	}
	fmt.Fprintf(&b, "\n%s runs=%d seeds=%d..%d virtual-hours=%.1f violations=%d took=%s\n",
		verdict, r.Runs, r.First, r.Last, r.VirtualHours, len(r.Violations), r.Took)
	if _, err := io.WriteString(s.Stdout, b.String()); err != nil {
		return err
	}
	return r.verdict()
}

// writeRepeats lists the commands that repeat runs.
func writeRepeats(b *strings.Builder, found []soakFound) {
	if len(found) == 0 {
		return
	}
	b.WriteString("\nrepeat:\n")
	for _, v := range found {
		fmt.Fprintf(b, "  %s\n", v.Repeat)
	}
}

// verdict is the error of a soak that found something.
func (r *soakReport) verdict() error {
	switch len(r.Violations) {
	case 0:
		return nil
	case 1:
		return errors.New("1 run broke an invariant")
	}
	return fmt.Errorf("%d runs broke an invariant", len(r.Violations))
}

// soakProgress returns a function that shows the progress of a soak: each second on a
// terminal, each minute elsewhere.
func soakProgress(w io.Writer) func(*soakReport) {
	every, format := time.Minute, "soak: %d runs, %.1f virtual hours, %d violations after %v\n"
	if terminal(w) {
		every, format = time.Second, clearLine+"%d runs, %.1f virtual hours, %d violations after %v"
	}
	var last time.Time
	return func(r *soakReport) {
		at := time.Now()
		if last.IsZero() {
			last = r.began
		}
		if at.Sub(last) < every {
			return
		}
		last = at
		fmt.Fprintf(w, format, r.Runs, r.VirtualHours, len(r.Violations), at.Sub(r.began).Truncate(time.Second))
	}
}
