// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// quotation is how a comment names the sentence of a page, or of the documentation of a package, that allows what an
// oracle excuses: its words may be wrapped otherwise there.
var quotation = regexp.MustCompile(`\(([a-z][\w/.-]*\.(?:md|go)), "([^"]+)"\)`)

// quotes finds quotations of words that the page does not have any more.
func quotes(r *Repository) ([]Fault, error) {
	pages := map[string]string{}
	var faults []Fault
	for _, f := range r.Files {
		for _, group := range f.Syntax.Comments {
			for _, match := range quotation.FindAllStringSubmatch(words(group.Text()), -1) {
				page, quoted := match[1], match[2]
				if _, known := pages[page]; !known {
					text, err := os.ReadFile(filepath.Join(r.Root, filepath.FromSlash(page)))
					if err != nil && !errors.Is(err, fs.ErrNotExist) {
						return nil, err
					}
					pages[page] = words(unmarked(page, string(text)))
				}
				if !strings.Contains(pages[page], quoted) {
					faults = append(faults, r.at(group.Pos(), "%s does not say %q: the oracle, or the page, has to change", page, quoted))
				}
			}
		}
	}
	return faults, nil
}

// words returns a text with one space between words.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// unmarked returns the text of a page; of a Go file without the marks of comments.
func unmarked(page, text string) string {
	if !strings.HasSuffix(page, ".go") {
		return text
	}
	return strings.ReplaceAll(text, "\n//", "\n")
}
