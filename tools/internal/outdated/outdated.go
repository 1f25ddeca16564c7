// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outdated

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// First what the tree requires, then what there is, then both side by side.

// own begins the paths of the modules of the tree.
const own = "github.com/quorate/quorate/"

//go:embed held.txt
var held string

// indirectIn are the modules of the tree whose indirect requirements are looked at too: what go-plugin and grpc bring
// reaches everybody who has one of ours, and no direct requirement raises it.
func indirectIn(dir string) bool { return dir == "plugins" || dir == "transport" }

// Requirement is a module of others that modules of the tree require.
type Requirement struct {
	Path    string   `json:"path"`
	Version string   `json:"version"` // The highest that is required.
	By      []string `json:"by"`      // The directories of the modules that require it.
}

// Requirements returns the direct requirements of the go.mod files, by their directories below root, and the indirect
// ones of plugins and transport, sorted by path.
func Requirements(root string, dirs []string) ([]Requirement, error) {
	all := map[string]*Requirement{}
	for _, dir := range dirs {
		name := filepath.Join(root, filepath.FromSlash(dir), "go.mod")
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		mod, err := modfile.ParseLax(name, data, nil)
		if err != nil {
			return nil, err
		}
		for _, r := range mod.Require {
			if r.Indirect && !indirectIn(dir) || strings.HasPrefix(r.Mod.Path, own) {
				continue
			}
			one := all[r.Mod.Path]
			if one == nil {
				one = &Requirement{Path: r.Mod.Path}
				all[r.Mod.Path] = one
			}
			if one.By = append(one.By, dir); semver.Compare(r.Mod.Version, one.Version) > 0 {
				one.Version = r.Mod.Version
			}
		}
	}
	var sorted []Requirement
	for _, path := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, *all[path])
	}
	return sorted, nil
}

// Latest is what the module proxy has of a module.
type Latest struct {
	Path    string
	Version string
	Error   *struct{ Err string }
}

// Newest asks for the newest versions of modules.
func Newest(ctx context.Context, paths []string) ([]Latest, error) {
	args := []string{"list", "-m", "-e", "-json"}
	for _, path := range paths {
		args = append(args, path+"@latest")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	dir, err := os.MkdirTemp("", "outdated")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // It is the directory of a query.
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module query\n\ngo 1.26.0\n"), 0o600); err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var faults bytes.Buffer
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %.200s", err, faults.String())
	}
	return decode(bytes.NewReader(out))
}

func decode(r io.Reader) (all []Latest, err error) {
	for d := json.NewDecoder(r); ; {
		var one Latest
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

// Outdated is a module that is behind, or of which nobody knows.
type Outdated struct {
	Requirement

	Newest  string `json:"newest,omitempty"`
	Why     string `json:"why,omitempty"`     // Why it stays; empty: nothing says so.
	Unknown string `json:"unknown,omitempty"` // Why there is no newest version.
}

// Look puts requirements and newest versions side by side. The error names what is held and not behind.
func Look(required []Requirement, latest []Latest) ([]Outdated, error) {
	return look(required, latest, held)
}

func look(required []Requirement, latest []Latest, held string) (all []Outdated, err error) {
	newest, reasons := map[string]Latest{}, map[string]string{}
	for _, l := range latest {
		newest[l.Path] = l
	}
	for line := range strings.Lines(held) {
		path, why, ok := strings.Cut(strings.TrimSpace(line), " ")
		if path != "" && !ok {
			return nil, fmt.Errorf("held.txt: %s has no reason", path)
		}
		reasons[path] = why
	}
	delete(reasons, "")
	for _, r := range required {
		l, known := newest[r.Path]
		o := Outdated{Requirement: r, Newest: l.Version, Why: reasons[r.Path]}
		switch {
		case known && l.Error == nil && semver.Compare(l.Version, r.Version) <= 0:
			continue
		case !known || l.Error != nil:
			o.Newest, o.Unknown = "", "the proxy does not say"
			if l.Error != nil {
				o.Unknown = unknown(l.Error.Err)
			}
		}
		delete(reasons, r.Path)
		all = append(all, o)
	}
	slices.SortStableFunc(all, func(a, b Outdated) int { return cmp.Compare(a.Unknown, b.Unknown) })
	if len(reasons) > 0 {
		err = fmt.Errorf("held.txt: not behind, or not required: %s", strings.Join(slices.Sorted(maps.Keys(reasons)), ", "))
	}
	return all, err
}

// unknown shortens what the go command says of a module of which it found no version. It asks the proxy, and then, by
// git, the repository, if the proxy does not know the module.
func unknown(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if strings.Contains(text, "git ls-remote") {
		return "the proxy lists no version; its repository: " + strings.TrimPrefix(last, "fatal: ")
	}
	return "the proxy says: " + strings.TrimPrefix(last, "server response: ")
}

// Print prints a list, two lines a module that is behind, and one where the newest version is not known.
func Print(w io.Writer, all []Outdated) {
	for _, o := range all {
		if o.Unknown != "" {
			fmt.Fprintf(w, "%s %s: newest not known: %.200s\n", o.Path, o.Version, o.Unknown)
			continue
		}
		fmt.Fprintf(w, "%s %s -> %s\n   %s\n", o.Path, o.Version, o.Newest, cmp.Or(o.Why, "no reason to stay: raise it in "+strings.Join(o.By, ", ")))
	}
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing is behind")
	}
}

// Modules returns the directories of all modules below root, those that go.work does not name too.
func Modules(ctx context.Context, root string) (dirs []string, err error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "--", "go.mod", "*/go.mod")
	cmd.Dir = root
	out, err := cmd.Output()
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(name, "/testdata/") {
			dirs = append(dirs, filepath.ToSlash(filepath.Dir(name)))
		}
	}
	return dirs, err
}
