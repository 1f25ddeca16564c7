// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package publish packs the modules of a work tree as a user would receive them,
// into a directory that the go command takes as a module proxy.
//
// The tree is taken as it stands, committed or not: the files that git tracks and
// those that it does not ignore. Requirements of siblings are set to the made-up
// version, sibling replaces are dropped, because those of a dependency do not
// count for its user. The tree itself is not touched.
package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// source is one module to publish.
type source struct {
	dir   string // relative to the repository, with slashes
	path  string
	gomod []byte
}

// Tree publishes every module of the repository below repo at the version, into
// the directory out. Modules below a top-level directory named internal are
// tools of the developers and are left out. The same version must not be
// published twice for one module cache: it would go on serving the old content.
// It returns the paths of the modules, sorted.
func Tree(ctx context.Context, repo, version, out string) ([]string, error) {
	if module.CanonicalVersion(version) != version || version == "" {
		return nil, fmt.Errorf("publish: %q is not a full version, such as v0.0.1-test.1", version)
	}
	files, err := list(ctx, repo)
	if err != nil {
		return nil, err
	}
	sources, err := modules(repo, files, version)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(sources))
	for _, s := range sources {
		if err := s.publish(repo, version, out, files, sources); err != nil {
			return nil, fmt.Errorf("publish: %s: %w", s.path, err)
		}
		paths = append(paths, s.path)
	}
	slices.Sort(paths)
	return paths, nil
}

// list returns the files that a commit of the tree would hold.
func list(ctx context.Context, repo string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "-C", repo, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("publish: git ls-files: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	files := strings.FieldsFunc(string(output), func(r rune) bool { return r == 0 })
	// A tracked file may be deleted in the work tree.
	return slices.DeleteFunc(files, func(name string) bool {
		_, err := os.Lstat(filepath.Join(repo, name))
		return errors.Is(err, fs.ErrNotExist)
	}), nil
}

// modules finds the modules and rewrites their go.mod files.
func modules(repo string, files []string, version string) ([]source, error) {
	parsed := map[string]*modfile.File{} // by directory
	ours := map[string]bool{}            // by module path
	for _, name := range files {
		if path.Base(name) != "go.mod" || strings.Contains("/"+name, "/testdata/") || strings.HasPrefix(name, "internal/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(repo, name))
		if err != nil {
			return nil, err
		}
		mod, err := modfile.Parse(name, data, nil)
		if err != nil {
			return nil, err
		}
		if mod.Module == nil {
			return nil, fmt.Errorf("publish: %s: no module line", name)
		}
		parsed[path.Dir(name)] = mod
		ours[mod.Module.Mod.Path] = true
	}
	sources := make([]source, 0, len(parsed))
	for dir, mod := range parsed {
		gomod, err := rewrite(mod, ours, version)
		if err != nil {
			return nil, err
		}
		sources = append(sources, source{dir: dir, path: mod.Module.Mod.Path, gomod: gomod})
	}
	slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.dir, b.dir) })
	return sources, nil
}

func rewrite(mod *modfile.File, ours map[string]bool, version string) ([]byte, error) {
	for _, require := range slices.Clone(mod.Require) {
		if ours[require.Mod.Path] {
			if err := mod.AddRequire(require.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	for _, replace := range slices.Clone(mod.Replace) {
		if ours[replace.Old.Path] {
			if err := mod.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	mod.Cleanup()
	return mod.Format()
}

func (s source) publish(repo, version, out string, files []string, all []source) error {
	var entries []zip.File
	for _, name := range files {
		rel, ok := s.owns(name, all)
		if !ok {
			continue
		}
		entry := entry{name: rel, data: s.gomod}
		if rel != "go.mod" {
			data, err := os.ReadFile(filepath.Join(repo, name))
			if err != nil {
				return err
			}
			entry.data = data
		}
		entries = append(entries, entry)
	}
	m := module.Version{Path: s.path, Version: version}
	var packed bytes.Buffer
	if err := zip.Create(&packed, m, entries); err != nil {
		return err
	}
	return write(out, m, s.gomod, packed.Bytes())
}

// owns returns the name of a file inside the module, if no module nested in this
// one has it.
func (s source) owns(name string, all []source) (string, bool) {
	if !under(name, s.dir) {
		return "", false
	}
	for _, other := range all {
		if other.dir != s.dir && under(other.dir, s.dir) && under(name, other.dir) {
			return "", false
		}
	}
	if s.dir == "." {
		return name, true
	}
	return strings.TrimPrefix(name, s.dir+"/"), true
}

func under(name, dir string) bool {
	return dir == "." || strings.HasPrefix(name, dir+"/")
}

// write lays a module out as the module proxy protocol has it.
func write(out string, m module.Version, gomod, packed []byte) error {
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	at := filepath.Join(out, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": m.Version, "Time": time.Now().UTC()})
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		m.Version + ".info": info, m.Version + ".mod": gomod, m.Version + ".zip": packed, "list": []byte(m.Version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(at, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// entry is a file in memory, in the form that the zip package takes.
type entry struct {
	name string
	data []byte
}

func (e entry) Path() string                 { return e.name }
func (e entry) Lstat() (os.FileInfo, error)  { return info{e}, nil }
func (e entry) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(e.data)), nil }

type info struct{ entry entry }

func (i info) Name() string       { return path.Base(i.entry.name) }
func (i info) Size() int64        { return int64(len(i.entry.data)) }
func (i info) Mode() os.FileMode  { return 0o644 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
