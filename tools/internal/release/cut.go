// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/quorate/quorate/tools/internal/compatibility"
)

// [Cut] clones the repository, makes the commit for the main branch ([Release.raise]),
// then the one for the tags: replaces are dropped and each go.sum completed in the order
// of release. Nothing is published; [Release.Push] returns the command that would.

// Plan is what to release, and where to.
type Plan struct {
	Repo    string            // the working repository, which is only read
	Clone   string            // a directory that does not exist yet
	Day     time.Time         // date in the changelogs
	Without map[string]string // directories of modules that get no tag, with the reason
	// Draft is the version of all modules of a release of the work tree as it stands, committed or not, under no
	// author's name: for the checks of the tree and for a look at a user's view. Empty: the
	// commit that is checked out is released, with its history, and each module that has changed gets a version.
	Draft string
	// Progress is told what is done, a line a step. Nil: nobody is.
	Progress func(line string)
}

// Release is a clone that holds the commits and the tags of a release.
type Release struct {
	Clone string
	Tree  *Tree          // as the tags hold it
	Tags  []string       // in the order of release
	Next  []*NextVersion // what becomes of each module, in that order
	draft bool
	tell  func(line string)
}

// Cut makes the clone, its two commits and the tags. After an error the unfinished clone
// is left for inspection.
func Cut(ctx context.Context, plan Plan) (*Release, error) {
	if err := plan.clone(ctx); err != nil {
		return nil, err
	}
	r := &Release{Clone: plan.Clone, draft: plan.Draft != "", tell: plan.Progress}
	if r.tell == nil {
		r.tell = func(string) {}
	}
	var err error
	if r.Tree, err = Load(r.Clone, plan.Without); err != nil {
		return nil, err
	}
	if r.draft {
		for _, m := range r.Tree.Modules {
			r.Next = append(r.Next, &NextVersion{Module: m, Version: plan.Draft})
		}
	} else if r.Next, err = r.Tree.NextVersions(ctx); err != nil {
		return nil, err
	}
	if err := r.raise(plan.Day); err != nil {
		return nil, err
	}
	if err := r.commit(ctx, "all: raise changelogs and requirements for a release"); err != nil {
		return nil, err
	}
	if err := r.detach(ctx); err != nil {
		return nil, err
	}
	if err := r.commit(ctx, "all: drop replaces for a release"); err != nil {
		return nil, err
	}
	return r, r.tag(ctx)
}

func (p Plan) clone(ctx context.Context) error {
	if module.CanonicalVersion(p.Draft) != p.Draft {
		return fmt.Errorf("release: %q is not a full version, such as v0.3.0", p.Draft)
	}
	if _, err := os.Lstat(p.Clone); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release: %s exists; a release is made in a new directory", p.Clone)
	}
	if p.Draft != "" {
		return copyTree(ctx, p.Repo, p.Clone)
	}
	_, err := git(ctx, p.Repo, nil, "clone", "-q", p.Repo, p.Clone)
	return err
}

func (r *Release) env() []string {
	if r.draft {
		return nobody()
	}
	return nil
}

func (r *Release) commit(ctx context.Context, message string) error {
	// A go.sum may be new.
	if _, err := git(ctx, r.Clone, r.env(), "add", "--all"); err != nil {
		return err
	}
	_, err := git(ctx, r.Clone, r.env(), "commit", "-q", "--allow-empty", "-m", message)
	return err
}

func (r *Release) tag(ctx context.Context) error {
	for _, n := range r.released() {
		name := n.Module.Tag(n.Version)
		if _, err := git(ctx, r.Clone, r.env(), "tag", "-a", "-m", n.Module.Path+" "+n.Version, name); err != nil {
			return err
		}
		r.Tags = append(r.Tags, name)
	}
	return nil
}

// released returns the modules that get a version, in the order of release.
func (r *Release) released() []*NextVersion {
	return slices.DeleteFunc(slices.Clone(r.Next), func(n *NextVersion) bool { return !n.Released() })
}

// raise gives the changelogs and the table of docs/compatibility.md their versions, and has every module, modules
// without releases too, require the siblings at the version that they get whose news it needs. The replaces stay: this
// commit is the next one of the main branch.
func (r *Release) raise(day time.Time) error {
	for _, m := range slices.Concat(r.Tree.Modules, r.Tree.Kept) {
		if err := r.raiseOne(m); err != nil {
			return err
		}
	}
	versions := map[string]string{}
	for _, n := range r.released() {
		versions[n.Module.Dir] = n.Version
		note := ""
		if len(n.follow) > 0 {
			note = "- Requires " + strings.Join(n.follow, ", ") + "."
		}
		if err := r.promote(filepath.Join(r.dir(n.Module), changelogName), n.Version, note, day); err != nil {
			return err
		}
	}
	if err := compatibility.Release(r.Clone, versions); err != nil {
		return err
	}
	if whole := r.whole(); whole != "" {
		return r.promote(filepath.Join(r.Clone, changelogName), whole, "", day)
	}
	return nil
}

// whole returns the version under which the changelog of the root says what is new: that of the module that names a set
// which was tested together; empty if it gets none.
func (r *Release) whole() string {
	for _, n := range r.released() {
		if n.Module.Dir == setModule || r.draft {
			return n.Version
		}
	}
	return ""
}

// setModule is the module whose requirements select versions of all that it wires.
const setModule = "cluster"

// raiseOne raises the requirements of a module that wait for this release, and those of siblings that it follows.
func (r *Release) raiseOne(m *Module) error {
	for _, require := range slices.Clone(m.Mod.Require) {
		n := nextOf(r.Next, require.Mod.Path)
		if n == nil || !n.Released() || !isPending(require) && n.Step != StepBreaking && !r.draft {
			continue
		}
		require.Syntax.Suffix = slices.DeleteFunc(require.Syntax.Suffix, func(c modfile.Comment) bool { return strings.Contains(c.Token, "pending") })
		if err := m.Mod.AddRequire(require.Mod.Path, n.Version); err != nil {
			return err
		}
	}
	return r.write(m)
}

func (r *Release) promote(name, version, note string, day time.Time) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return os.WriteFile(name, []byte(promote(string(text), version, note, day)), 0o644)
}

// write puts the go.mod of a module into the clone.
func (r *Release) write(m *Module) error {
	m.Mod.Cleanup()
	text, err := m.Mod.Format()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dir(m), "go.mod"), text, 0o644)
}

// dir returns the directory of a module in the clone.
func (r *Release) dir(m *Module) string { return filepath.Join(r.Clone, filepath.FromSlash(m.Dir)) }

// detach drops the replaces of siblings and completes each go.sum. A module is packed as
// soon as its go.sum is complete, since the next modules need its hash.
func (r *Release) detach(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "quorate-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // A temporary directory that stays harms nothing.
	proxy, err := NewProxy(scratch)
	if err != nil {
		return err
	}
	env, err := proxy.Env(ctx, r.Tree.Prefix())
	if err != nil {
		return err
	}
	if err := r.Tree.packEarlier(ctx, r.Clone, r.Next, proxy, map[string]string{}); err != nil {
		return err
	}
	all := r.released()
	for i, n := range all {
		r.tell(fmt.Sprintf("[%d/%d] tidy %s %s", i+1, len(all), n.Module.Dir, n.Version))
		if err := r.detachOne(ctx, n, proxy, env); err != nil {
			return fmt.Errorf("release: %s: %w", n.Module.Dir, err)
		}
	}
	return nil
}

func (r *Release) detachOne(ctx context.Context, n *NextVersion, proxy *Proxy, env []string) error {
	m := n.Module
	for _, replace := range slices.Clone(m.Mod.Replace) {
		if r.Tree.released(replace.Old.Path) != nil {
			if err := m.Mod.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
				return err
			}
		}
	}
	if err := r.write(m); err != nil {
		return err
	}
	if _, err := command(ctx, r.dir(m), env, "go", "mod", "tidy"); err != nil {
		return err
	}
	gomod, err := os.ReadFile(filepath.Join(r.dir(m), "go.mod"))
	if err != nil {
		return err
	}
	if m.Mod, err = modfile.Parse(m.Dir+"/go.mod", gomod, nil); err != nil {
		return err
	}
	version := module.Version{Path: m.Path, Version: n.Version}
	var packed bytes.Buffer
	if err := zip.CreateFromDir(&packed, version, r.dir(m)); err != nil {
		return err
	}
	_, err = proxy.add(version, gomod, packed.Bytes())
	return err
}

// Prefix returns the common prefix of the paths of all modules.
func (t *Tree) Prefix() string { return strings.TrimSuffix(t.Modules[0].Path, "/"+t.Modules[0].Dir) }

// Push returns the one command that publishes the release: the first commit onto a
// branch, and all tags, all or nothing.
func (r *Release) Push(remote, branch string) string {
	return fmt.Sprintf("git -C %s push --atomic %s HEAD~1:refs/heads/%s %s", r.Clone, remote, branch, strings.Join(r.Tags, " "))
}
