// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	for _, m := range r.Tree.Modules {
		if err := r.pack(ctx, m, proxy, hashes); err != nil {
			faults = append(faults, fmt.Errorf("release: tag %s: %w", m.Tag(r.Version), err))
		}
	}
	for _, m := range r.Tree.Modules {
		gosum, err := r.show(ctx, m, "go.sum")
		if err != nil && len(m.Mod.Require) > 0 {
			faults = append(faults, err)
		}
		for _, err := range wrongSums(gosum, r.Tree.Prefix(), hashes) {
			faults = append(faults, fmt.Errorf("release: tag %s: %w", m.Tag(r.Version), err))
		}
	}
	return errors.Join(faults...)
}

// show returns a file of a module as it is in the module's tag.
func (r *Release) show(ctx context.Context, m *Module, name string) (string, error) {
	return git(ctx, r.Clone, nil, "show", m.Tag(r.Version)+":"+m.Dir+"/"+name)
}

func (r *Release) pack(ctx context.Context, m *Module, proxy *Proxy, hashes map[string]string) error {
	gomod, err := r.show(ctx, m, "go.mod")
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(m.Dir+"/go.mod", []byte(gomod), nil)
	if err != nil {
		return err
	}
	faults := r.foreign(mod)
	if _, err := r.show(ctx, m, "LICENSE"); err != nil {
		faults = append(faults, errors.New("no LICENSE: the go command would pack that of the root, and the hashes would differ"))
	}
	version := module.Version{Path: m.Path, Version: r.Version}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, version, r.Clone, m.Tag(r.Version), m.Dir); err != nil {
		return errors.Join(append(faults, err)...)
	}
	hash, err := proxy.add(version, []byte(gomod), packed.Bytes())
	if err != nil {
		return err
	}
	hashes[m.Path+" "+r.Version] = hash
	hashes[m.Path+" "+r.Version+"/go.mod"], err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(gomod)), nil
	})
	return errors.Join(append(faults, err)...)
}

// foreign finds the lines of a go.mod that work only inside the repository.
func (r *Release) foreign(mod *modfile.File) []error {
	var faults []error
	for _, replace := range mod.Replace {
		faults = append(faults, fmt.Errorf("replaces %s: its programs cannot be installed, and its users do not get the replacement", replace.Old.Path))
	}
	for _, require := range mod.Require {
		switch path := require.Mod.Path; {
		case r.Tree.kept(path) != nil:
			faults = append(faults, fmt.Errorf("requires %s, which gets no release", path))
		case r.Tree.released(path) != nil && require.Mod.Version != r.Version:
			faults = append(faults, fmt.Errorf("requires %s, which this release has as %s", require.Mod, r.Version))
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
