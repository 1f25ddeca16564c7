// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"maps"
	"slices"
	"strings"
)

// A [collector] takes the events of go test one by one and sorts them by package. When a package has ended, its
// [packageRun] answers what the runner asks: what failed, whether that can be judged, what it said.

// prefix begins the import paths of this repository. It is left out where a person reads them.
const prefix = "github.com/quorate/quorate/"

// notJudged is what a test of internal/patience says that failed after its process did not run
// for long.
const notJudged = "not judged: "

// The fuzzer of Go 1.26 can fail a target by the end of its time alone (go.dev/issue/75804, cured in Go 1.27): it says
// so, and has written no input.
const (
	fuzzEnded = "context deadline exceeded"
	fuzzFound = "Failing input written to"
)

// maxOutput is how many lines of a failed test are shown: its first and its last ones. The log has all.
const maxOutput = 200

// An event is one line of go test -json (go doc test2json).
type event struct {
	Action      string
	Package     string
	ImportPath  string // of what did not build
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// A packageRun is what became of the tests of one package in a step.
type packageRun struct {
	dir     string
	seconds float64
	failed  bool
	cached  bool
	none    bool // has no tests, by the tags of the step
	tests   map[string]*testRun
	output  []string // of the package itself and of its build
}

// A testRun is what became of one test.
type testRun struct {
	failed bool
	ended  bool // Not one in which the process ended, as by a panic.
	output []string
}

// A collector sorts the events of a step by package.
type collector struct {
	packages map[string]*packageRun
	builds   map[string][]string // what the compiler said, by import path
}

func newCollector() *collector {
	return &collector{packages: map[string]*packageRun{}, builds: map[string][]string{}}
}

// add takes an event, and returns the package that has ended with it, or nil.
func (c *collector) add(e event) *packageRun {
	if e.Action == "build-output" {
		c.builds[e.ImportPath] = append(c.builds[e.ImportPath], e.Output)
		return nil
	}
	if e.Package == "" {
		return nil
	}
	p := c.packages[e.Package]
	if p == nil {
		p = &packageRun{dir: strings.TrimPrefix(e.Package, prefix), tests: map[string]*testRun{}}
		c.packages[e.Package] = p
	}
	if e.Test != "" {
		p.test(e)
		return nil
	}
	switch e.Action {
	case "output":
		p.cached = p.cached || strings.Contains(e.Output, "\t(cached)")
		p.output = append(p.output, e.Output)
		return nil
	case "pass", "fail", "skip":
		p.seconds, p.failed, p.none = e.Elapsed, e.Action == "fail", e.Action == "skip"
		p.output = append(p.output, c.builds[e.FailedBuild]...)
		if p.onlyEnded() {
			p.failed = false
		}
		return p
	}
	return nil
}

func (p *packageRun) test(e event) {
	t := p.tests[e.Test]
	if t == nil {
		t = &testRun{}
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "fail":
		t.failed, t.ended = true, true
	case "pass", "skip":
		t.ended, t.output = true, nil // A package may have thousands.
	}
}

// failures returns the failed tests that no failed test below them explains, sorted.
func (p *packageRun) failures() []string {
	var names []string
	for name, t := range p.tests {
		if t.failed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
}

// open returns the tests that failed, if all of them say that they could not be judged, and nil otherwise. They are
// the tests at the top: those below them cannot be run alone in every case.
func (p *packageRun) open() []string {
	var open []string
	for _, name := range p.failures() {
		if !slices.ContainsFunc(p.tests[name].output, func(line string) bool { return strings.Contains(line, notJudged) }) {
			return nil
		}
		top, _, _ := strings.Cut(name, "/")
		open = append(open, top)
	}
	return slices.Compact(open)
}

// onlyEnded says whether all that failed are fuzz targets whose time ended before they had found anything.
func (p *packageRun) onlyEnded() bool {
	names := p.failures()
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool {
		said := strings.Join(p.tests[name].output, "")
		return !strings.HasPrefix(name, "Fuzz") || !strings.Contains(said, fuzzEnded) || strings.Contains(said, fuzzFound)
	})
}

// explains says whether go test had to fail for the package's sake.
func (p *packageRun) explains() bool { return p.failed || p.onlyEnded() }

// tops returns the failed tests at the top.
func (p *packageRun) tops() []string {
	var tops []string
	for _, name := range p.failures() {
		top, _, _ := strings.Cut(name, "/")
		tops = append(tops, top)
	}
	return slices.Compact(tops)
}

// said returns what a failed package and its failed tests printed, the middle of what is long left out; of a
// package that a panic has ended also what the tests that ran had printed.
func (p *packageRun) said() []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(p.tests)) {
		if t := p.tests[name]; !t.ended || t.failed && slices.Contains(p.failures(), name) {
			lines = append(lines, shorten(t.output)...)
		}
	}
	return append(lines, shorten(p.output)...)
}

func shorten(lines []string) []string {
	if len(lines) <= maxOutput {
		return lines
	}
	short := append(slices.Clone(lines[:maxOutput/2]), "    ... the log has the rest ...\n")
	return append(short, lines[len(lines)-maxOutput/2:]...)
}
