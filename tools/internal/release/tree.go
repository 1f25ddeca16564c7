// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// A tree is loaded from go.work ([Load]); the modules that get a tag are sorted so that
// each comes after its requirements ([order]), which is the order of release.

// Unreleased names the directories of the modules of this repository that get no
// tag, with the reason.
func Unreleased() map[string]string {
	return map[string]string{
		"bench":               "what measures this repository",
		"bench/peers":         "what measures other libraries beside this repository",
		"examples":            "programs to copy, read at the tag of what they use",
		"examples/plugins":    "plugins to copy, read at the tag of what they use",
		"internal/acceptance": "what kills, freezes and audits this repository's own programs",
		"internal/deploytest": "the tests of deploy, which need kustomize, Kubernetes and Prometheus",
		"internal/devtools":   "the pinned tools of the developers",
		"internal/etcdtest":   "the tests of the modules over etcd that need a server",
	}
}

// Module is one Go module of the repository.
type Module struct {
	Dir  string // relative to the root, with slashes
	Path string // the import path
	Mod  *modfile.File
}

// Tag returns the name of the tag by which the go command finds the version.
func (m *Module) Tag(version string) string { return m.Dir + "/" + version }

// Tree is the modules of a work tree.
type Tree struct {
	Root string
	// Modules are those that are released, each after all that it requires.
	Modules []*Module
	// Kept are the modules of the workspace that get no tag, sorted by Dir.
	Kept []*Module
}

// Load reads the modules that the go.work of the tree names; without says which of them
// get no tag. Load fails if two released modules require each other, their tests
// included: there would be no order in which to publish them.
func Load(root string, without map[string]string) (*Tree, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, fmt.Errorf("release: %w", err)
	}
	t := &Tree{Root: root}
	for _, use := range work.Use {
		m, err := readModule(root, path.Clean(use.Path))
		if err != nil {
			return nil, fmt.Errorf("release: %w", err)
		}
		if _, kept := without[m.Dir]; kept {
			t.Kept = append(t.Kept, m)
		} else {
			t.Modules = append(t.Modules, m)
		}
	}
	slices.SortFunc(t.Kept, func(a, b *Module) int { return cmp.Compare(a.Dir, b.Dir) })
	return t, errors.Join(t.known(without), t.order())
}

func readModule(root, dir string) (*Module, error) {
	name := path.Join(dir, "go.mod")
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return nil, err
	}
	if mod.Module == nil {
		return nil, fmt.Errorf("%s: no module line", name)
	}
	return &Module{Dir: dir, Path: mod.Module.Mod.Path, Mod: mod}, nil
}

// known refuses a name in without that no module has: the list would excuse the next
// module of that name.
func (t *Tree) known(without map[string]string) error {
	var faults []error
	for _, dir := range slices.Sorted(maps.Keys(without)) {
		if _, err := readModule(t.Root, dir); err != nil {
			faults = append(faults, fmt.Errorf("release: %s is listed as a module without releases (%s): %w", dir, without[dir], err))
		}
	}
	return errors.Join(faults...)
}

// released returns the released module with an import path, or nil.
func (t *Tree) released(path string) *Module { return named(t.Modules, path) }

// kept returns the module without releases with an import path, or nil.
func (t *Tree) kept(path string) *Module { return named(t.Kept, path) }

func named(modules []*Module, path string) *Module {
	at := slices.IndexFunc(modules, func(m *Module) bool { return m.Path == path })
	if at < 0 {
		return nil
	}
	return modules[at]
}

// order sorts the released modules so that each comes after all that it requires.
// Requirements of tests alone count like any other.
func (t *Tree) order() error {
	slices.SortFunc(t.Modules, func(a, b *Module) int { return cmp.Compare(a.Dir, b.Dir) })
	sorted := make([]*Module, 0, len(t.Modules))
	var trail []string // the modules being placed, each required by the one before
	var place func(m *Module) error
	place = func(m *Module) error {
		if slices.Contains(sorted, m) {
			return nil
		}
		if at := slices.Index(trail, m.Dir); at >= 0 {
			return fmt.Errorf("release: modules that require each other cannot be published in any order: %s",
				strings.Join(append(trail[at:], m.Dir), " requires "))
		}
		trail = append(trail, m.Dir)
		defer func() { trail = trail[:len(trail)-1] }()
		for _, require := range m.Mod.Require {
			if sibling := t.released(require.Mod.Path); sibling != nil {
				if err := place(sibling); err != nil {
					return err
				}
			}
		}
		sorted = append(sorted, m)
		return nil
	}
	for _, m := range t.Modules {
		if err := place(m); err != nil {
			return err
		}
	}
	t.Modules = sorted
	return nil
}
