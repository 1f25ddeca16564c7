// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
)

// Main starts as the program that people call, which measures groups ([Program.run]), or in the role of one of
// its own processes ([Program.child]), which is that of an experiment, a peer or a plugin.

// The exit statuses of the program.
const (
	statusOK     = 0 // Everything was measured, and every message came once and in order.
	statusFailed = 1 // A run failed, or a message of the product was lost, doubled or out of order.
	statusUsage  = 2 // The command line is wrong.
)

// Program is what the processes of the program do.
type Program struct {
	Name    string                    // As people call it.
	Groups  []harness.Group           // What can be measured.
	Servers map[string]harness.Server // The peers of the processes that measure, by their roles.
	Plugins map[string]func()         // Roles that use the standard streams in their own way. They end the process.
}

// Main is the program. It returns the exit status. Args are without the name of the
// program, which is started again for each run; prefix is put before the arguments of
// such a process.
func (p Program) Main(args []string, stdin io.Reader, stdout, stderr io.Writer, prefix ...string) int {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	defer stop()
	executable, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, p.Name+":", err)
		return statusFailed
	}
	l := harness.Launcher{Program: executable, Args: prefix}
	if len(args) == 2 && args[0] == harness.RoleFlag {
		err = p.child(ctx, l, args[1], stdin, stdout)
	} else {
		err = p.run(ctx, l, args, stdin, stdout, stderr)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusOK
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, p.Name+":", err)
		return statusUsage
	default:
		fmt.Fprintln(stderr, p.Name+":", err)
		return statusFailed
	}
}

// child plays the role that a parent gave it. A signal that a terminal sends to all
// processes is for the parent to handle: it ends the input of its children.
func (p Program) child(ctx context.Context, l harness.Launcher, text string, stdin io.Reader, stdout io.Writer) error {
	var s harness.Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, harness.RoleFlag, err)
	}
	if plugin := p.Plugins[s.Role]; plugin != nil {
		plugin()
	}
	ctx, k := harness.NewLink(context.WithoutCancel(ctx), l, stdin, stdout)
	return p.play(ctx, s, k)
}

// play plays a role: that of an experiment, which is measured, or that of a peer.
func (p Program) play(ctx context.Context, s harness.Spec, k *harness.Link) (err error) {
	stop, err := harness.Profile(s)
	if err != nil {
		return err
	}
	defer stop()
	for _, g := range p.Groups {
		for _, e := range g.Experiments {
			if g.Role(e) == s.Role {
				out, err := e.Measure(ctx, s, k)
				if err != nil {
					return err
				}
				return k.Send(out)
			}
		}
	}
	if serve := p.Servers[s.Role]; serve != nil {
		return serve(ctx, s, k)
	}
	return fmt.Errorf("bench: role %q is not known", s.Role)
}

var (
	errUsage = errors.New("see the help, -h")
	errWrong = errors.New("messages were lost, doubled or out of order")
)

// run runs the measurements of the command line.
func (p Program) run(ctx context.Context, l harness.Launcher, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	o, err := parse(p.Name, p.Groups, args, stderr)
	if err != nil {
		return err
	}
	switch {
	case o.list:
		return list(stdout, o.groups)
	case o.page != "":
		return renew(o.page, p.Name, o.from, stdin)
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return err
		}
	}
	r := runner{this: l, runs: o.runs, time: o.time, entities: o.entities, profile: o.profile, progress: figure.NewProgress(stderr)}
	if o.against != "" {
		r.other = &harness.Launcher{Program: o.against, Args: l.Args}
	}
	var all []figure.Record
	for _, g := range o.groups {
		if why := g.Lacks(); why != "" {
			fmt.Fprintf(stderr, "%s: group %s is left out: %s\n", p.Name, g.Name, why)
			continue
		}
		records, failed := r.run(ctx, g)
		r.progress.Clear()
		if failed != nil {
			fmt.Fprintln(stderr, p.Name+":", failed)
			err = errors.Join(err, fmt.Errorf("group %s was not measured to its end", g.Name))
		}
		if err := figure.Lines(stdout, records); err != nil {
			return err
		}
		all = append(all, records...)
	}
	if len(all) > 0 {
		fmt.Fprintf(stderr, "\n%s, %s/%s, %d processors, %d runs of %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.runs, o.time)
		figure.Table(stderr, all)
		if r.other != nil {
			figure.BesideTable(stderr, all)
		}
	}
	if slices.ContainsFunc(all, func(r figure.Record) bool { return !r.Correct() && !r.Peer }) {
		err = errors.Join(err, errWrong)
	}
	return err
}

// renew puts the lines of an earlier run into the table of a page.
func renew(page, table, from string, lines io.Reader) error {
	records, err := figure.ReadLines(lines)
	if err != nil {
		return fmt.Errorf("the standard input: %w", err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	if text, err = figure.OnPage(text, table, from, records); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, text, 0o644)
}

// list writes the groups and their figures.
func list(w io.Writer, groups []harness.Group) error {
	for _, g := range groups {
		if _, err := fmt.Fprintf(w, "%s: %s\n", g.Name, g.About); err != nil {
			return err
		}
		for _, e := range g.Experiments {
			for _, f := range e.Figures {
				if _, err := fmt.Fprintf(w, "  %s/%s %s\n", g.Name, f.Name, f.Unit); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
