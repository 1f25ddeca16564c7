// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// versioning is the page with the table of promises.
const versioning = "docs/versioning.md"

// File returns the file that keeps the interface of the module in a directory,
// relative to the root, with slashes.
func File(dir string) string { return path.Join("docs", "api", dir+".txt") }

// Listings returns the listing of each module by the name of its file. A module without a
// public package that promises something has none.
func Listings(ctx context.Context, root string) (map[string]string, error) {
	dirs, err := modules(root)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(versioning)))
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	promises, err := parsePromises(string(text))
	if err != nil {
		return nil, err
	}
	public, err := load(ctx, root, dirs)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range public {
		names = append(names, p.dir)
	}
	if err := promises.cover(names); err != nil {
		return nil, err
	}
	listings := map[string]string{}
	for _, p := range public {
		kept := func(imported string) bool {
			dir, ours := strings.CutPrefix(imported, p.prefix)
			return !ours || !hidden(imported) && promises.kept(dir)
		}
		if promises.kept(p.dir) {
			name := File(p.module)
			listings[name] += strings.Join(list(p.dir, p.loaded.Types, p.prefix, kept), "\n") + "\n"
		}
	}
	return listings, nil
}

// modules returns the directories of the workspace, sorted.
func modules(root string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	work, err := modfile.ParseWork("go.work", data, nil)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	var dirs []string
	for _, use := range work.Use {
		dirs = append(dirs, path.Clean(use.Path))
	}
	slices.Sort(dirs)
	return dirs, nil
}

// publicPackage is one public package.
type publicPackage struct {
	dir    string // relative to the root, with slashes
	module string // likewise
	prefix string // what the paths of all packages of the tree begin with
	loaded *packages.Package
}

// load finds the public packages, sorted by directory. Types are read from the compiler's
// export data, which is in the build cache after the first run. They are those of one
// platform on whichever the check runs.
func load(ctx context.Context, root string, dirs []string) ([]publicPackage, error) {
	var patterns []string
	for _, dir := range dirs {
		patterns = append(patterns, "./"+dir+"/...")
	}
	loaded, err := packages.Load(&packages.Config{
		Mode:    packages.NeedName | packages.NeedFiles | packages.NeedTypes | packages.NeedExportFile | packages.NeedModule,
		Context: ctx, Dir: root, Env: append(os.Environ(), "GOOS=linux", "GOARCH=amd64"),
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	var found []publicPackage
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("api: %s: %w", p.PkgPath, p.Errors[0])
		}
		if p.Module == nil {
			return nil, fmt.Errorf("api: %s is in no module", p.PkgPath)
		}
		module, err := filepath.Rel(root, p.Module.Dir)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		module = filepath.ToSlash(module)
		prefix := strings.TrimSuffix(p.Module.Path, module)
		if hidden(p.PkgPath) || p.Name == "main" || generated(p.GoFiles) {
			continue
		}
		found = append(found, publicPackage{dir: strings.TrimPrefix(p.PkgPath, prefix), module: module, prefix: prefix, loaded: p})
	}
	slices.SortFunc(found, func(a, b publicPackage) int { return strings.Compare(a.dir, b.dir) })
	if len(found) == 0 {
		return nil, errors.New("api: the tree has no public package")
	}
	return found, nil
}

func hidden(path string) bool { return slices.Contains(strings.Split(path, "/"), "internal") }

// generated tells whether all files of a package are generated.
func generated(files []string) bool {
	return len(files) > 0 && !slices.ContainsFunc(files, func(name string) bool {
		syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.PackageClauseOnly|parser.ParseComments)
		return err != nil || !ast.IsGenerated(syntax)
	})
}
