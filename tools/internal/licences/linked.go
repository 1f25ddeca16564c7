// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
)

// The go command lists all packages that the released modules need, for each system; from each package of ours that a
// program can import or is, the imports are followed as far as the next one of our modules.

// Module is a module of others that programs link.
type Module struct {
	Path, Version string
	Dir           string   // Where its files are: in the cache of modules.
	By            []string // The directories of our modules that bring it; another that links it imports one of these.
	Licences      []string // SPDX identifiers, sorted; written by [Find].

	packages []string // The directories of the packages that are linked.
}

// apart matches our packages that no program imports by itself: internal ones, and those that support tests.
var apart = regexp.MustCompile(`(/internal|test)(/|$)`)

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir string
	Imports         []string
	ImportMap       map[string]string
	Module          *struct{ Path, Version, Dir string }
	Error           *struct{ Err string }
}

// Linked returns the modules of others that programs link which link a module of ours. Ours has the directories of our
// modules, below root, by their paths.
func Linked(ctx context.Context, root string, ours map[string]string) ([]*Module, error) {
	all := map[string]*listed{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		if err := list(ctx, root, system, ours, all); err != nil {
			return nil, err
		}
	}
	return linked(all, ours), nil
}

// list adds the packages of our modules, and all that they import, as they are on a system.
func list(ctx context.Context, root, system string, ours map[string]string, all map[string]*listed) error {
	args := []string{"list", "-deps", "-json=ImportPath,Dir,Imports,ImportMap,Module,Error"}
	for _, dir := range slices.Sorted(maps.Values(ours)) {
		args = append(args, "./"+dir+"/...")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("licences: go list for %s: %w: %s", system, err, bytes.TrimSpace(faults.Bytes()))
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i, path := range p.Imports {
			if is, ok := p.ImportMap[path]; ok {
				p.Imports[i] = is
			}
		}
		if known := all[p.ImportPath]; known != nil {
			known.Imports = append(known.Imports, p.Imports...)
		} else {
			all[p.ImportPath] = p
		}
	}
}

// linked follows the imports of our packages.
func linked(all map[string]*listed, ours map[string]string) []*Module {
	modules := map[string]*Module{}
	brought := map[string]map[string]bool{} // By module of others, ours that reach it without another of ours.
	siblings := map[string]map[string]bool{}
	for _, p := range all {
		if p.Module == nil || ours[p.Module.Path] == "" || apart.MatchString(p.ImportPath) {
			continue
		}
		us, seen := p.Module.Path, map[string]bool{}
		for next := slices.Clone(p.Imports); len(next) > 0; {
			q := all[next[len(next)-1]]
			next = next[:len(next)-1]
			switch {
			case q == nil || q.Module == nil || seen[q.ImportPath]:
			case q.Module.Path == us:
				seen[q.ImportPath] = true
				next = append(next, q.Imports...)
			case ours[q.Module.Path] != "":
				put(siblings, us, q.Module.Path)
			default:
				seen[q.ImportPath] = true
				m := modules[q.Module.Path]
				if m == nil {
					m = &Module{Path: q.Module.Path, Version: q.Module.Version, Dir: q.Module.Dir}
					modules[m.Path] = m
				}
				if !slices.Contains(m.packages, q.Dir) {
					m.packages = append(m.packages, q.Dir)
				}
				put(brought, m.Path, us)
				next = append(next, q.Imports...)
			}
		}
	}
	for path, m := range modules {
		slices.Sort(m.packages)
		for us := range brought[path] {
			if !reaches(siblings, us, brought[path]) {
				m.By = append(m.By, ours[us])
			}
		}
		slices.Sort(m.By)
	}
	return slices.SortedFunc(maps.Values(modules), func(a, b *Module) int { return cmp.Compare(a.Path, b.Path) })
}

func put(sets map[string]map[string]bool, key, value string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][value] = true
}

// reaches says whether one of our modules imports, over others of ours, another one of a set.
func reaches(siblings map[string]map[string]bool, from string, set map[string]bool) bool {
	seen := map[string]bool{from: true}
	for next := slices.Collect(maps.Keys(siblings[from])); len(next) > 0; {
		one := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[one] {
			continue
		}
		if seen[one] = true; set[one] {
			return true
		}
		next = slices.AppendSeq(next, maps.Keys(siblings[one]))
	}
	return false
}
