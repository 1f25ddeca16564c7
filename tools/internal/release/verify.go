// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Verify packs each module from its tag into the proxy, as the go command does when it
// fetches from the repository, and reports everything that would fail for a user: a
// replace, a sibling at another version, a licence that the go command would have to
// borrow from the root, a go.sum with other hashes than the tags.
func (r *Release) Verify(ctx context.Context, proxy *Proxy) error {
	var faults []error
	hashes := map[string]string{} // by the first two fields of a line of a go.sum
	if err := r.Tree.packEarlier(ctx, r.Clone, r.Next, proxy, hashes); err != nil {
		return err
	}
	for _, n := range r.released() {
		if err := r.verify(ctx, n, proxy, hashes); err != nil {
			faults = append(faults, fmt.Errorf("release: tag %s: %w", n.Module.Tag(n.Version), err))
		}
	}
	for _, n := range r.released() {
		gosum, err := show(ctx, r.Clone, n.Module, n.Version, "go.sum")
		if err != nil && len(n.Module.Mod.Require) > 0 {
			faults = append(faults, err)
		}
		for _, err := range wrongSums(gosum, r.Tree.Prefix(), hashes) {
			faults = append(faults, fmt.Errorf("release: tag %s: %w", n.Module.Tag(n.Version), err))
		}
	}
	return errors.Join(faults...)
}

// show returns a file of a module as it is in one of the module's tags.
func show(ctx context.Context, repo string, m *Module, version, name string) (string, error) {
	return git(ctx, repo, nil, "show", m.Tag(version)+":"+m.Dir+"/"+name)
}

// verify packs a module from its tag, and finds what would fail for a user.
func (r *Release) verify(ctx context.Context, n *NextVersion, proxy *Proxy, hashes map[string]string) error {
	mod, err := pack(ctx, r.Clone, n.Module, n.Version, proxy, hashes)
	if err != nil {
		return err
	}
	faults := r.foreign(mod, hashes)
	if _, err := show(ctx, r.Clone, n.Module, n.Version, "LICENSE"); err != nil {
		faults = append(faults, errors.New("no LICENSE: the go command would pack that of the root, and the hashes would differ"))
	}
	return errors.Join(faults...)
}

// pack packs a module from a tag into the proxy, and returns its go.mod.
func pack(ctx context.Context, repo string, m *Module, tag string, proxy *Proxy, hashes map[string]string) (*modfile.File, error) {
	gomod, err := show(ctx, repo, m, tag, "go.mod")
	if err != nil {
		return nil, err
	}
	mod, err := modfile.Parse(m.Dir+"/go.mod", []byte(gomod), nil)
	if err != nil {
		return nil, err
	}
	version := module.Version{Path: m.Path, Version: tag}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, version, repo, m.Tag(tag), m.Dir); err != nil {
		return nil, err
	}
	hash, err := proxy.add(version, []byte(gomod), packed.Bytes())
	if err != nil {
		return nil, err
	}
	hashes[m.Path+" "+tag] = hash
	hashes[m.Path+" "+tag+"/go.mod"], err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(gomod)), nil
	})
	return mod, err
}

// packEarlier packs the earlier releases of siblings that the modules of the tree require, and what these require. What
// is released now is left out.
func (t *Tree) packEarlier(ctx context.Context, repo string, now []*NextVersion, proxy *Proxy, hashes map[string]string) error {
	var wanted []module.Version
	for _, m := range slices.Concat(t.Modules, t.Kept) {
		for _, require := range m.Mod.Require {
			wanted = append(wanted, require.Mod)
		}
	}
	done := map[module.Version]bool{}
	for len(wanted) > 0 {
		v := wanted[0]
		wanted = wanted[1:]
		m, next := t.released(v.Path), nextOf(now, v.Path)
		if m == nil || done[v] || v.Version == neverReleased || next != nil && next.Released() && next.Version == v.Version {
			continue
		}
		done[v] = true
		mod, err := pack(ctx, repo, m, v.Version, proxy, hashes)
		if err != nil {
			return err
		}
		for _, require := range mod.Require {
			wanted = append(wanted, require.Mod)
		}
	}
	return nil
}

// foreign finds the lines of a go.mod that work only inside the repository. Hashes has the versions that there are.
func (r *Release) foreign(mod *modfile.File, hashes map[string]string) []error {
	var faults []error
	for _, replace := range mod.Replace {
		faults = append(faults, fmt.Errorf("replaces %s: its programs cannot be installed, and its users do not get the replacement", replace.Old.Path))
	}
	for _, require := range mod.Require {
		switch path := require.Mod.Path; {
		case r.Tree.kept(path) != nil:
			faults = append(faults, fmt.Errorf("requires %s, which gets no release", path))
		case r.Tree.released(path) != nil && hashes[path+" "+require.Mod.Version] == "":
			faults = append(faults, fmt.Errorf("requires %s, which is neither in this release nor in an earlier one", require.Mod))
		}
	}
	return faults
}

// wrongSums finds the lines of a go.sum about our modules that differ from the content of
// the tags.
func wrongSums(gosum, prefix string, hashes map[string]string) []error {
	var faults []error
	for line := range strings.Lines(gosum) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), " h1:")
		if strings.HasPrefix(name, prefix+"/") && hashes[name] != "h1:"+hash {
			faults = append(faults, fmt.Errorf("go.sum has h1:%s for %s, and the tag has %q", hash, name, hashes[name]))
		}
	}
	return faults
}
