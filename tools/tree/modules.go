// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// These checks compare the modules with the table of the architecture ([moduleTable]),
// with go.work, with each other's replaces and versions, and look for the files that each
// module must have.

const (
	architecture = "docs/architecture.md"
	goVersion    = "1.26.0"
)

// ParseTable reads the table under the heading "## Modules": the first column is
// a module's directory, the last one the modules that it imports, separated
// by commas, or "nothing".
func ParseTable(markdown string) (map[string][]string, error) {
	rows, err := rowsUnder(markdown, "Modules", 3)
	if err != nil {
		return nil, err
	}
	table := map[string][]string{}
	for _, cells := range rows {
		name := strings.Trim(cells[0], "`")
		if _, twice := table[name]; twice {
			return nil, fmt.Errorf("%s: two rows for %q", architecture, name)
		}
		table[name] = []string{}
		last := cells[len(cells)-1]
		if last == "nothing" {
			continue
		}
		for other := range strings.SplitSeq(last, ",") {
			table[name] = append(table[name], strings.Trim(other, " `"))
		}
	}
	return table, nil
}

func moduleTable(r *Repository) ([]Fault, error) {
	text, err := os.ReadFile(filepath.Join(r.Root, architecture))
	if err != nil {
		return nil, err
	}
	table, err := ParseTable(string(text))
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for _, m := range r.Modules {
		if _, ok := table[m.Dir]; !ok {
			faults = append(faults, Fault{File: architecture, Text: fmt.Sprintf("the table has no row for the module %s", m.Dir)})
		}
	}
	names := slices.Sorted(maps.Keys(table))
	for _, name := range names {
		if !slices.ContainsFunc(r.Modules, func(m *Module) bool { return m.Dir == name }) {
			faults = append(faults, Fault{File: architecture, Text: fmt.Sprintf("the table has a row for %s, which is no module", name)})
		}
	}
	used := map[string][]string{}
	r.imports(func(f *File, imported string, pos token.Pos) {
		other := r.moduleOfImport(imported)
		if other == nil || f.Module == nil || other == f.Module || isForTests(other) {
			return
		}
		if used[f.Module.Dir] = append(used[f.Module.Dir], other.Dir); slices.Contains(table[f.Module.Dir], other.Dir) {
			return
		}
		faults = append(faults, r.at(pos, "%s imports %s; the table in %s allows it: %s",
			f.Module.Dir, imported, architecture, listOr(table[f.Module.Dir], "nothing")))
	})
	for _, name := range names {
		for _, other := range table[name] {
			if !slices.Contains(used[name], other) {
				faults = append(faults, Fault{File: architecture, Text: fmt.Sprintf("the row of %s has %s, which it does not import", name, other)})
			}
		}
	}
	return faults, nil
}

func listOr(items []string, none string) string {
	if len(items) == 0 {
		return none
	}
	return strings.Join(items, ", ")
}

// isForTests says whether a module is for the tests of all others: it is below the directory internal of
// the root, and has no programs. The table does not list who imports it, and no program may.
func isForTests(m *Module) bool {
	return strings.HasPrefix(m.Dir, "internal/") && !slices.Contains(programModules(), m.Dir)
}

func internalImports(r *Repository) []Fault {
	var faults []Fault
	r.imports(func(f *File, imported string, pos token.Pos) {
		other := r.moduleOfImport(imported)
		if other == nil || other == f.Module || isForTests(other) && f.ForTests() {
			return
		}
		if slices.Contains(strings.Split(imported, "/"), "internal") {
			faults = append(faults, r.at(pos, "%s is internal to the module %s", imported, other.Dir))
		}
	})
	return faults
}

func workspace(r *Repository) []Fault {
	var faults []Fault
	fault := func(format string, args ...any) {
		faults = append(faults, Fault{File: "go.work", Text: fmt.Sprintf(format, args...)})
	}
	var used []string
	for _, use := range r.Work.Use {
		used = append(used, path.Clean(use.Path))
	}
	if !slices.IsSorted(used) {
		fault("the use lines are not sorted")
	}
	for _, m := range r.Modules {
		if !slices.Contains(used, m.Dir) {
			fault("the module %s is missing", m.Dir)
		}
	}
	for _, dir := range used {
		if !slices.ContainsFunc(r.Modules, func(m *Module) bool { return m.Dir == dir }) {
			fault("%s is no module", dir)
		}
	}
	if r.Work.Go == nil || r.Work.Go.Version != goVersion || r.Work.Toolchain != nil {
		fault("must say go %s and have no toolchain line", goVersion)
	}
	return faults
}

func replaces(r *Repository) []Fault {
	var faults []Fault
	for _, m := range r.Modules {
		name := m.Dir + "/go.mod"
		fault := func(format string, args ...any) {
			faults = append(faults, Fault{File: name, Text: fmt.Sprintf(format, args...)})
		}
		if m.Mod.Go == nil || m.Mod.Go.Version != goVersion || m.Mod.Toolchain != nil {
			fault("must say go %s and have no toolchain line: it spreads to whoever imports the module", goVersion)
		}
		for _, replace := range m.Mod.Replace {
			sibling := r.moduleOfImport(replace.Old.Path)
			if sibling == nil || sibling.Path != replace.Old.Path {
				fault("replaces %s, which is no module of this tree: users would not get the replacement", replace.Old.Path)
			} else if path.Join(m.Dir, replace.New.Path) != sibling.Dir {
				fault("replaces %s by %s, which is not where it is", replace.Old.Path, replace.New.Path)
			}
		}
		for _, sibling := range r.siblings(m) {
			if !slices.ContainsFunc(m.Mod.Replace, func(x *modfile.Replace) bool { return x.Old.Path == sibling.Path }) {
				fault("needs %s, at least indirectly, and does not replace it", sibling.Path)
			}
		}
	}
	return faults
}

// siblings lists the modules of this tree that m requires, transitively.
func (r *Repository) siblings(m *Module) []*Module {
	var found []*Module
	queue := []*Module{m}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		for _, require := range next.Mod.Require {
			other := r.moduleOfImport(require.Mod.Path)
			if other != nil && other.Path == require.Mod.Path && other != m && !slices.Contains(found, other) {
				found = append(found, other)
				queue = append(queue, other)
			}
		}
	}
	return found
}

func versions(r *Repository) []Fault {
	var faults []Fault
	type seen struct{ version, dir string }
	first := map[string]seen{}
	for _, m := range r.Modules {
		for _, require := range m.Mod.Require {
			if r.moduleOfImport(require.Mod.Path) != nil {
				continue
			}
			earlier, ok := first[require.Mod.Path]
			if !ok {
				first[require.Mod.Path] = seen{require.Mod.Version, m.Dir}
			} else if earlier.version != require.Mod.Version {
				faults = append(faults, Fault{File: m.Dir + "/go.mod", Text: fmt.Sprintf("requires %s, but %s requires %s",
					require.Mod, earlier.dir, earlier.version)})
			}
		}
	}
	return faults
}

func moduleFiles(r *Repository) []Fault {
	var faults []Fault
	for _, m := range r.Modules {
		for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
			if _, err := os.Stat(filepath.Join(r.Root, m.Dir, name)); err != nil {
				faults = append(faults, Fault{File: m.Dir, Text: "has no " + name})
			}
		}
	}
	return faults
}
