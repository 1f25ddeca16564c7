// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package lanes

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// [Open] reads go.work and the head of every test file. The methods below choose directories by what
// stands there; the functions at the end are for lists of directories.

// A Workspace is the tree with its modules and test files. It is read once ([Open]).
type Workspace struct {
	Root    string
	Modules []string // directories, as in go.work
	files   []testFile
}

// testFile is one _test.go file.
type testFile struct {
	dir        string // relative to the root, with slashes
	constraint string // the expression of its go:build line, or ""
	bubble     bool   // has tests in virtual time
	seeds      bool   // has tests with more seeds in the lane of them
	tests      []string
	fuzz       []string
	reads      []string // paths that lead upwards, relative to dir
}

// Apart are modules that go.work does not name: each needs a server, or other libraries, so heavy that
// it would raise the versions of the whole build list.
func Apart() []string { return []string{"internal/etcdtest", "internal/deploytest", "bench/peers"} }

// Open reads the workspace at root.
func Open(root string) (*Workspace, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	w := &Workspace{Root: root}
	for _, use := range regexp.MustCompile(`(?m)^\s*\./(\S+)$`).FindAllStringSubmatch(string(data), -1) {
		w.Modules = append(w.Modules, use[1])
	}
	for _, m := range w.Modules {
		if err := w.readModule(m); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Workspace) readModule(module string) error {
	return filepath.WalkDir(filepath.Join(w.Root, module), func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(w.Root, name) // Both are absolute, or neither is.
		rel = filepath.ToSlash(rel)
		switch base := entry.Name(); {
		case entry.IsDir() && rel != module && (base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") || slices.Contains(w.Modules, rel) || slices.Contains(Apart(), rel)):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(base, "_test.go"):
			return w.readFile(rel)
		}
		return nil
	})
}

func (w *Workspace) readFile(name string) error {
	file, err := os.Open(filepath.Join(w.Root, name))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // It was only read.
	t := testFile{dir: path.Dir(name)}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "//go:build "); ok {
			t.constraint = rest
		}
		t.seeds = t.seeds || strings.Contains(line, "simulationtest.Times") || strings.Contains(line, "simulationtest.Within(")
		t.reads = append(t.reads, upwards(line)...)
		t.bubble = t.bubble || line == "\t\"testing/synctest\""
		if rest, ok := strings.CutPrefix(line, "func "); ok {
			name, _, _ := strings.Cut(rest, "(")
			switch {
			case strings.HasPrefix(name, "Test") && name != "TestMain":
				t.tests = append(t.tests, name)
			case strings.HasPrefix(name, "Fuzz"):
				t.fuzz = append(t.fuzz, name)
			}
		}
	}
	w.files = append(w.files, t)
	return lines.Err()
}

// upward matches a path in quotes that leads upwards, in one text or in several that are joined.
var upward = regexp.MustCompile(`"\.\./[^"]*"|"\.\."(?:,\s*"[^"]*")+`)

// upwards returns the paths of a line that lead upwards.
func upwards(line string) (paths []string) {
	for _, found := range upward.FindAllString(line, -1) {
		parts := strings.Split(found, ",")
		for i := range parts {
			parts[i] = strings.Trim(strings.TrimSpace(parts[i]), `"`)
		}
		paths = append(paths, path.Join(parts...))
	}
	return paths
}

// dirs returns the directories of the test files that are wanted, sorted.
func (w *Workspace) dirs(wanted func(testFile) bool) []string {
	var dirs []string
	for _, f := range w.files {
		if wanted(f) {
			dirs = append(dirs, f.dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// All returns the directories of all packages with tests.
func (w *Workspace) All() []string { return w.dirs(func(testFile) bool { return true }) }

// Tagged returns those with a test file whose constraint names one of the tags.
func (w *Workspace) Tagged(tags ...string) []string {
	word := regexp.MustCompile(`\b(` + strings.Join(tags, "|") + `)\b`)
	return w.dirs(func(f testFile) bool { return word.MatchString(f.constraint) })
}

// Names returns the flag that runs the tests in files whose constraint names one of the tags, and no others.
func (w *Workspace) Names(tags ...string) string {
	word := regexp.MustCompile(`\b(` + strings.Join(tags, "|") + `)\b`)
	var names []string
	for _, f := range w.files {
		if word.MatchString(f.constraint) {
			names = append(names, f.tests...)
		}
	}
	slices.Sort(names)
	return "-run=^(" + strings.Join(slices.Compact(names), "|") + ")$"
}

// Plain returns those that have tests without any tag of a lane.
func (w *Workspace) Plain() []string { return w.dirs(testFile.plain) }

// tagged matches a constraint that names the tag of a lane.
var tagged = regexp.MustCompile(`(^|[^!])\b(process|python|typescript|java|postgres|chromium|mutants|seeds|namespaces|lint|traces|race)\b`)

func (f testFile) plain() bool { return !tagged.MatchString(f.constraint) }

// Bubbles returns those that have tests in virtual time.
func (w *Workspace) Bubbles() []string { return w.dirs(func(f testFile) bool { return f.bubble }) }

// Seeds returns those whose tests have more seeds with the build tag seeds.
func (w *Workspace) Seeds() []string { return w.dirs(func(f testFile) bool { return f.seeds }) }

// Targets returns the fuzz targets as "directory name", sorted.
func (w *Workspace) Targets() []string {
	var targets []string
	for _, f := range w.files {
		for _, name := range f.fuzz {
			targets = append(targets, f.dir+" "+name)
		}
	}
	slices.Sort(targets)
	return targets
}

// Outside returns those with a test, without a tag of a lane, that reads something of the tree outside of its module.
// Go remembers the result of such a test although that has changed.
func (w *Workspace) Outside() []string {
	return w.dirs(func(f testFile) bool {
		return f.plain() && slices.ContainsFunc(f.reads, func(name string) bool {
			name = path.Join(f.dir, name)
			if name == ".." || strings.HasPrefix(name, "../") || w.moduleOf(name) == w.moduleOf(f.dir) {
				return false
			}
			_, err := os.Stat(filepath.Join(w.Root, filepath.FromSlash(name)))
			return err == nil
		})
	})
}

// Module returns the module with a name, or an error that names the modules.
func (w *Workspace) Module(name string) (string, error) {
	name = strings.Trim(strings.TrimPrefix(name, "./"), "/")
	if slices.Contains(w.Modules, name) {
		return name, nil
	}
	return "", fmt.Errorf("there is no module %q; the modules are: %s", name, strings.Join(w.Modules, ", "))
}

// In returns those of the directories that belong to a module and to none below it.
func (w *Workspace) In(module string, dirs []string) []string {
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return w.moduleOf(dir) != module })
}

func (w *Workspace) moduleOf(dir string) string {
	best := ""
	for _, m := range w.Modules {
		if (dir == m || strings.HasPrefix(dir, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// without returns the items that are not in others, which may end with "/..." for all below.
func without(items, others []string) []string {
	return slices.DeleteFunc(slices.Clone(items), func(item string) bool {
		return slices.ContainsFunc(others, func(other string) bool {
			above, all := strings.CutSuffix(other, "/...")
			return item == above || all && strings.HasPrefix(item, above+"/")
		})
	})
}

// only returns the items that are in others, which may end with "/..." for all below.
func only(items, others []string) []string { return without(items, without(items, others)) }

// share returns the part-th of so many parts of a sorted list, counted from 1. Neighbours come
// to different parts.
func share(items []string, part, parts int) []string {
	var own []string
	for i, item := range items {
		if i%parts == part-1 {
			own = append(own, item)
		}
	}
	return own
}

// Git runs git in the tree, and returns the lines of its output.
func (w *Workspace) Git(ctx context.Context, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = w.Root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" }), nil
}

// byLength sorts the largest first, and equals by name.
func byLength[T any](items []T, length func(T) float64, name func(T) string) {
	slices.SortFunc(items, func(a, b T) int {
		return cmp.Or(cmp.Compare(length(b), length(a)), cmp.Compare(name(a), name(b)))
	})
}
