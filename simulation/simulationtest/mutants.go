// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulationtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A defect is put into a copy of the code, the tests of a package are built over that copy
// (the overlay of go build: no file of the tree is touched), and each of the tests that must
// find it runs until one of them fails. Defects that can be switched on share one copy.

// Mutant is a defect that is put into the code, and the tests of which one must find it.
type Mutant struct {
	// Name says what is wrong. It is unique.
	Name string
	// Edits are the places of the defect. None at all are allowed if the edits of another
	// mutant ask for the name of this one.
	Edits []Edit
	// Package is the directory of the tests, from that of the test that runs now. Empty, it
	// is that directory.
	Package string
	// Tests are the names of the tests, which run in this order until one fails.
	Tests []string
	// Panics says that the defect shows as a panic of the code, in the test that finds it. Any
	// other mutant must make a check fail.
	Panics bool
	// Env is what the environment of the tests has besides, as KEY=VALUE.
	Env []string
}

// Edit is one place of a defect.
type Edit struct {
	// File is the name of the file, from the directory that RequireFound was given.
	File string
	// Old is a text that occurs once in the file.
	Old string
	// New is what stands there instead. Where it has mutant(NAME), that is true in runs of
	// this mutant alone, and mutant("another name") in those of another: such a defect is
	// built once with all others of its kind. NAME stands for the name of the mutant.
	New string
}

// The names by which the code asks whether a defect is switched on.
const (
	mutantVariable = "QUORATE_MUTANT"
	partVariable   = "QUORATE_MUTANTS" // Which part of the mutants is looked for, see [RequireFound].
	mutantCall     = "mutant("
	mutantFile     = "mutant.go"
	mutantSource   = `package %s

import "os"

var mutantSwitchedOn = os.Getenv(%q)

func mutant(name string) bool { return name == mutantSwitchedOn }
`
)

// RequireFound fails the test unless each of the mutants makes a check fail in one of its tests, which are built with
// the build tag seeds, so that all that they do beyond the usual is done. dir is the directory from which edits name
// their files. The mutants are parallel subtests, all of which have ended when RequireFound returns.
//
// With QUORATE_MUTANTS=1/3 in the environment each third of them is looked for, from the first on, with 2/3 and 3/3 the
// others. In any case it is checked that the edits of all fit the code, and that it compiles with those that can be
// switched on.
func RequireFound(t *testing.T, dir string, mutants []Mutant) {
	t.Helper()
	wanted, err := parted(mutants, os.Getenv(partVariable))
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{dir: dir, tmp: t.TempDir(), shared: map[string]binary{}}
	for _, m := range mutants {
		if err := b.fits(m); err != nil {
			t.Error(err)
		}
		if m.switched() {
			b.switched = append(b.switched, m)
		}
	}
	if err := b.compiles(t.Context()); err != nil {
		t.Error(err)
	}
	t.Run("mutants", func(t *testing.T) {
		for _, m := range wanted {
			t.Run(m.Name, func(t *testing.T) {
				t.Parallel()
				b.requireFound(t, m)
			})
		}
	})
}

// parted returns the mutants of a part, such as "2/3", or all.
func parted(mutants []Mutant, part string) (wanted []Mutant, err error) {
	if part == "" {
		return mutants, nil
	}
	which, of, _ := strings.Cut(part, "/")
	k, err := strconv.Atoi(which)
	n, err2 := strconv.Atoi(of)
	if err != nil || err2 != nil || k < 1 || k > n {
		return nil, fmt.Errorf("%s=%s: want a part such as 2/3", partVariable, part)
	}
	for i := k - 1; i < len(mutants); i += n {
		wanted = append(wanted, mutants[i])
	}
	return wanted, nil
}

// fits reports an edit that does not fit the code.
func (b *builder) fits(m Mutant) error {
	sources := map[string]string{}
	for _, e := range m.Edits {
		if err := b.change(sources, m.Name, e); err != nil {
			return err
		}
	}
	return nil
}

// compiles reports why the code does not compile with all mutants that are switched on.
func (b *builder) compiles(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var packages []string
	for _, m := range b.switched {
		for _, e := range m.Edits {
			packages = append(packages, "./"+filepath.Dir(e.File))
		}
	}
	if len(packages) == 0 {
		return nil
	}
	overlay, err := b.write(b.switched...)
	if err != nil {
		return err
	}
	b.overlay = overlay
	slices.Sort(packages)
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-tags", "seeds", "-overlay", overlay}, slices.Compact(packages))...)
	cmd.Dir = b.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not compile with the defects: %w\n%s", b.dir, err, out)
	}
	return nil
}

// requireFound fails the test of one mutant unless that is found.
func (b *builder) requireFound(t *testing.T, m Mutant) {
	t.Helper()
	binary, err := b.binary(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	found, err := m.find(t.Context(), binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(found)
	if !m.switched() {
		_ = os.RemoveAll(filepath.Dir(binary)) // Dozens of binaries would be a gigabyte.
	}
}

// switched reports whether the defect is there only when it is switched on.
func (m Mutant) switched() bool {
	return len(m.Edits) == 0 || slices.ContainsFunc(m.Edits, func(e Edit) bool { return strings.Contains(e.New, mutantCall) })
}

// find runs the tests, and returns the name of the one that has found the defect and what
// it says. An error says that none has.
func (m Mutant) find(ctx context.Context, binary string) (string, error) {
	for _, test := range m.Tests {
		cmd := exec.CommandContext(ctx, binary, "-test.run", "^"+test+"$", "-test.failfast", "-test.timeout", "5m")
		cmd.Dir = m.Package
		cmd.Env = slices.Concat(os.Environ(), m.Env, []string{mutantVariable + "=" + m.Name})
		out, err := cmd.CombinedOutput()
		if err == nil {
			continue
		}
		words := m.finding(string(out))
		if words == "" || !strings.Contains(string(out), "--- FAIL: "+test) {
			return "", fmt.Errorf("%s: no check has failed, but the program: %w\n%s", test, err, out)
		}
		return "found by " + test + ": " + words, nil
	}
	return "", fmt.Errorf("%s: green with the defect", strings.Join(m.Tests, ", "))
}

// finding returns the lines of a failed test that say what was found: a violation of a
// simulated world, a check of testify, a wait that ended, the seed, or a panic if that is what is looked for.
// A wait of internal/patience ends when the code had a minute of running time, so that a busy machine alone makes no
// finding, unless it is ten times too slow.
func (m Mutant) finding(out string) string {
	marks := []string{"violation at ", "Error:", "Messages:", "it was not so: ", "there was not: ", "replay: "}
	if m.Panics {
		marks = []string{"panic: "}
	}
	var lines []string
	for line := range strings.Lines(out) {
		for _, mark := range marks {
			if strings.Contains(line, mark) {
				lines = append(lines, strings.TrimSpace(line))
				break
			}
		}
	}
	return strings.Join(lines, "\n")
}

// builder builds tests over code with defects. Parallel tests may call binary.
type builder struct {
	dir      string   // From where edits name their files.
	tmp      string   // Where the copies and the binaries are.
	switched []Mutant // The mutants that are switched on.

	mu      sync.Mutex        // Guards what follows.
	built   int               // How many copies of the code there are.
	overlay string            // The copy with all mutants that are switched on, once it is made.
	shared  map[string]binary // The binaries over that copy, by the directory of their tests.
}

// binary is the path of the tests of a package, or why there are none.
type binary struct {
	path string
	err  error
}

// binary returns the path of the tests of a mutant.
func (b *builder) binary(ctx context.Context, m Mutant) (string, error) {
	if m.switched() {
		return b.sharedBinary(ctx, m.Package)
	}
	b.mu.Lock()
	overlay, err := b.write(m)
	b.mu.Unlock()
	if err != nil {
		return "", err
	}
	return build(ctx, overlay, m.Package, "alone")
}

// sharedBinary returns the path of the tests of a package over the copy of the code with all
// mutants that are switched on. Who asks while it is built waits.
func (b *builder) sharedBinary(ctx context.Context, pkg string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if built, ok := b.shared[pkg]; ok {
		return built.path, built.err
	}
	var err error
	if b.overlay == "" {
		if b.overlay, err = b.write(b.switched...); err != nil {
			return "", err
		}
	}
	path, err := build(ctx, b.overlay, pkg, strconv.Itoa(len(b.shared)))
	b.shared[pkg] = binary{path, err}
	return path, err
}

// build builds the tests of a package over a copy of the code, without what a debugger needs.
func build(ctx context.Context, overlay, pkg, name string) (string, error) {
	binary := filepath.Join(filepath.Dir(overlay), name+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-tags", "seeds", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	cmd.Dir = pkg
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the tests of %q do not build with the defect: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// write writes a copy of the files that mutants change, and returns the file that names
// them for the build. The builder is locked.
func (b *builder) write(mutants ...Mutant) (overlay string, err error) {
	sources := map[string]string{}
	for _, m := range mutants {
		for _, e := range m.Edits {
			if err := b.change(sources, m.Name, e); err != nil {
				return "", err
			}
		}
	}
	b.built++
	dir, replace := filepath.Join(b.tmp, strconv.Itoa(b.built)), map[string]string{}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	for i, path := range slices.Sorted(maps.Keys(sources)) {
		replace[path] = filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(replace[path], []byte(sources[path]), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// change makes one edit in the sources, which are by their paths and are read when they are
// first needed. A package whose code asks what is switched on gets a file that says it.
func (b *builder) change(sources map[string]string, name string, e Edit) error {
	path, err := filepath.Abs(filepath.Join(b.dir, e.File))
	if err != nil {
		return err
	}
	source, read := sources[path]
	if !read {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		source = string(text)
	}
	if n := strings.Count(source, e.Old); n != 1 {
		return fmt.Errorf("the defect %q no longer fits %s: its text is there %d times", name, e.File, n)
	}
	sources[path] = strings.Replace(source, e.Old, strings.ReplaceAll(e.New, "NAME", strconv.Quote(name)), 1)
	if !strings.Contains(e.New, mutantCall) {
		return nil
	}
	clause, err := parser.ParseFile(token.NewFileSet(), path, source, parser.PackageClauseOnly)
	if err != nil {
		return errors.Join(fmt.Errorf("%s: no package", e.File), err)
	}
	sources[filepath.Join(filepath.Dir(path), mutantFile)] = fmt.Sprintf(mutantSource, clause.Name.Name, mutantVariable)
	return nil
}
