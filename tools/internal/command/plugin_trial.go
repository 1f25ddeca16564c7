// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quorate/quorate/membership/membershipsim/outcomes"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/page"
	"github.com/quorate/quorate/tools/internal/trial"
	"github.com/quorate/quorate/tools/internal/trial/kittest"
)

// First the command that tries a plugin, with its report for people, as JSON and as a page; then
// the hidden command by which it runs the kit in a process of its own.

// TestPlugin is the command that tries a plugin out before a cluster asks it.
type TestPlugin struct {
	PluginFlags

	Only       []string      `placeholder:"NAME" help:"Only the checks whose names begin so."`
	For        time.Duration `default:"30s" help:"How long simulated clusters run, besides every fault."`
	Seed       uint64        `default:"1" help:"First seed of the simulated clusters."`
	Nodes      int           `default:"5" help:"Nodes of the cluster that suffers every fault, 2 to 6."`
	Partitions int           `default:"10000" help:"Random partitions about which the sides decide, for downing."`
	Calls      int           `default:"100000" help:"Questions after which the memory is compared."`
	Trace      []string      `type:"path" placeholder:"FILE" help:"Recorded answers to heartbeats: a moment in seconds on each line, the last that of the death."`
	HTML       string        `name:"html" type:"path" placeholder:"FILE" help:"Write the report as a page too."`
}

// Help is the text after the one-line help.
func (*TestPlugin) Help() string {
	return `Starts the executable as a node would, and checks:

  start   handshake, settings, one decision
  kit     the contract of its policy, restarts, signals, many callers, memory
  sim     its decisions in simulated clusters: for downing every split, crash
          and edit of a small cluster, random partitions and random faults;
          for allocation, a join decider and discovery nodes that come and go,
          and find each other
  trace   for a failure detector its detection time and false marks, beside
          those of phi-accrual

Each failure has a command that repeats it alone. The exit status is 1 if a check
fails, and 2 if there was no trial. A plugin that asks a service of its own needs
that service. By default a trial takes one to three minutes.

` + pluginFlagsHelp + `

Examples:
  quorate plugin test plugins/zoneaware
  quorate plugin test plugins/witness --settings witness.yaml --html try.html
  quorate plugin test cluster.yaml witness --only kit
  quorate plugin test plugins/quantile --trace rack7.txt --only trace
  quorate --json plugin test plugins/zoneaware --for 5m --seed 1000`
}

// Bounds of what may be asked for.
const (
	maxTrialTime  = 24 * time.Hour
	maxPartitions = 100_000_000
	maxTrialCalls = 100_000_000
)

func (c *TestPlugin) check() error {
	switch {
	case c.For <= 0 || c.For > maxTrialTime:
		return RejectedError{Text: fmt.Sprintf("--for %v: want more than 0s and up to %v", c.For, maxTrialTime)}
	case c.Nodes < 2 || c.Nodes > outcomes.MaxNodes:
		return RejectedError{Text: fmt.Sprintf("--nodes %d: want 2 to %d", c.Nodes, outcomes.MaxNodes)}
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return RejectedError{Text: fmt.Sprintf("--partitions %d: want 1 to %d", c.Partitions, maxPartitions)}
	case c.Calls < 100 || c.Calls > maxTrialCalls:
		return RejectedError{Text: fmt.Sprintf("--calls %d: want 100 to %d", c.Calls, maxTrialCalls)}
	}
	return nil
}

// Run tries the plugin.
func (c *TestPlugin) Run(s *Session) error {
	if err := c.check(); err != nil {
		return err
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	printed := new(host.Output)
	p := trial.Plugin{
		Config: cfg, Printed: printed, Only: c.Only, Nodes: c.Nodes, Partitions: c.Partitions, For: c.For, Seed: c.Seed, Traces: c.Trace,
		Kit: func(policy plugins.Policy, pattern string) []string {
			return append(append([]string{"plugin", "kit"}, c.arguments()...), "--policy="+string(policy), "--parts="+pattern, "--calls="+strconv.Itoa(c.Calls))
		},
		Done: func(done trial.Check) { c.done(s, done) },
	}
	if terminal(s.Stderr) {
		p.Progress = func(text string) { fmt.Fprintf(s.Stderr, "%s%.70s", clearLine, text) }
	}
	report, err := p.Run(ctx)
	if p.Progress != nil {
		fmt.Fprint(s.Stderr, clearLine)
	}
	if errors.Is(err, trial.ErrNotRun) {
		printOutput(s.Stderr, printed)
		return RejectedError{Text: err.Error()}
	}
	if err != nil {
		return err
	}
	return c.report(s, report)
}

// done prints a check.
func (c *TestPlugin) done(s *Session, done trial.Check) {
	if terminal(s.Stderr) {
		fmt.Fprint(s.Stderr, clearLine)
	}
	if s.JSON {
		return
	}
	verdict := s.Paint(32, "ok  ")
	if !done.OK {
		verdict = s.Paint(31, "FAIL")
	}
	fmt.Fprintf(s.Stdout, "%s %-44s %6.1fs\n", verdict, done.Name, done.Seconds)
	for _, text := range append([]string{done.Text}, done.Log...) {
		said(s.Stdout, text)
	}
	if done.Repeat != "" {
		fmt.Fprintf(s.Stdout, "     repeat: %s\n", c.repeat(done)) // In one line, to be copied.
	}
}

// said writes what a check says, below its name.
func said(w io.Writer, text string) {
	const indent = 5
	if text != "" {
		fmt.Fprintf(w, "%*s", indent, "")
		paragraph(w, indent, text)
	}
}

// repeat returns the command that repeats a check, with the flags that it was run with.
func (c *TestPlugin) repeat(done trial.Check) string {
	text := "quorate plugin test " + quoted(c.arguments())
	group, rest, _ := strings.Cut(done.Name, "/")
	switch {
	case group == "kit":
		text += " --calls " + strconv.Itoa(c.Calls)
	case done.Name == "sim/every-fault":
		text += " --nodes " + strconv.Itoa(c.Nodes)
	case group == "trace" && slices.Contains(c.Trace, rest):
		text += " --trace " + rest
	case group == "trace":
		text += " --seed " + strconv.FormatUint(c.Seed, 10)
	}
	return text + " " + done.Repeat
}

// report prints the report, or its summary.
func (c *TestPlugin) report(s *Session, r trial.Report) error {
	for i := range r.Checks {
		if r.Checks[i].Repeat != "" {
			r.Checks[i].Repeat = c.repeat(r.Checks[i])
		}
	}
	if c.HTML != "" {
		if err := writeTrial(c.HTML, r); err != nil {
			return RejectedError{Text: err.Error()}
		}
	}
	failed := 0
	for _, done := range r.Checks {
		if !done.OK {
			failed++
		}
	}
	if s.JSON {
		if err := s.PrintJSON(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(s.Stdout, "\n%s %s, %s, %s\n%s\n", r.Name, r.Version, r.Policy, r.Class, r.SHA256)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(r.Checks))
	}
	if !s.JSON {
		fmt.Fprintf(s.Stdout, "%s %d checks\n", s.Paint(32, "ok"), len(r.Checks))
	}
	return nil
}

//go:embed plugin_trial.html
var trialPage string

// writeTrial writes the report as a page that needs nothing else.
func writeTrial(path string, r trial.Report) error {
	return page.Write(path, trialPage, template.FuncMap{
		"seconds": func(s float64) string { return fmt.Sprintf("%.1f s", s) },
	}, r)
}

// KitPlugin runs the conformance kit in this process, and prints what package testing prints
// for tools. The command [TestPlugin] starts it.
type KitPlugin struct {
	PluginFlags

	Policy string
	Parts  string
	Calls  int
}

// Run runs the kit, and ends the process.
func (c *KitPlugin) Run(*Session) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	cfg.Policy = plugins.Policy(c.Policy)
	return kittest.Run(cfg, c.Calls, c.Parts)
}
