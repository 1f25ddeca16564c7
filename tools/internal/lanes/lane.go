// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The lanes are one table ([Lanes]); below it stand the steps of each, and what they leave out where a program
// is not there.

// Into how many parts the long lanes are cut.
const (
	raceParts    = 4
	processParts = 3
	mutantParts  = 4
	seedParts    = 2
	fuzzParts    = 6
)

// A Lane is a set of tests that `make test` does not run, for the reason in Needs or since they take long.
type Lane struct {
	Name   string
	Proves string
	Needs  string
	// Parts is into how many parts the lane is cut, so that each takes minutes.
	Parts int
	// Time is what one part takes on two quiet processors, to plan with; see CONTRIBUTING.md.
	Time time.Duration
	// Touched says whether a change of a file may turn the lane red, as far as its name tells. Go files
	// touch the lanes that run all packages.
	Touched func(file string) bool
	steps   func(ctx context.Context, w *Workspace, part int) []Step
}

// Lanes returns all lanes, in the order in which continuous integration takes turns.
func Lanes() []Lane {
	return []Lane{
		{"race", "no two goroutines touch the same memory unsynchronized", "a C compiler", raceParts, 180 * time.Second, goFile, race},
		{"process", "clusters of real processes: killed, frozen, cut off, on real disks", "", processParts, 210 * time.Second, below("examples", "internal/acceptance", "plugins", "bench", "machine", "tools", "cluster", "transport"), process},
		{"mutants", "each planted defect is found by the tests", "", mutantParts, 270 * time.Second, goFile, mutants},
		{"seeds", "more seeds of each simulated world than `make test` has, and fresh ones", "", seedParts, 150 * time.Second, goFile, seeds},
		{"fuzz", "no input breaks a decoder", "", fuzzParts, 180 * time.Second, goFile, fuzz},
		{"consumer", "a release of the tree, as its users get it", "", 1, 150 * time.Second, nameOf("go.mod", "go.sum", "CHANGELOG.md"), consumer},
		{"servers", "etcd; the manifests, images and alerts of deploy", "user namespaces, for the image", 1, 120 * time.Second, below("deploy", "internal", "discovery", "downing", "sharding/state/etcd"), servers},
		{"languages", "plugins in Python, TypeScript and Java", "python3 3.10 with venv; node 20 with npm; java 17 with mvn", 1, 120 * time.Second, below("plugins", "examples/plugins"), languages},
		{"databases", "states and products over PostgreSQL", "a PostgreSQL server", 1, 120 * time.Second, below("sharding/state", "examples/devices"), databases},
		{"pages", "the pages: built anew, and used in a browser", "node 20.19 with npm; Chromium", 1, 180 * time.Second, below("management/page", "examples/bank", "internal/acceptance/processes", "tools/internal/picture"), pages},
	}
}

// Find returns the lane of a name, or an error that names all.
func Find(name string) (Lane, error) {
	var names []string
	for _, l := range Lanes() {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return Lane{}, fmt.Errorf("there is no lane %q; the lanes are: %s", name, strings.Join(names, ", "))
}

// Steps returns what one part of the lane runs, counted from 1; 0 means all parts.
func (l Lane) Steps(ctx context.Context, w *Workspace, part int) []Step {
	if part != 0 || l.Parts == 1 {
		return l.steps(ctx, w, max(part, 1))
	}
	var all []Step
	for part := range l.Parts {
		all = append(all, l.steps(ctx, w, part+1)...)
	}
	return all
}

func goFile(file string) bool { return strings.HasSuffix(file, ".go") }

func below(dirs ...string) func(string) bool {
	return func(file string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
	}
}

func nameOf(names ...string) func(string) bool {
	return func(file string) bool { return slices.Contains(names, filepath.Base(file)) }
}

// gates are the packages whose tests are gates of `make check`, or a lane of their own.
func gates() []string {
	return []string{"tools/consumer", "tools/internal/api", "tools/internal/figures", "tools/internal/history", "tools/internal/platforms", "tools/tree"}
}

// Sequential are the packages that run in one goroutine, tests included: machines, the worlds that they are
// simulated in, wire formats, values. The race detector can find nothing there, and makes each run
// cost five to ten times as much. The checks of the tree look for goroutines in them.
func Sequential() []string {
	return strings.Fields(`
		client/clientsim client/internal/broker cluster/locations/internal/part
		cluster/locations/internal/simulation cluster/locations/locationssim ddata/crdt ddata/ddatasim
		ddata/internal/protocol ddata/internal/simulation ddata/internal/wire downing gateway/gatewaysim
		gateway/internal/exchange gateway/internal/simulation machine/wire membership/internal/protocol
		membership/internal/wire membership/membershipsim membership/membershipsim/scenario
		sharding/delivery/deliverysim sharding/delivery/internal/producer sharding/delivery/internal/workpool
		sharding/delivery/internal/queuefile sharding/delivery/internal/retry
		sharding/delivery/internal/simulation sharding/epoch sharding/internal/cell sharding/internal/control
		sharding/internal/passivation sharding/internal/protocol sharding/internal/remembering
		sharding/internal/simulation sharding/internal/wire sharding/reminder/internal/buckets
		sharding/reminder/internal/simulation sharding/reminder/remindersim sharding/shardingsim
		sharding/state/hold sharding/state/internal/simulation sharding/state/statesim simulation
		tools/internal/picture`)
}

// timeout ends a test that hangs. A machine that is ten times too slow does not reach it.
const timeout = "-timeout=60m"

// waiting is how many packages are tested at once: most of what is in real time waits, and leaves the
// processors to what computes.
func waiting() string { return "-p=" + strconv.Itoa(2*runtime.NumCPU()) }

// spacious lets the compiler, the linker and the tests use more memory before they collect garbage: a sixth of
// the processor's time less.
const spacious = "GOGC=400"

// Tests returns the steps of `make test`: everything that needs no tag. The packages that take longest come first, so
// that none of them is left alone at the end; before them, when documents have changed, those that read documents.
func Tests(w *Workspace, changed bool) []Step {
	long := []string{
		"sharding/internal/simulation", "cluster", "membership/membershipsim", "membership/internal/protocol", "membership",
		"ddata/internal/simulation", "ddata/internal/protocol", "downing",
	}
	plain := without(w.Plain(), gates())
	var steps []Step
	if changed {
		read := only(w.Outside(), plain)
		steps = []Step{{Packages: read, Args: []string{timeout, waiting(), "-count=1"}, Env: []string{spacious}}}
		plain = without(plain, read)
	}
	return append(steps, Step{Packages: append(only(long, plain), without(plain, long)...), Args: []string{timeout, waiting()}, Env: []string{spacious}})
}

func race(ctx context.Context, w *Workspace, part int) []Step {
	all := share(without(w.Plain(), slices.Concat(gates(), Sequential())), part, raceParts)
	// In virtual time the race detector of Go 1.26 keeps one context for the timers of a bubble, and
	// two processors that fire two of them at the same moment corrupt it: a segmentation fault, once in thousands of
	// runs. One processor avoids it and finds the same races, since the detector compares what happened
	// before what, not what ran beside it.
	return []Step{
		{Packages: without(all, w.Bubbles()), Args: []string{"-race", timeout, waiting()}, Env: []string{spacious}, LeftOut: noCompiler(ctx)},
		{Packages: only(all, w.Bubbles()), Args: []string{"-race", "-cpu=1", timeout, waiting()}, Env: []string{spacious}, LeftOut: noCompiler(ctx)},
	}
}

func noCompiler(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "go", "env", "CC").Output()
	cc, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err == nil {
		_, err = exec.LookPath(cc)
	}
	if err != nil {
		return fmt.Sprintf("the race detector needs a C compiler (%s): install one, such as gcc", cc)
	}
	return ""
}

// The first part goes on with fresh seeds over all worlds, for a minute.
func seeds(_ context.Context, w *Workspace, part int) []Step {
	steps := []Step{{Packages: share(w.Seeds(), part, seedParts), Args: []string{"-tags=seeds", timeout}, Env: []string{spacious}}}
	if part == 1 {
		steps = append(steps, Step{Command: []string{"make", "soak", "MINUTES=1", "SOAK_SEED=" + time.Now().UTC().Format("200601021504")}})
	}
	return steps
}

// A mutant is the production code with one defect, built anew, and searched for by the seeds of the
// simulation: the proof that they would find it.
func mutants(_ context.Context, w *Workspace, part int) []Step {
	return []Step{{
		Packages: w.Tagged("mutants"), Args: []string{"-tags=mutants", "-run=Mutants", timeout},
		Env: []string{spacious, fmt.Sprintf("QUORATE_MUTANTS=%d/%d", part, mutantParts)},
	}}
}

// Real processes run without the race detector, one package at a time: their timings are real. The clusters of
// the examples, and of the acceptance tests, wait for seconds most of the time, so that two of these packages run
// at once.
func process(_ context.Context, w *Workspace, part int) []Step {
	all, names := share(w.Tagged("process"), part, processParts), w.Names("process")
	clusters := []string{"examples/...", "internal/acceptance/..."}
	steps := []Step{
		{Packages: without(all, clusters), Args: []string{"-tags=process", names, "-p=1", "-count=1", timeout}},
		{Packages: only(all, clusters), Args: []string{"-tags=process", names, "-p=2", "-count=1", timeout}},
	}
	if part == processParts { // The libraries that are measured beside ours.
		steps = append(steps, Step{Module: "bench/peers", Packages: []string{"..."}, Args: []string{"-tags=process", "-count=1", timeout}})
	}
	return steps
}

// fuzz fuzzes all targets for a moment, and one of each part for longer, in turns: some faults take that.
func fuzz(ctx context.Context, w *Workspace, part int) []Step {
	run := 0
	if commits, err := w.Git(ctx, "log", "--format=%ct %H"); err == nil {
		run, _ = session(commits)
	}
	var steps []Step
	targets := share(w.Targets(), part, fuzzParts)
	for i, target := range targets {
		dir, name, _ := strings.Cut(target, " ")
		time := fuzzTime(i == run/maxRuns%len(targets))
		steps = append(steps, Step{Packages: []string{dir}, Args: []string{"-run=^$", "-fuzz=^" + name + "$", "-fuzztime=" + time, timeout}})
	}
	return steps
}

// fuzzTime is how long a target is fuzzed: FUZZTIME, or some seconds, and longer if it is its turn.
func fuzzTime(longer bool) string {
	if t := os.Getenv("FUZZTIME"); t != "" {
		return t
	}
	if longer {
		return "40s"
	}
	return "3s"
}

func consumer(context.Context, *Workspace, int) []Step {
	return []Step{{Packages: []string{"tools/consumer"}, Args: []string{"-count=1", timeout}}}
}

func servers(ctx context.Context, _ *Workspace, _ int) []Step {
	image := Step{Module: "internal/deploytest", Packages: []string{"image"}, Args: []string{"-tags=namespaces", "-count=1", timeout}}
	if !runs(ctx, "unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt") {
		image.LeftOut = "the image of deploy, since the kernel gives a user no namespaces of its own"
	}
	return []Step{
		{Module: "internal/etcdtest", Packages: []string{"..."}, Args: []string{"-count=1", timeout}},
		{Module: "internal/deploytest", Packages: []string{"..."}, Args: []string{"-count=1", timeout}},
		image,
	}
}

func languages(ctx context.Context, w *Workspace, _ int) []Step {
	var tags []string
	var steps []Step
	if runs(ctx, "python3", "-c", "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))") {
		tags = append(tags, "python")
	} else {
		steps = append(steps, Step{LeftOut: "plugins in Python, since there is no python3 of 3.10 or newer with venv and pip"})
	}
	if runs(ctx, "npm", "--version") && runs(ctx, "node", "-e", "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)") {
		tags = append(tags, "typescript")
	} else {
		steps = append(steps, Step{LeftOut: "plugins in TypeScript, since there is no node of 20 or newer with npm"})
	}
	if runs(ctx, "mvn", "--version") && runs(ctx, "sh", "-c", `javac --version | { read -r _ release; test "${release%%.*}" -ge 17; }`) {
		tags = append(tags, "java")
	} else {
		steps = append(steps, Step{LeftOut: "plugins in Java, since there is no JDK of 17 or newer with mvn"})
	}
	if len(tags) > 0 {
		steps = append(steps, Step{
			Packages: w.Tagged("python", "typescript", "java"),
			Args:     []string{"-tags=" + strings.Join(tags, ","), "-run=Python|TypeScript|Java", "-p=1", "-count=1", timeout},
		})
	}
	return steps
}

func databases(_ context.Context, w *Workspace, _ int) []Step {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if _, err := exec.LookPath("postgres"); err != nil && len(installed) == 0 {
		return []Step{{LeftOut: "PostgreSQL, since there is no server (the package postgresql of Debian)"}}
	}
	return []Step{{Packages: w.Tagged("postgres"), Args: []string{"-tags=postgres,process", "-run=Postgres", "-p=1", "-count=1", timeout}}}
}

func pages(ctx context.Context, _ *Workspace, _ int) []Step {
	if !runs(ctx, "npm", "--version") || !runs(ctx, "node", "-e", "const [a, b] = process.versions.node.split('.'); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)") {
		return []Step{{LeftOut: "the pages, since there is no node of 20.19 or newer with npm"}}
	}
	browser := Step{Packages: []string{"internal/acceptance/processes", "tools/internal/picture"}, Args: []string{"-tags=process,chromium", "-run=Chromium", "-p=1", "-count=1", timeout}}
	if chromium := chromium(); chromium != "" {
		browser.Env = []string{"CHROMIUM=" + chromium}
	} else {
		browser.LeftOut = "the pages in a browser, since there is no chromium (CHROMIUM names one)"
	}
	return []Step{{Command: []string{"make", "page"}}, browser}
}

func chromium() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); name != "" && err == nil {
			return found
		}
	}
	return ""
}

func runs(ctx context.Context, name string, args ...string) bool {
	return exec.CommandContext(ctx, name, args...).Run() == nil
}
