// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Whether a module's requirements of siblings are the lowest that work: [Tree.Against] builds, vets and tests it with
// the siblings at exactly the versions that its go.mod requires, as their tags have them, and with earlier ones, which
// must not do. What is pending is taken from the tree.

// Against reports the requirements of a module that are too low or too high. Scratch is a directory for the content of
// tags and for files go.mod; it may be used again.
func (t *Tree) Against(ctx context.Context, m *Module, scratch string) error {
	tags, err := t.tags(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Mod.Require, func(r *modfile.Require) bool { return t.pinned(r) }) {
		return nil // All siblings are those of the tree, with which every other check builds.
	}
	if err := t.try(ctx, m, scratch, nil); err != nil {
		return fmt.Errorf("%s does not pass with the versions that it requires: require the one that has what it uses, or mark it // pending: %w", m.Dir, err)
	}
	var faults []error
	for _, require := range m.Mod.Require {
		versions := tags[t.dirOf(require.Mod.Path)]
		at := slices.Index(versions, require.Mod.Version)
		if !t.pinned(require) || require.Indirect || at < 1 || isExplained(require) {
			continue
		}
		if lower := versions[at-1]; t.try(ctx, m, scratch, map[string]string{require.Mod.Path: lower}) == nil {
			faults = append(faults, fmt.Errorf("%s requires %s, and passes with %s: require that, or say in a comment // needs what it is needed for",
				m.Dir, require.Mod, lower))
		}
	}
	return errors.Join(faults...)
}

// pinned reports whether a requirement is one of a released version of a sibling.
func (t *Tree) pinned(r *modfile.Require) bool {
	return t.released(r.Mod.Path) != nil && !isPending(r)
}

// isExplained reports whether a comment says for what a version is needed that no test shows.
func isExplained(r *modfile.Require) bool {
	return slices.ContainsFunc(r.Syntax.Suffix, func(c modfile.Comment) bool { return strings.Contains(c.Token, "needs ") })
}

func (t *Tree) dirOf(path string) string {
	if m := t.released(path); m != nil {
		return m.Dir
	}
	return ""
}

// errForced says that a lower version is not to be had, since another requirement is of a higher one.
var errForced = errors.New("another requirement is of a higher version")

// try builds, vets and tests a module against its siblings at the versions that it requires, or that are given instead.
func (t *Tree) try(ctx context.Context, m *Module, scratch string, instead map[string]string) error {
	name, err := t.modfile(ctx, m, scratch, instead)
	if err != nil {
		return err
	}
	env, dir := []string{"GOWORK=off", "GOFLAGS=-mod=mod"}, filepath.Join(t.Root, filepath.FromSlash(m.Dir))
	for path, version := range instead {
		said, err := command(ctx, dir, env, "go", "list", "-modfile="+name, "-m", "-f", "{{.Version}}", path)
		if err != nil {
			return err
		}
		if strings.TrimSpace(said) != version {
			return errForced
		}
	}
	for _, args := range [][]string{{"build"}, {"vet"}, {"test", "-short"}} {
		if _, err := command(ctx, dir, env, "go", append(append(args, "-modfile="+name), "./...")...); err != nil {
			return err
		}
	}
	return nil
}

// modfile writes a go.mod for a module, in which each release of a sibling that the requirements reach is replaced by
// the content of its tag, and returns its name.
func (t *Tree) modfile(ctx context.Context, m *Module, scratch string, instead map[string]string) (string, error) {
	text, err := m.Mod.Format()
	if err != nil {
		return "", err
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		return "", err
	}
	for path, version := range instead {
		if err := mod.AddRequire(path, version); err != nil {
			return "", err
		}
	}
	tree, tagged, err := t.reached(ctx, mod)
	if err != nil {
		return "", err
	}
	for _, replace := range slices.Clone(mod.Replace) {
		if t.released(replace.Old.Path) == nil || tree[replace.Old.Path] {
			continue
		}
		if err := mod.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return "", err
		}
	}
	for _, v := range tagged {
		dir, err := t.extract(ctx, v, scratch)
		if err != nil {
			return "", err
		}
		if err := mod.AddReplace(v.Path, v.Version, dir, ""); err != nil {
			return "", err
		}
	}
	mod.Cleanup()
	if text, err = mod.Format(); err != nil {
		return "", err
	}
	name := filepath.Join(scratch, strings.ReplaceAll(m.Dir, "/", "-")+".mod")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return "", err
	}
	sums, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(m.Dir), "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return name, os.WriteFile(strings.TrimSuffix(name, ".mod")+".sum", sums, 0o644)
}

// reached follows the requirements of siblings: tree are those that are pending somewhere, and are taken from the tree;
// tagged are the releases of the others, sorted.
func (t *Tree) reached(ctx context.Context, mod *modfile.File) (tree map[string]bool, tagged []module.Version, err error) {
	tree = map[string]bool{}
	seen, open := map[module.Version]bool{}, slices.Clone(mod.Require)
	for len(open) > 0 {
		require := open[0]
		open = open[1:]
		m := t.released(require.Mod.Path)
		switch {
		case m == nil || seen[require.Mod]:
		case isPending(require):
			seen[require.Mod], tree[m.Path] = true, true
			open = append(open, m.Mod.Require...)
		default:
			seen[require.Mod] = true
			text, err := show(ctx, t.Root, m, require.Mod.Version, "go.mod")
			if err != nil {
				return nil, nil, err
			}
			old, err := modfile.Parse("go.mod", []byte(text), nil)
			if err != nil {
				return nil, nil, err
			}
			open = append(open, old.Require...)
		}
	}
	for v := range maps.Keys(seen) {
		if !tree[v.Path] {
			tagged = append(tagged, v)
		}
	}
	slices.SortFunc(tagged, func(a, b module.Version) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), semver.Compare(a.Version, b.Version))
	})
	return tree, tagged, nil
}

// extract puts the content of a tag of a sibling below the scratch directory, and returns where.
func (t *Tree) extract(ctx context.Context, v module.Version, scratch string) (string, error) {
	m := t.released(v.Path)
	at := filepath.Join(scratch, filepath.FromSlash(m.Dir)+"@"+v.Version)
	if _, err := os.Stat(at); err == nil {
		return at, nil // A tag never moves.
	}
	archive := at + ".tar"
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	if _, err := git(ctx, t.Root, nil, "archive", "-o", archive, m.Tag(v.Version)+":"+m.Dir); err != nil {
		return "", err
	}
	defer os.Remove(archive) //nolint:errcheck // It is in a scratch directory.
	if _, err := command(ctx, at, nil, "tar", "-xf", archive); err != nil {
		return "", err
	}
	return at, nil
}
