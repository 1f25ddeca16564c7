// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// linterFile has the linters that run.
const linterFile = ".golangci.yml"

// directive is a comment that excuses what linters find on its line.
var directive = regexp.MustCompile(`//nolint:([a-z,]+)`)

// directives demands that an excuse is for linters that run: the linter of excuses does not look at those of others.
func directives(r *Repository) (faults []Fault, err error) {
	var enabled []string
	for _, f := range r.Files {
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				excuse := directive.FindStringSubmatch(c.Text)
				if excuse == nil {
					continue
				}
				if enabled == nil {
					if enabled, err = linters(r.Root); err != nil {
						return nil, err
					}
				}
				for name := range strings.SplitSeq(excuse[1], ",") {
					if !slices.Contains(enabled, name) {
						faults = append(faults, r.at(c.Pos(), "excuses a finding of %s, which does not run: take the directive away", name))
					}
				}
			}
		}
	}
	return faults, nil
}

// linters are the names of the linters that run.
func linters(root string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, linterFile))
	if err != nil {
		return nil, err
	}
	var file struct {
		Linters struct{ Enable []string }
	}
	err = yaml.Unmarshal(text, &file)
	return file.Linters.Enable, err
}
