// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/bench/internal/harness"
)

// options are the command line as values.
type options struct {
	groups   []harness.Group
	runs     int
	time     time.Duration
	entities int
	profile  string
	against  string
	page     string
	from     string
	list     bool
}

const usage = `usage: %[1]s [flags] [group ...]

Measures what a cluster does in a second beside what the machine could do at
most. Without a group all are measured%[2]s.

Standard output has one JSON object a line for each figure; progress and, in
the end, a table are on standard error. The exit status is 1 when a message
was lost, doubled or came out of order, except by a product that is only
measured to compare with.

examples:
  %[1]s                          everything but the slow groups
  %[1]s all                      the slow ones too
  %[1]s remote                   one group
  %[1]s -runs 5 -time 5s local   more runs, longer ones
  %[1]s -cpuprofile /tmp/p ask   also a profile of each process, for pprof
  %[1]s -runs 5 -against old ask beside another build of this program, in turns
  %[1]s -page performance.md -from "1 May, commit 1234567" <lines.jsonl
  %[1]s local 2>/dev/null | jq -r '[.name,.value,.ratio] | @tsv'

groups:
`

// parse reads the command line.
func parse(name string, groups []harness.Group, args []string, stderr io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // Faults are reported by the caller, once.
	flags.IntVar(&o.runs, "runs", 3, "how many `times` each figure is measured, 1 to 100")
	flags.DurationVar(&o.time, "time", 2*time.Second, "how `long` a rate is measured in each run, 10ms to 1h")
	flags.IntVar(&o.entities, "entities", 0, "use at most so `many` entities; 0: as each group says")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a profile of each process into this `directory`")
	flags.StringVar(&o.against, "against", "", "take turns with another build of this `program`, and compare")
	flags.StringVar(&o.page, "page", "", "put the lines of the standard input into the table of a `page`")
	flags.StringVar(&o.from, "from", "", "with -page: `when` and where it was measured, for the page")
	flags.BoolVar(&o.list, "list", false, "list the groups and their figures")
	flags.Usage = func() {
		var optional []string
		but := ""
		for _, g := range groups {
			if g.Optional {
				optional = append(optional, g.Name)
			}
		}
		if len(optional) > 0 {
			but = " but these, which take long:\n" + strings.Join(optional, ", ")
		}
		fmt.Fprintf(stderr, usage, name, but)
		for _, g := range groups {
			fmt.Fprintf(stderr, "  %-10s %s\n", g.Name, g.About)
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
	o.groups, err = choose(groups, flags.Args())
	return o, err
}

// everything names all groups.
const everything = "all"

// choose returns the groups of the given names, in the order of the plan.
func choose(groups []harness.Group, names []string) (chosen []harness.Group, err error) {
	var known []string
	for _, g := range groups {
		known = append(known, g.Name)
	}
	if slices.Equal(names, []string{everything}) {
		return groups, nil
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("group %q is not known, there are %s: %w", name, strings.Join(known, ", "), errUsage)
		}
	}
	for _, g := range groups {
		if slices.Contains(names, g.Name) || len(names) == 0 && !g.Optional {
			chosen = append(chosen, g)
		}
	}
	return chosen, nil
}
