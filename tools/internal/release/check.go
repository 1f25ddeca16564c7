// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/quorate/quorate/tools/internal/api"
)

// Check reports everything that forbids releasing the commit that is checked out under a
// version: uncommitted files, a version that is no step onwards, a changelog that says
// nothing, a requirement of a module without releases, and a change of what a public
// package promises that the version does not announce.
func (t *Tree) Check(ctx context.Context, version string) error {
	var faults []error
	if semver.Canonical(version) != version || version == "" {
		return fmt.Errorf("release: %q is not a full version, such as v0.3.0", version)
	}
	changed, err := git(ctx, t.Root, nil, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changed != "" {
		faults = append(faults, fmt.Errorf("release: the work tree differs from its commit, and a tag holds a commit:\n%s", changed))
	}
	faults = append(faults, t.requirements()...)
	faults = append(faults, t.changelogs(version)...)
	last, err := t.last(ctx)
	if err != nil {
		return err
	}
	if last != "" && semver.Compare(version, last) <= 0 {
		return errors.Join(append(faults, fmt.Errorf("release: %s does not come after %s, which is released", version, last))...)
	}
	return errors.Join(append(faults, t.promises(ctx, last, version)...)...)
}

func (t *Tree) requirements() []error {
	var faults []error
	for _, m := range t.Modules {
		for _, require := range m.Mod.Require {
			if t.kept(require.Mod.Path) != nil {
				faults = append(faults, fmt.Errorf("release: %s requires %s, which gets no release", m.Dir, require.Mod.Path))
			}
		}
	}
	return faults
}

// changelogs checks that the changelog of every module says what its users will notice. A
// module in which only requirements have changed says that: an empty section cannot be
// told from a forgotten one.
func (t *Tree) changelogs(version string) []error {
	var faults []error
	for _, dir := range append([]string{"."}, dirs(t.Modules)...) {
		name := filepath.Join(dir, changelogName)
		text, err := os.ReadFile(filepath.Join(t.Root, name))
		if err == nil && entry(string(text), version) == "" {
			err = fmt.Errorf("%s says nothing about %s, neither under its number nor under \"Unreleased\"", name, version)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("release: %w", err))
		}
	}
	return faults
}

func dirs(modules []*Module) []string {
	out := make([]string, len(modules))
	for i, m := range modules {
		out[i] = m.Dir
	}
	return out
}

// last returns the newest version that any released module has a tag of, or "".
func (t *Tree) last(ctx context.Context) (string, error) {
	tags, err := git(ctx, t.Root, nil, "tag", "--list")
	if err != nil {
		return "", err
	}
	newest := ""
	for tag := range strings.FieldsSeq(tags) {
		at := strings.LastIndex(tag, "/")
		if at < 0 || !slices.Contains(dirs(t.Modules), tag[:at]) || !semver.IsValid(tag[at+1:]) {
			continue
		}
		if newest == "" || semver.Compare(tag[at+1:], newest) > 0 {
			newest = tag[at+1:]
		}
	}
	return newest, nil
}

// promises compares what the public packages declare with what they declared in the last
// release. A new major version, and before v1 a new minor one, may remove or change
// declarations.
func (t *Tree) promises(ctx context.Context, last, version string) []error {
	if last == "" || announces(last, version) {
		return nil
	}
	var faults []error
	for _, m := range t.Modules {
		name := api.File(m.Dir)
		before, err := git(ctx, t.Root, nil, "show", m.Tag(last)+":"+name)
		if err != nil {
			continue // The module is new, or promises nothing.
		}
		now, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
		if err != nil {
			now = nil // Everything that the module promised is gone.
		}
		if gone := api.Compare(before, string(now)).Gone; len(gone) > 0 {
			faults = append(faults, fmt.Errorf("release: %s after %s may take nothing away, and %s has no longer:\n\t%s",
				version, last, m.Dir, strings.Join(gone, "\n\t")))
		}
	}
	return faults
}

// announces tells whether a step from one version to the other tells users to change
// their programs.
func announces(last, version string) bool {
	if semver.Major(last) != semver.Major(version) {
		return true
	}
	return semver.Major(version) == "v0" && semver.MajorMinor(last) != semver.MajorMinor(version)
}
