// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A run goes through its steps ([Runner.Run]): each step's packages are tested, then those whose failed tests
// could not be judged are tested again, alone; at the end comes the summary.

const (
	// maxTries is how often a test is run that cannot be judged.
	maxTries = 3
	// maxQuiet is how long nothing is printed at most while something is built or runs.
	maxQuiet = 15 * time.Second
	// slowestShown is how many of the slowest packages the summary lists.
	slowestShown = 10
)

// ErrFailed is returned when a test or a command failed. What failed has been printed.
var ErrFailed = errors.New("failed")

// A Runner runs steps and prints what becomes of them, 80 columns wide.
type Runner struct {
	Root string
	Out  io.Writer
	// Colour paints failures red: for a terminal.
	Colour bool
	// Uncached has tests run whose results go remembers.
	Uncached bool

	log       *os.File
	began     time.Time
	total     int
	done      []*packageRun
	failed    []string // commands that repeat what failed
	unjudged  []string
	secondTry []string

	mu    sync.Mutex // guards last and what is printed to Out
	last  time.Time
	state string
}

// Run runs steps under a name. It returns [ErrFailed] when something failed, and another error when a command could
// not be run or ctx has ended.
func (r *Runner) Run(ctx context.Context, name string, steps []Step) error {
	*r = Runner{Root: r.Root, Out: r.Out, Colour: r.Colour, Uncached: r.Uncached, began: time.Now(), last: time.Now(), state: "building"}
	file := logFile(r.Root, name, ".jsonl")
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		r.log, err = os.Create(file)
	}
	if err != nil {
		return err
	}
	defer r.log.Close() //nolint:errcheck // It is for people who look for more.
	for _, s := range steps {
		if s.LeftOut == "" {
			r.total += len(s.Packages)
		}
	}
	r.print("== %s: %s", name, count(r.total, "package"))
	for _, s := range steps {
		if err := r.step(ctx, s); err != nil {
			return err
		}
	}
	return r.summary(name)
}

func (r *Runner) step(ctx context.Context, s Step) error {
	switch {
	case s.LeftOut != "":
		r.print("   left out: %s", s.LeftOut)
		return nil
	case len(s.Packages) == 0 && len(s.Command) > 0:
		cmd := s.command(ctx, r.Root, s.Command)
		cmd.Stdout = r.Out
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.fail(strings.Join(s.Command, " "), strings.Join(append(s.Env, s.Command...), " "))
		}
		return nil
	case len(s.Packages) == 0:
		return nil
	}
	if r.Uncached {
		s.Args = append(slices.Clone(s.Args), "-count=1")
	}
	runs, err := r.goTest(ctx, s, s.goTest("", nil), r.line)
	if err != nil {
		return err
	}
	for _, p := range runs {
		if !p.failed {
			continue
		}
		if err := r.again(ctx, s, p); err != nil {
			return err
		}
	}
	return nil
}

// goTest runs the go command, and calls ended for each package that has ended.
func (r *Runner) goTest(ctx context.Context, s Step, args []string, ended func(*packageRun)) ([]*packageRun, error) {
	cmd := s.command(ctx, r.Root, append([]string{"go"}, args...))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := r.tellProgress()
	defer stop()
	all := newCollector()
	var runs []*packageRun
	lines := bufio.NewReaderSize(out, 1<<16)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			_, _ = r.log.WriteString(line) // A log that cannot be written ends no run.
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				r.print("%s", strings.TrimRight(line, "\n"))
			} else if p := all.add(e); p != nil {
				runs = append(runs, p)
				ended(p)
			}
		}
		if err != nil {
			break
		}
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && !slices.ContainsFunc(runs, (*packageRun).explains) { // It failed before any test did: it printed why.
		r.fail("go test", s.repeat(strings.Join(s.Packages, " ./"), nil))
	}
	return runs, nil
}

// again repeats the failed tests of a package as long as they cannot be judged, alone.
func (r *Runner) again(ctx context.Context, s Step, p *packageRun) error {
	open := p.open()
	if open == nil {
		r.say(p)
		r.fail(p.dir+" "+strings.Join(p.tops(), " "), s.repeat(r.in(s, p.dir), p.tops()))
		return nil
	}
	first := strings.Join(open, " ")
	for try := 2; try <= maxTries; try++ {
		r.print("   not judged, since the machine stood still: %s %s; try %d", p.dir, strings.Join(open, " "), try)
		runs, err := r.goTest(ctx, s, s.goTest(r.in(s, p.dir), open), func(*packageRun) {})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(runs, func(p *packageRun) bool { return p.failed }) {
			r.secondTry = append(r.secondTry, p.dir+" "+first)
			return nil
		}
		next := runs[len(runs)-1].open()
		if next == nil {
			failed := runs[len(runs)-1]
			r.say(failed)
			r.fail(p.dir+" "+strings.Join(failed.tops(), " "), s.repeat(r.in(s, p.dir), failed.tops()))
			return nil
		}
		open = next
	}
	r.unjudged = append(r.unjudged, p.dir+" "+strings.Join(open, " "))
	return nil
}

// in returns the directory of a package relative to the module of the step.
func (r *Runner) in(s Step, dir string) string {
	if s.Module == "" {
		return dir
	}
	if dir == s.Module {
		return "."
	}
	return strings.TrimPrefix(dir, s.Module+"/")
}

// line prints the line of a package that has ended.
func (r *Runner) line(p *packageRun) {
	r.done = append(r.done, p)
	took := fmt.Sprintf("%7.1f s", p.seconds)
	switch {
	case p.none:
		took = "no tests"
	case p.cached:
		took = "cached"
	}
	text := fmt.Sprintf("[%3d/%d] %9s  %s", len(r.done), r.total, took, p.dir)
	if p.failed {
		text = r.red(fmt.Sprintf("[%3d/%d] %9s  FAIL %s", len(r.done), r.total, took, p.dir))
	}
	r.print("%s", text)
}

func (r *Runner) say(p *packageRun) {
	r.print("%s", r.red("FAIL "+p.dir))
	r.print("%s", strings.TrimRight(strings.Join(p.said(), ""), "\n"))
}

// fail notes what failed, and how it is repeated.
func (r *Runner) fail(what, repeat string) {
	r.print("%s", r.red("FAIL "+what))
	r.failed = append(r.failed, repeat)
}

func (r *Runner) red(text string) string {
	if !r.Colour {
		return text
	}
	return "\x1b[31m" + text + "\x1b[0m"
}

func (r *Runner) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	fmt.Fprintf(r.Out, format+"\n", args...)
}

// tellProgress says that the run goes on whenever nothing was printed for a while, until the function that it returns
// is called, which waits for the end of its goroutine.
func (r *Runner) tellProgress() func() {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // It ends when stop is closed.
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
			}
			r.mu.Lock()
			quiet := time.Since(r.last) >= maxQuiet
			r.mu.Unlock()
			if quiet {
				r.print("   building and testing, %.0f s", time.Since(r.began).Seconds())
			}
		}
	}()
	return func() { close(stop); <-done }
}

// summary prints what a reader wants to know at the end: the slowest, what was not judged, what failed.
func (r *Runner) summary(name string) error {
	slowest := append([]*packageRun(nil), r.done...)
	byLength(slowest, func(p *packageRun) float64 { return p.seconds }, func(p *packageRun) string { return p.dir })
	if len(slowest) > slowestShown {
		slowest = slowest[:slowestShown]
	}
	for i, p := range slowest {
		if p.cached || p.seconds < 1 {
			break
		}
		if i == 0 {
			r.print("   slowest:")
		}
		r.print("   %9.1f s  %s", p.seconds, p.dir)
	}
	for _, what := range r.secondTry {
		r.print("   judged when it was run again alone: %s", what)
	}
	for _, what := range r.unjudged {
		r.print("   not judged in %d tries, since the machine stood still: %s", maxTries, what)
	}
	took := time.Since(r.began).Round(time.Second)
	if len(r.failed) == 0 {
		r.print("== %s: ok, %s in %v, %d not judged", name, count(len(r.done), "package"), took, len(r.unjudged))
		return keepDuration(r.Root, name, took)
	}
	r.print("%s", r.red(fmt.Sprintf("== %s: failed after %v; to repeat what failed:", name, took)))
	for _, command := range r.failed {
		r.print("   %s", command)
	}
	return ErrFailed
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
