// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

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
	"strings"
	"time"

	"github.com/quorate/quorate/plugins/sdk"
)

// The exit statuses of the program.
const (
	statusOK     = 0 // Everything was measured, and every message came once and in order.
	statusFailed = 1 // A run failed, or a message was lost, doubled or out of order.
	statusUsage  = 2 // The command line is wrong.
)

// Main is the program. It returns the exit status. Args are without the name
// of the program, which is what is started again for each run; prefix is put
// before the arguments of such a process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, prefix ...string) int {
	ctx, stop := signal.NotifyContext(context.Background(), interrupts()...)
	defer stop()
	program, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return statusFailed
	}
	l := launcher{program: program, args: prefix}
	if len(args) == 2 && args[0] == roleFlag {
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

// child plays the role that a parent gave it. A signal that a terminal sends
// to all of them is the parent's to answer: it ends the input of its children.
func child(ctx context.Context, l launcher, text string, stdin io.Reader, stdout io.Writer) error {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("%w: %s: %w", errUsage, roleFlag, err)
	}
	if strategy, ok := strategies()[s.Role]; ok {
		sdk.Serve(strategy, sdk.WithName(s.Role), sdk.WithVersion("1.0.0")) // It ends the process.
	}
	ctx, k := newLink(context.WithoutCancel(ctx), l, stdin, stdout)
	return play(ctx, s, k)
}

var (
	errUsage = errors.New("see bench -h")
	errWrong = errors.New("messages were lost, doubled or out of order")
)

// options is what the command line says.
type options struct {
	groups   []group
	runs     int
	time     time.Duration
	entities int
	profile  string
	list     bool
}

const usage = `usage: bench [flags] [group ...]

Measures what a cluster does in a second beside what the machine could do at
most. Without a group all but members, boot and simulated are measured.

Standard output has one JSON object a line for each figure; progress and, in
the end, a table are on standard error. The exit status is 1 when a message
was lost, doubled or came out of order.

examples:
  bench                          everything but the slow groups
  bench remote                   one group
  bench -runs 5 -time 5s local   more runs, longer ones
  bench -cpuprofile /tmp/p ask   also a profile of each process, for pprof
  bench local 2>/dev/null | jq -r '[.name,.value,.ratio] | @tsv'

groups:
`

// parse reads the command line.
func parse(args []string, stderr io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Faults are reported by the caller, once.
	flags.IntVar(&o.runs, "runs", 3, "how many `times` each figure is measured, 1 to 100")
	flags.DurationVar(&o.time, "time", 2*time.Second, "how `long` a rate is measured in each run, 10ms to 1h")
	flags.IntVar(&o.entities, "entities", 0, "use at most so `many` entities; 0: as each group says")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a profile of each process into this `directory`")
	flags.BoolVar(&o.list, "list", false, "list the groups and their figures")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		for _, g := range groups() {
			fmt.Fprintf(stderr, "  %-10s %s\n", g.name, g.about)
		}
		fmt.Fprintln(stderr, "\nflags:")
		flags.SetOutput(stderr)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return o, err
	} else if err != nil {
		return o, fmt.Errorf("%w: %w", err, errUsage)
	}
	if o.runs < 1 || o.runs > 100 {
		return o, fmt.Errorf("-runs %d is not in the range from 1 to 100: %w", o.runs, errUsage)
	}
	if o.time < 10*time.Millisecond || o.time > time.Hour {
		return o, fmt.Errorf("-time %v is not in the range from 10ms to 1h: %w", o.time, errUsage)
	}
	if o.entities < 0 {
		return o, fmt.Errorf("-entities %d is negative: %w", o.entities, errUsage)
	}
	var err error
	o.groups, err = choose(flags.Args())
	return o, err
}

// choose returns the groups of the given names, in the order of the plan.
func choose(names []string) (chosen []group, err error) {
	for _, name := range names {
		if !slices.Contains(groupNames(), name) {
			return nil, fmt.Errorf("group %q is not known, there are %s: %w", name, strings.Join(groupNames(), ", "), errUsage)
		}
	}
	for _, g := range groups() {
		if slices.Contains(names, g.name) || len(names) == 0 && !g.optional {
			chosen = append(chosen, g)
		}
	}
	return chosen, nil
}

// run measures what the command line says.
func run(ctx context.Context, l launcher, args []string, stdout, stderr io.Writer) error {
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
	r := runner{launcher: l, runs: o.runs, time: o.time, entities: o.entities, profile: o.profile, progress: newProgress(stderr)}
	var all []record
	for _, g := range o.groups {
		records, failed := r.run(ctx, g)
		r.progress.clear()
		if failed != nil {
			fmt.Fprintln(stderr, "bench:", failed)
			err = errors.Join(err, fmt.Errorf("group %s was not measured to its end", g.name))
		}
		if err := writeRecords(stdout, records); err != nil {
			return err
		}
		all = append(all, records...)
	}
	if len(all) > 0 {
		fmt.Fprintf(stderr, "\n%s, %s/%s, %d processors, %d runs of %v\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), o.runs, o.time)
		writeTable(stderr, all)
	}
	if slices.ContainsFunc(all, func(r record) bool { return !r.correct() }) {
		err = errors.Join(err, errWrong)
	}
	return err
}

// list writes the groups and their figures.
func list(w io.Writer, groups []group) error {
	for _, g := range groups {
		if _, err := fmt.Fprintf(w, "%s: %s\n", g.name, g.about); err != nil {
			return err
		}
		for _, e := range g.experiments {
			for _, f := range e.figures {
				if _, err := fmt.Fprintf(w, "  %s/%s %s\n", g.name, f.name, f.unit); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
