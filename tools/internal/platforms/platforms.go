// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The go command lists all packages with those that they import, those first ([list]); each is parsed and checked in
// that order ([checker.check]), and imports what was checked before.

// ours begins the paths of the project's packages.
const ours = "github.com/quorate/quorate"

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ GoVersion string }
	Error           *struct{ Err string }
}

// Check checks packages by their patterns, from a directory of the workspace, as they are on a platform such as
// darwin/arm64. It returns how many packages of the project it has checked. The error has all faults.
func Check(ctx context.Context, dir, platform string, patterns ...string) (int, error) {
	system, processor, _ := strings.Cut(platform, "/")
	c := &checker{files: token.NewFileSet(), known: map[string]*types.Package{"unsafe": types.Unsafe}, sizes: types.SizesFor("gc", processor)}
	if c.sizes == nil {
		return 0, fmt.Errorf("platforms: %q has no processor that is known", platform)
	}
	all, err := list(ctx, dir, []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + processor}, patterns)
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		c.check(p)
	}
	return c.own, errors.Join(c.faults...)
}

// list returns packages and what they import, each behind its own imports.
func list(ctx context.Context, dir string, environment, patterns []string) (all []listed, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-e", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error"}, patterns...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("platforms: go list: %w\n%s", err, stderr.String())
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("platforms: go list: %w", err)
		}
		all = append(all, p)
	}
}

// checker checks one package after the other.
type checker struct {
	files  *token.FileSet
	sizes  types.Sizes
	known  map[string]*types.Package
	own    int
	faults []error
}

// imports are those of one package.
type imports struct {
	known map[string]*types.Package
	as    map[string]string // Paths that stand for others, as in the standard library.
}

// Import returns a package that was checked before.
func (i imports) Import(path string) (*types.Package, error) {
	if other, ok := i.as[path]; ok {
		path = other
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}

// check checks a package. Of those of others only a fault that keeps ours from being checked shows, in ours.
func (c *checker) check(p listed) {
	if p.ImportPath == "unsafe" {
		return
	}
	own := p.ImportPath == ours || strings.HasPrefix(p.ImportPath, ours+"/")
	fault := func(err error) {
		if own {
			c.faults = append(c.faults, err)
		}
	}
	if p.Error != nil {
		fault(fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err))
	}
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			fault(err)
			continue
		}
		parsed = append(parsed, f)
	}
	config := types.Config{
		Importer: imports{c.known, p.ImportMap}, Sizes: c.sizes, IgnoreFuncBodies: !own, Error: fault, FakeImportC: true,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	c.known[p.ImportPath], _ = config.Check(p.ImportPath, c.files, parsed, nil) // Its errors went to fault.
	if own {
		c.own++
	}
}
