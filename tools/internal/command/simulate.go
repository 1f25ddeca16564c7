// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/quorate/quorate/membership/simulation"
	"github.com/quorate/quorate/membership/simulation/scenario"
)

// Simulate is the command that runs a cluster in virtual time.
type Simulate struct {
	Nodes    int           `default:"7" help:"How many nodes, 1 to 10000."`
	Seed     uint64        `default:"1" help:"What decides everything that is random. Equal seeds print equal bytes."`
	Scenario string        `default:"chaos" help:"What is done to the cluster."`
	Duration time.Duration `help:"For how long it is done, in virtual time; the scenario's own time by default."`
	Trace    string        `type:"path" help:"Write every line of the trace to this file."`
}

// Help is the text after the one-line help.
func (*Simulate) Help() string {
	var names strings.Builder
	for _, s := range scenario.All() {
		fmt.Fprintf(&names, "  %-11s %s\n", s.Name, s.About)
	}
	return `Runs the machines of production on one thread in virtual time, does something to
the cluster, checks the invariants after each step, and requires that the cluster
settles in the end. A run is a function of its arguments. The exit status is 0
when all held and 1 when an invariant broke; the output then ends with the last
lines of the trace and the command that repeats the run.

Scenarios:
` + names.String() + `
Examples:
  quorate simulate -nodes 100 -seed 7
  quorate simulate -scenario split -seed 3 -trace trace.txt
  quorate --json simulate -scenario churn`
}

// Run runs the scenario.
func (c *Simulate) Run(s *Session) error {
	options := scenario.Options{Scenario: c.Scenario, Nodes: c.Nodes, Seed: c.Seed, Duration: c.Duration}
	if c.Trace != "" {
		file, err := os.Create(c.Trace)
		if err != nil {
			return err
		}
		trace := bufio.NewWriter(file)
		options.Trace = trace
		defer func() { err = errors.Join(err, trace.Flush(), file.Close()) }()
	}
	result, err := scenario.Run(options)
	if violation := (*simulation.Failure)(nil); errors.As(err, &violation) {
		return c.violated(s, violation)
	}
	if err != nil {
		return RejectedError{Text: err.Error()}
	}
	if s.JSON {
		return s.PrintJSON(result)
	}
	c.print(s.Stdout, result)
	_, err = fmt.Fprintf(s.Stdout, "%s seed=%d trace=%016x\n", s.Paint(32, "ok"), result.Seed, result.Hash)
	return err
}

// violated reports a broken invariant.
func (c *Simulate) violated(s *Session, violation *simulation.Failure) error {
	if s.JSON {
		if err := s.PrintJSON(map[string]any{"ok": false, "seed": c.Seed, "violation": violation.Error()}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Stdout, "%v\n%s seed=%d\n", violation, s.Paint(31, "FAILED"), c.Seed)
	}
	return errors.New("an invariant does not hold")
}

// print writes the figures of a run.
func (c *Simulate) print(w io.Writer, r scenario.Result) {
	rows := []struct {
		name  string
		value any
	}{
		{"scenario", r.Scenario},
		{"nodes", r.Nodes},
		{"virtual time", r.Virtual.Round(time.Millisecond)},
		{"settled after", r.Settled.Round(time.Millisecond)},
		{"members at the end", r.Members},
		{"steps of machines", r.Stats.Steps},
		{"messages sent", r.Stats.Sent},
		{"messages lost", r.Stats.Lost},
		{"nodes fenced", r.Fences},
		{"lines of the trace", r.Lines},
	}
	for _, row := range rows {
		fmt.Fprintf(w, "%-20s %v\n", row.name, row.value)
	}
}
