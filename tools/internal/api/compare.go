// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Difference holds the lines that two listings of one module do not share.
type Difference struct {
	Gone  []string // removed, or of another type now: a program may no longer compile
	Added []string
}

// Compare compares the lines of two listings; each may be empty.
func Compare(before, now string) Difference {
	old, present := lines(before), lines(now)
	only := func(these, not map[string]bool) []string {
		var out []string
		for _, line := range slices.Sorted(maps.Keys(these)) {
			if !not[line] {
				out = append(out, line)
			}
		}
		return out
	}
	return Difference{Gone: only(old, present), Added: only(present, old)}
}

func lines(text string) map[string]bool {
	set := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			set[line] = true
		}
	}
	return set
}

// Check reports how the packages of the tree differ from the accepted listings.
func Check(ctx context.Context, root string) error {
	present, err := Listings(ctx, root)
	if err != nil {
		return err
	}
	accepted, err := kept(root)
	if err != nil {
		return err
	}
	return check(accepted, present)
}

func check(accepted, present map[string]string) error {
	names := maps.Clone(accepted)
	maps.Copy(names, present)
	var report strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		d := Compare(accepted[name], present[name])
		section(&report, name, "gone or changed, programs may break", "-", d.Gone)
		section(&report, name, "new", "+", d.Added)
		if _, listed := present[name]; !listed && len(d.Gone) == 0 {
			fmt.Fprintf(&report, "%s is of a module that promises nothing\n", name)
		}
	}
	if report.Len() == 0 {
		return nil
	}
	return fmt.Errorf("api: the public packages differ from what was accepted:\n%s"+
		"`make api` accepts it; what is gone or changed belongs into the module's CHANGELOG.md, with what to do", report.String())
}

func section(report *strings.Builder, name, what, sign string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(report, "%s: %s:\n", name, what)
	for _, line := range lines {
		fmt.Fprintf(report, "  %s %s\n", sign, line)
	}
}

// kept reads the accepted listings, by name.
func kept(root string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "docs", "api"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		out[filepath.ToSlash(relative)] = string(text)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil // No listing was accepted yet.
	}
	return out, err
}

// Accept writes the listings of the present tree, and removes those of modules that are
// gone.
func Accept(ctx context.Context, root string) error {
	present, err := Listings(ctx, root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, "docs", "api")); err != nil {
		return err
	}
	for name, text := range present {
		name = filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
