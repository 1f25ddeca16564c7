// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// promises says, by directory, whether the packages there and below promise something.
// The entry with the longest directory decides.
type promises map[string]bool

// parsePromises reads the table under "## Who promises what": the first column is a
// module or a package, the second "kept" or "none".
func parsePromises(markdown string) (promises, error) {
	_, section, found := strings.Cut("\n"+markdown, "\n## Who promises what\n")
	if !found {
		return nil, fmt.Errorf("api: %s has no heading \"## Who promises what\"", versioning)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	out := promises{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 3 || strings.HasPrefix(strings.TrimSpace(cells[0]), "--") {
			continue
		}
		dir, word := strings.Trim(cells[0], " `"), strings.TrimSpace(cells[1])
		if word != "kept" && word != "none" {
			if len(out) == 0 {
				continue // The heading of the table.
			}
			return nil, fmt.Errorf("api: %s: the row of %s says %q, neither kept nor none", versioning, dir, word)
		}
		out[dir] = word == "kept"
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("api: %s has no table under \"## Who promises what\"", versioning)
	}
	return out, nil
}

// row returns the row that speaks of a package, or "".
func (p promises) row(dir string) string {
	best := ""
	for row := range p {
		if (dir == row || strings.HasPrefix(dir, row+"/")) && len(row) > len(best) {
			best = row
		}
	}
	return best
}

func (p promises) kept(dir string) bool { return p[p.row(dir)] }

// cover fails where a public package has no row, or a row no package.
func (p promises) cover(dirs []string) error {
	unused := maps.Clone(p)
	var faults []error
	for _, dir := range dirs {
		row := p.row(dir)
		if row == "" {
			faults = append(faults, fmt.Errorf("api: %s says nothing about the public package %s", versioning, dir))
		}
		delete(unused, row)
	}
	for _, row := range slices.Sorted(maps.Keys(unused)) {
		faults = append(faults, fmt.Errorf("api: %s has a row for %s, where no public package is", versioning, row))
	}
	return errors.Join(faults...)
}
