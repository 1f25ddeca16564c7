// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/quorate/quorate/tools/internal/api"
)

// Which module gets which version: [Tree.NextVersions] finds the modules that have changed since their last tags,
// with the step that their changelogs and their interfaces say, and those that have to follow.

// Step is how far a version moves.
type Step uint8

// The steps, smallest first. Before v1 a breaking one raises the minor number, as an addition does.
const (
	StepNone Step = iota
	StepPatch
	StepMinor
	StepBreaking
)

// String names the step.
func (s Step) String() string { return [...]string{"none", "patch", "minor", "breaking"}[s] }

// NextVersion is the version that a module gets in the next release, and why.
type NextVersion struct {
	Module  *Module
	Last    string // The version that it has; empty: it was never released.
	Version string // The version that it gets; Last if it gets none.
	Step    Step
	Reason  string // Why it gets one.
	Fault   error  // What forbids a release of it; nil: nothing.

	follow []string // Breaking siblings, with their versions, that it follows.
}

// Released reports whether the module gets a version.
func (n *NextVersion) Released() bool { return n.Version != n.Last }

// NextVersions returns the next version of each module, in the order of release, and everything that forbids it:
// a changelog that is silent or says less than the interface shows, a requirement of what was never released.
func (t *Tree) NextVersions(ctx context.Context) ([]*NextVersion, error) {
	tags, err := t.tags(ctx)
	if err != nil {
		return nil, err
	}
	var all []*NextVersion
	for _, m := range t.Modules {
		all = append(all, t.nextVersion(ctx, m, tags[m.Dir], all))
	}
	var faults []error
	for _, n := range all {
		n.Fault = errors.Join(n.Fault, t.requirements(n.Module, tags, all))
		faults = append(faults, n.Fault)
	}
	return all, errors.Join(faults...)
}

// tags returns the versions that each module has tags of, the lowest first.
func (t *Tree) tags(ctx context.Context) (map[string][]string, error) {
	said, err := git(ctx, t.Root, nil, "tag", "--list")
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	for tag := range strings.FieldsSeq(said) {
		if dir, version := path.Split(tag); semver.IsValid(version) {
			dir = strings.TrimSuffix(dir, "/")
			all[dir] = append(all[dir], version)
		}
	}
	for _, versions := range all {
		slices.SortFunc(versions, semver.Compare)
	}
	return all, nil
}

// nextVersion returns the next version of one module; done has those of the modules before it.
func (t *Tree) nextVersion(ctx context.Context, m *Module, tags []string, done []*NextVersion) *NextVersion {
	n := &NextVersion{Module: m}
	if len(tags) > 0 {
		n.Last = tags[len(tags)-1]
	}
	n.Version = n.Last
	var reasons []string
	why, err := t.changed(ctx, m, n.Last)
	if err != nil {
		n.Fault = err
		return n
	}
	if why != "" {
		n.Step, n.Fault = t.step(ctx, n, why)
		reasons = append(reasons, why)
	}
	if n.follow = follows(m, done); len(n.follow) > 0 {
		n.Step = max(n.Step, StepPatch)
		reasons = append(reasons, "follows "+strings.Join(n.follow, ", "))
	}
	if n.Step == StepNone {
		return n
	}
	n.Reason, n.Version = strings.Join(reasons, ", and "), raised(n.Last, n.Step)
	if n.Step == StepBreaking && semver.Major(n.Version) > "v1" {
		n.Fault = errors.Join(n.Fault,
			fmt.Errorf("release: %s breaks what v1 promises: a next major version has an import path of its own, which is made by hand", m.Dir))
	}
	return n
}

// follows names the siblings that take something away in this release, with their versions, which a module requires.
func follows(m *Module, done []*NextVersion) (all []string) {
	for _, require := range m.Mod.Require {
		if n := nextOf(done, require.Mod.Path); n != nil && n.Step == StepBreaking && n.Last != "" {
			all = append(all, n.Module.Dir+" "+n.Version)
		}
	}
	return all
}

func nextOf(all []*NextVersion, path string) *NextVersion {
	at := slices.IndexFunc(all, func(n *NextVersion) bool { return n.Module.Path == path })
	if at < 0 {
		return nil
	}
	return all[at]
}

// raised returns the version that follows another one. The first is v0.1.0.
func raised(last string, step Step) string {
	var major, minor, patch int
	if last == "" {
		return "v0.1.0"
	}
	_, _ = fmt.Sscanf(semver.Canonical(last), "v%d.%d.%d", &major, &minor, &patch) // It is canonical.
	switch {
	case step == StepBreaking && major > 0:
		return fmt.Sprintf("v%d.0.0", major+1)
	case step >= StepMinor:
		return fmt.Sprintf("v%d.%d.0", major, minor+1)
	default:
		return fmt.Sprintf("v%d.%d.%d", major, minor, patch+1)
	}
}

// changed says in words what differs between a module and its last tag; empty: nothing does. What a release writes
// itself, the requirements of siblings and the sums, is left out, but for a requirement of what is not released yet.
func (t *Tree) changed(ctx context.Context, m *Module, last string) (string, error) {
	if last == "" {
		return "was never released", nil
	}
	for _, require := range m.Mod.Require {
		if t.released(require.Mod.Path) != nil && isPending(require) && require.Mod.Version != neverReleased {
			return "requires what is new in " + require.Mod.Path, nil
		}
	}
	args := []string{"diff", "--name-only", m.Tag(last), "HEAD", "--", m.Dir, ":(exclude)" + m.Dir + "/go.mod", ":(exclude)" + m.Dir + "/go.sum"}
	for _, other := range slices.Concat(t.Modules, t.Kept) {
		if strings.HasPrefix(other.Dir, m.Dir+"/") {
			args = append(args, ":(exclude)"+other.Dir)
		}
	}
	names, err := git(ctx, t.Root, nil, args...)
	if err != nil {
		return "", err
	}
	if all := strings.Fields(names); len(all) > 0 {
		return fmt.Sprintf("%d files have changed since %s", len(all), last), nil
	}
	before, err := git(ctx, t.Root, nil, "show", m.Tag(last)+":"+m.Dir+"/go.mod")
	if err != nil {
		return "", err
	}
	old, err := modfile.Parse(m.Dir+"/go.mod", []byte(before), nil)
	if err != nil {
		return "", err
	}
	if !slices.Equal(t.others(old), t.others(m.Mod)) {
		return "its requirements have changed since " + last, nil
	}
	return "", nil
}

// others returns what a go.mod says, without siblings.
func (t *Tree) others(mod *modfile.File) []string {
	said := []string{"go " + mod.Go.Version}
	for _, require := range mod.Require {
		if t.released(require.Mod.Path) == nil && !require.Indirect {
			said = append(said, require.Mod.String())
		}
	}
	slices.Sort(said)
	return said
}

// neverReleased is what a module requires of a sibling before the first release.
const neverReleased = "v0.0.0"

// isPending reports whether a module needs what is not released yet of a sibling: then both are in the next release.
func isPending(require *modfile.Require) bool {
	return require.Mod.Version == neverReleased ||
		slices.ContainsFunc(require.Syntax.Suffix, func(c modfile.Comment) bool { return strings.Contains(c.Token, "pending") })
}

// step returns the step that the changelog of a module says, which must not be less than its interface shows.
func (t *Tree) step(ctx context.Context, n *NextVersion, why string) (Step, error) {
	name := path.Join(n.Module.Dir, changelogName)
	text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
	if err != nil {
		return StepPatch, fmt.Errorf("release: %w", err)
	}
	said, err := stepOf(string(text))
	if err != nil {
		return StepPatch, fmt.Errorf("release: %s: %s, and %w", n.Module.Dir, why, err)
	}
	if n.Last == "" {
		return StepMinor, nil
	}
	shown, difference := t.interfaceStep(ctx, n)
	if said < shown {
		lines := append(difference.Gone, difference.Added...)
		return shown, fmt.Errorf("release: %s: the section \"Unreleased\" of %s says a %s step, and the interface shows a %s one: add %q for\n\t%s",
			n.Module.Dir, name, said, shown, map[Step]string{StepMinor: "### Added", StepBreaking: "### Removed"}[shown],
			strings.Join(lines[:min(len(lines), 5)], "\n\t"))
	}
	return said, nil
}

// interfaceStep compares what the public packages of a module declare with what they declared in its last release.
func (t *Tree) interfaceStep(ctx context.Context, n *NextVersion) (Step, api.Difference) {
	name := api.File(n.Module.Dir)
	before, err := git(ctx, t.Root, nil, "show", n.Module.Tag(n.Last)+":"+name)
	if err != nil {
		before = "" // It promised nothing.
	}
	now, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
	if err != nil {
		now = nil // Everything that the module promised is gone.
	}
	switch d := api.Compare(before, string(now)); {
	case len(d.Gone) > 0:
		return StepBreaking, d
	case len(d.Added) > 0:
		return StepMinor, d
	default:
		return StepPatch, d
	}
}

// requirements finds requirements of siblings at versions that nobody can get.
func (t *Tree) requirements(m *Module, tags map[string][]string, all []*NextVersion) error {
	var faults []error
	for _, require := range m.Mod.Require {
		sibling := nextOf(all, require.Mod.Path)
		switch {
		case t.kept(require.Mod.Path) != nil:
			faults = append(faults, fmt.Errorf("release: %s requires %s, which gets no release", m.Dir, require.Mod.Path))
		case sibling == nil || require.Indirect:
		case isPending(require) && !sibling.Released():
			faults = append(faults, fmt.Errorf("release: %s/go.mod: %s is pending, and nothing is new in it: require %s",
				m.Dir, require.Mod.Path, sibling.Last))
		case !isPending(require) && !slices.Contains(tags[sibling.Module.Dir], require.Mod.Version):
			faults = append(faults, fmt.Errorf("release: %s/go.mod requires %s, which was never released: it has %s",
				m.Dir, require.Mod, strings.Join(tags[sibling.Module.Dir], ", ")))
		}
	}
	return errors.Join(faults...)
}
