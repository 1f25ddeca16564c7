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

	"github.com/quorate/quorate/bench/internal/decisions"
	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/plugins/sdk"
)

// The exit statuses of the program.
const (
	statusOK     = 0 // Everything was measured, and every message came once and in order.
	statusFailed = 1 // A run failed, or a message was lost, doubled or out of order.
	statusUsage  = 2 // The command line is wrong.
)

// Main is the program. It returns the exit status. Args are without the name of the
// program, which is started again for each run; prefix is put before the arguments of
// such a process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, prefix ...string) int {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	defer stop()
	program, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return statusFailed
	}
	l := process.Launcher{Program: program, Args: prefix}
	if len(args) == 2 && args[0] == process.RoleFlag {
		err = child(ctx, l, args[1], stdin, stdout)
	} else {
		err = run(ctx, l, args, stdout, stderr)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusOK
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "bench:", err)
		return statusUsage
	default:
		fmt.Fprintln(stderr, "bench:", err)
		return statusFailed
	}
}

// child plays the role that a parent gave it. A signal that a terminal sends to all
// processes is for the parent to handle: it ends the input of its children.
func child(ctx context.Context, l process.Launcher, text string, stdin io.Reader, stdout io.Writer) error {
	var s process.Spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, process.RoleFlag, err)
	}
	if strategy, ok := decisions.Plugins()[s.Role]; ok {
		sdk.Serve(strategy, sdk.WithName(s.Role), sdk.WithVersion("1.0.0")) // It ends the process.
	}
	ctx, k := process.NewLink(context.WithoutCancel(ctx), l, stdin, stdout)
	return play(ctx, s, k)
}

var (
	errUsage = errors.New("see bench -h")
	errWrong = errors.New("messages were lost, doubled or out of order")
)

// run runs the measurements of the command line.
func run(ctx context.Context, l process.Launcher, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if o.list {
		return list(stdout, o.groups)
	}
	if o.profile != "" {
		if err := os.MkdirAll(o.profile, 0o755); err != nil {
			return err
		}
	}
	r := runner{Launcher: l, runs: o.runs, time: o.time, entities: o.entities, profile: o.profile, progress: figure.NewProgress(stderr)}
	var all []figure.Record
	for _, g := range o.groups {
		if why := g.Lacks(); why != "" {
			fmt.Fprintf(stderr, "bench: group %s is left out: %s\n", g.Name, why)
			continue
		}
		records, failed := r.run(ctx, g)
		r.progress.Clear()
		if failed != nil {
			fmt.Fprintln(stderr, "bench:", failed)
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
	}
	if slices.ContainsFunc(all, func(r figure.Record) bool { return !r.Correct() }) {
		err = errors.Join(err, errWrong)
	}
	return err
}

// list writes the groups and their figures.
func list(w io.Writer, groups []plan.Group) error {
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
