// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Command run runs the tests of the repository for its Makefile: `make test`, `make lanes`,
// `make lane-NAME`, `make all` and .ci/run.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quorate/quorate/tools/internal/lanes"
)

const usage = `usage: run [flags] test | lane NAME[/PART] | all | lanes | turn

  test       what needs no other program than Go, make and git
  lane NAME  one lane, or a part of it: lane race, lane race/2
  all        test, then every lane
  lanes      which lanes there are; with -json for programs
  turn       the lanes whose turn it is, as far as there is time

examples:
  run -module fd test
  run -load 8 lane process/1

flags:
`

func main() {
	if len(os.Args) > 1 && os.Args[1] == "spin" {
		lanes.Spin(os.Stdin)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		if !errors.Is(err, lanes.ErrFailed) {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}

// A call is what the command line asks for.
type call struct {
	module string
	load   int
	began  int64
	budget time.Duration
	latest time.Duration
	json   bool
}

func run(ctx context.Context) error {
	var c call
	flag.StringVar(&c.module, "module", "", "only the tests of one `module`")
	flag.IntVar(&c.load, "load", 0, "run beside so many busy loops")
	flag.Int64Var(&c.began, "began", time.Now().Unix(), "turn: when the whole run began, in `seconds` since 1970")
	flag.DurationVar(&c.budget, "budget", 25*time.Minute, "turn: how long a run may take, on a quiet machine")
	flag.DurationVar(&c.latest, "latest", 35*time.Minute, "turn: when no lane is begun any more")
	flag.BoolVar(&c.json, "json", false, "lanes: print JSON")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	w, err := lanes.Open(".")
	if err != nil {
		return err
	}
	if c.module != "" {
		if c.module, err = w.Module(c.module); err != nil {
			return err
		}
	}
	command, name := flag.Arg(0), flag.Arg(1)
	if command == "lanes" {
		return c.list(ctx, w)
	}
	if err := w.CheckNeeds(ctx); err != nil {
		return err
	}
	if c.load > 0 {
		load, err := lanes.StartLoad(ctx, c.load)
		if err != nil {
			return err
		}
		defer load.Close() //nolint:errcheck // They end with this process at the latest.
		fmt.Printf("   beside %d busy loops\n", c.load)
	}
	return c.do(ctx, w, command, name)
}

func (c call) do(ctx context.Context, w *lanes.Workspace, command, name string) error {
	switch command {
	case "test":
		if err := c.tests(ctx, w); err != nil {
			return err
		}
		fmt.Println("   not in it: the lanes; `make lanes` lists them, `make all` runs them")
		return nil
	case "lane":
		name, part, _ := strings.Cut(name, "/")
		lane, err := lanes.Find(name)
		if err != nil {
			return err
		}
		number, err := strconv.Atoi(cmp.Or(part, "0"))
		if err != nil || number < 0 || number > lane.Parts {
			return fmt.Errorf("lane %s has the parts 1 to %d, and no %q", name, lane.Parts, part)
		}
		return c.steps(ctx, w, cmp.Or(flag.Arg(1), name), lane.Steps(ctx, w, number))
	case "all":
		failed := c.tests(ctx, w)
		for _, lane := range lanes.Lanes() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			failed = errors.Join(failed, c.steps(ctx, w, lane.Name, lane.Steps(ctx, w, 0)))
		}
		return failed
	case "turn":
		return c.turn(ctx, w)
	}
	flag.Usage()
	return fmt.Errorf("there is no command %q", command)
}

// steps runs steps, of the module alone that the command line names.
// tests runs `make test`.
func (c call) tests(ctx context.Context, w *lanes.Workspace) error {
	documents, err := w.Documents(ctx)
	if err != nil {
		return err
	}
	if err := c.steps(ctx, w, "test", lanes.Tests(w, documents.Changed())); err != nil || c.module != "" {
		return err
	}
	return documents.Passed()
}

func (c call) steps(ctx context.Context, w *lanes.Workspace, name string, steps []lanes.Step) error {
	if c.module != "" {
		steps = w.Restrict(steps, c.module)
	}
	info, err := os.Stdout.Stat()
	r := lanes.Runner{
		Root: w.Root, Out: os.Stdout,
		Colour: err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "",
		// A result of a quiet machine says nothing of a busy one.
		Uncached: c.load > 0,
	}
	return r.Run(ctx, name, steps)
}

// turn runs the lanes whose turn it is, while there is time, and says which it did not.
func (c call) turn(ctx context.Context, w *lanes.Workspace) error {
	units, err := w.Turn(ctx)
	if err != nil {
		return err
	}
	began := time.Unix(c.began, 0)
	var ran, left []string
	var failed error
	for _, u := range units {
		if !u.Begins(time.Since(began), c.budget, c.latest) {
			left = append(left, fmt.Sprintf("%s (%d of 6)", u.Name(), u.Waited))
			continue
		}
		if err := c.steps(ctx, w, u.Name(), u.Lane.Steps(ctx, w, u.Part)); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failed = errors.Join(failed, err)
		}
		ran = append(ran, u.Name())
	}
	fmt.Println("== lanes of this run")
	wrapped("ran: ", ran)
	wrapped("not run, and for how many runs not due: ", left)
	return failed
}

// wrapped prints words in lines of 80 columns.
func wrapped(head string, words []string) {
	line := "   " + head
	for i, word := range words {
		if i < len(words)-1 {
			word += ", "
		}
		if len(line)+len(word) > 80 {
			fmt.Println(line)
			line = "     "
		}
		line += word
	}
	fmt.Println(line)
}

// A row is what list tells of a lane.
type row struct {
	Name    string `json:"name"`
	Proves  string `json:"proves"`
	Needs   string `json:"needs,omitempty"`
	Parts   int    `json:"parts"`
	Seconds int    `json:"seconds"` // What a part takes on two quiet processors.
	Last    string `json:"last"`
	Waited  []int  `json:"waited"` // For how many runs each part was not due.
}

// list prints the lanes, and for how many runs each of their parts has not been due.
func (c call) list(ctx context.Context, w *lanes.Workspace) error {
	units, err := w.Turn(ctx)
	if err != nil {
		return err
	}
	var rows []row
	for _, l := range lanes.Lanes() {
		r := row{Name: l.Name, Proves: l.Proves, Needs: l.Needs, Parts: l.Parts, Seconds: int(l.Time.Seconds()), Last: lanes.Last(w.Root, l), Waited: make([]int, l.Parts)}
		for _, u := range units {
			if u.Lane.Name == l.Name {
				r.Waited[u.Part-1] = u.Waited
			}
		}
		rows = append(rows, r)
	}
	if c.json {
		return json.NewEncoder(os.Stdout).Encode(rows)
	}
	for _, r := range rows {
		fmt.Printf("%-10s %s\n", r.Name, r.Proves)
		if r.Needs != "" {
			fmt.Printf("%-10s needs %s\n", "", r.Needs)
		}
		fmt.Printf("%-10s %d x %d s on two quiet processors; last here: %s\n", "", r.Parts, r.Seconds, r.Last)
		fmt.Printf("%-10s not due for so many of 6 runs: %s\n", "", strings.Trim(fmt.Sprint(r.Waited), "[]"))
	}
	return nil
}
