// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/membership/membershipsim/outcomes"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/page"
)

// What a downing strategy decides, fault by fault: the strategy is a built-in one, or that of
// a plugin ([ExhaustiveFlags.loaded]); the table is printed for people ([printTable]), as JSON, or
// written as a page ([writePage]).

// ExhaustiveFlags are the flags of simulate by which a downing strategy is tried out on every fault
// of a family.
type ExhaustiveFlags struct {
	Exhaustive int            `placeholder:"NODES" help:"Instead of a scenario, run a downing strategy through every fault of each family, on 2 to 6 nodes."`
	Downing    string         `default:"keep-majority" help:"The strategy: a built-in one, or the executable of a plugin."`
	Lease      bool           `help:"Give the nodes a lease store, as lease-majority needs one, and run the families about it too."`
	Settings   string         `type:"path" placeholder:"FILE" help:"For a plugin the file with its settings, YAML or JSON; for a built-in strategy a configuration file whose section downing has the parameters."`
	Role       map[string]int `placeholder:"NAME=NODES" help:"So many of the nodes, the oldest, have this role: for strategies with a parameter role."`
	Family     []string       `placeholder:"NAME" help:"Only these families."`
	Cases      string         `default:"none" enum:"none,needless,all" help:"Print cases with what came of them: none, needless or all."`
	Case       int            `placeholder:"NUMBER" help:"Run this case only, and print what came of it."`
	HTML       string         `name:"html" type:"path" placeholder:"FILE" help:"Write a page too, one file that needs nothing else: the table, or without -exhaustive the run, to be looked at and played."`
}

// exhaustiveHelp is the part of the help about the flags.
func exhaustiveHelp() string {
	names, about := outcomes.Families()
	var families strings.Builder
	for _, name := range names {
		fmt.Fprintf(&families, "  %-15s %s\n", name, about[name])
	}
	return `With -exhaustive, a downing strategy is run through every fault of each family on so
many nodes, with nothing healed, and a table says how often who goes on: the whole
cluster, more than half of its nodes, fewer, or nobody. Two parts that go on are a
violation. A case is NEEDLESS when nobody goes on although a side has a majority of
the members of before the edit that is under way, or of those of after it. Five nodes
have some 5,000 cases and take half a minute, six have 24,000. Built-in strategies:
` + strings.Join(outcomes.BuiltIns(), ", ") + `,
and with -lease ` + outcomes.LeaseMajority + `. The last families are about the lease store and the holder.

Families:
` + families.String()
}

// exhaust runs the cases.
func (c *Simulation) exhaust(s *Session) error {
	if c.Trace != "" && c.Case == 0 {
		return RejectedError{Text: "-trace is for one case: name it by -case"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	strategy, end, err := c.strategy(ctx)
	if err != nil {
		return RejectedError{Text: err.Error()}
	}
	trace, err := create(c.Trace, s.Stdout)
	if err != nil {
		return errors.Join(err, end())
	}
	o := outcomes.Options{Nodes: c.Exhaustive, Strategy: strategy, Families: c.Family, Roles: c.Role, Case: c.Case}
	if trace != nil {
		o.Trace = trace.writer()
	}
	if terminal(s.Stderr) {
		o.Progress = func(done, of int) {
			if done%64 == 0 {
				fmt.Fprintf(s.Stderr, "%s%d of %d cases", clearLine, done, of)
			}
		}
	}
	table, err := outcomes.Run(ctx, o)
	if o.Progress != nil {
		fmt.Fprint(s.Stderr, clearLine)
	}
	if closed := errors.Join(trace.close(), end()); closed != nil {
		return closed
	}
	return c.report(s, table, err)
}

// report prints what came of the cases.
func (c *ExhaustiveFlags) report(s *Session, table outcomes.Table, err error) error {
	var broken *outcomes.CaseError
	switch {
	case errors.Is(err, outcomes.ErrOptions):
		return RejectedError{Text: err.Error()}
	case errors.As(err, &broken):
		return fmt.Errorf("%w\nrepeat: quorate simulate -exhaustive %d -downing %s%s -case %d -trace -", err, c.Exhaustive, c.Downing, c.lease(), broken.Case.Number)
	case err != nil:
		return err
	}
	if c.HTML != "" {
		if err := writePage(c.HTML, table); err != nil {
			return RejectedError{Text: err.Error()}
		}
	}
	if s.JSON {
		return s.PrintJSON(table)
	}
	printTable(s, table)
	for _, o := range table.Outcomes {
		if c.Cases == "all" || c.Case != 0 || c.Cases == "needless" && o.Needless {
			fmt.Fprintf(s.Stdout, "%5d  %-13s %s\n       %s\n", o.Case, o.Family, o.Text, ending(o))
		}
	}
	return nil
}

// lease is the flag of the lease store, where it was given.
func (c *ExhaustiveFlags) lease() string {
	if c.Lease {
		return " -lease"
	}
	return ""
}

// ending says in words who goes on.
func ending(o outcomes.Outcome) string {
	text := "nobody goes on"
	if len(o.Hosts) > 0 {
		text = fmt.Sprintf("%v go on, settled after %v", o.Hosts, o.After.Round(100*time.Millisecond))
	}
	if len(o.Waits) > 0 {
		text += fmt.Sprintf("; %v wait", o.Waits)
	}
	if o.Needless {
		text += " (needless)"
	}
	return text
}

// strategy returns the strategy of a name, or that of a plugin, and a function that ends it.
func (c *ExhaustiveFlags) strategy(ctx context.Context) (s outcomes.Strategy, end func() error, err error) {
	switch {
	case c.Lease && c.Downing != outcomes.LeaseMajority:
		return s, nil, fmt.Errorf("-lease is for %s, and %s asks for no lease", outcomes.LeaseMajority, c.Downing)
	case !c.Lease && c.Downing == outcomes.LeaseMajority:
		return s, nil, fmt.Errorf("%s asks for a lease: add -lease", outcomes.LeaseMajority)
	}
	if c.Lease || slices.Contains(outcomes.BuiltIns(), c.Downing) {
		s, err = c.builtIn()
		return s, func() error { return nil }, err
	}
	if _, err := os.Stat(c.Downing); err != nil {
		return s, nil, fmt.Errorf("%q is neither built in (%s) nor the executable of a plugin: %w",
			c.Downing, strings.Join(outcomes.BuiltIns(), ", "), err)
	}
	return c.loaded(ctx)
}

// builtIn returns a built-in strategy, with the parameters of a configuration file if one is
// given.
func (c *ExhaustiveFlags) builtIn() (outcomes.Strategy, error) {
	cfg := outcomes.DefaultConfig()
	if c.Settings != "" {
		file, err := config.Load(c.Settings)
		if err != nil {
			return outcomes.Strategy{}, err
		}
		cfg.Strategy = c.Downing // The file need not name it.
		if err := file.Decode("downing", &cfg); err != nil {
			return outcomes.Strategy{}, err
		}
	}
	cfg.Strategy = c.Downing
	if c.Lease {
		return outcomes.ByLease(cfg)
	}
	return outcomes.BuiltIn(cfg)
}

// loaded returns the strategy of a plugin, which runs until end is called.
func (c *ExhaustiveFlags) loaded(ctx context.Context) (s outcomes.Strategy, end func() error, err error) {
	cfg := plugins.Default()
	cfg.Unpinned, cfg.Policy = true, plugins.Downing
	if cfg.Path, err = filepath.Abs(c.Downing); err != nil {
		return s, nil, err
	}
	if cfg.Settings, err = readSettings(c.Settings); err != nil {
		return s, nil, err
	}
	p, err := host.Open(ctx, filepath.Base(cfg.Path), cfg)
	if err != nil {
		return s, nil, err
	}
	end = func() error {
		ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
		defer cancel()
		return p.Close(ctx)
	}
	provider, err := p.Downing()
	if err != nil {
		return s, nil, errors.Join(err, end())
	}
	m := p.Manifest()
	return outcomes.Asked(ctx, m.Name, m.Version, provider), end, nil
}

// printTable prints the table in 80 columns.
func printTable(s *Session, t outcomes.Table) {
	name := t.Strategy
	if t.Parameters != "" {
		name += " (" + t.Parameters + ")"
	}
	fmt.Fprintf(s.Stdout, "%s\n%s\n%d nodes, %d cases; who goes on:\n\n", name, promise(t), t.Nodes, len(t.Outcomes))
	fmt.Fprintf(s.Stdout, "  %-13s %6s %6s %8s %8s %6s %6s %8s %7s\n", "", "cases", "whole", "majority", "smaller", "waits", "nobody", "needless", "slowest")
	for _, r := range t.Rows {
		fmt.Fprintf(s.Stdout, "  %-13s %6d %6d %8d %8d %6d %6d %8d %6.1fs\n",
			r.Family, r.Cases, r.Whole, r.Majority, r.Smaller, r.Waits, r.Nobody, r.Needless, r.Slowest.Seconds())
	}
	fmt.Fprintf(s.Stdout, "\n%s two parts never go on\n", s.Paint(32, "ok"))
}

// promise says what the strategy promises.
func promise(t outcomes.Table) string {
	text := "it may keep a side without a majority"
	if t.MajorityOnly {
		text = "it keeps no side without a majority"
	}
	if t.Pure {
		text += ", and decides by the view alone"
	}
	if t.Misfit != "" {
		text += "\nit does not fit this cluster: " + t.Misfit
	}
	return text
}

//go:embed simulate_exhaustive.html
var outcomesPage string

// writePage writes the table as a page that needs nothing else.
func writePage(path string, t outcomes.Table) error {
	return page.Write(path, outcomesPage, template.FuncMap{
		"ending": ending, "promise": promise,
		"seconds": func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) },
	}, t)
}
