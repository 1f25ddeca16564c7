// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// changelogName is the file in which a module says what its users notice.
const changelogName = "CHANGELOG.md"

var (
	unreleasedHeading = regexp.MustCompile(`(?m)^## \[?Unreleased\]?[ \t]*\n`)
	nextHeading       = regexp.MustCompile(`(?m)^## `)
)

// entry returns what a changelog says about a version that is about to be
// released: the text under its own heading, else that under "Unreleased". It is
// empty where the changelog says nothing.
func entry(changelog, version string) string {
	own := regexp.MustCompile(`(?m)^## \[?` + regexp.QuoteMeta(version) + `\]?( .*)?\n`)
	for _, heading := range []*regexp.Regexp{own, unreleasedHeading} {
		at := heading.FindStringIndex(changelog)
		if at == nil {
			continue
		}
		text := changelog[at[1]:]
		if next := nextHeading.FindStringIndex(text); next != nil {
			text = text[:next[0]]
		}
		if said(text) {
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// said tells whether a section contains more than headings.
func said(section string) bool {
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}

// promote moves the text under "Unreleased" to the heading of the version, and leaves an
// empty section for later changes. A changelog that already has a heading for the
// version, or says nothing new, stays as it is.
func promote(changelog, version string, day time.Time) string {
	at := unreleasedHeading.FindStringIndex(changelog)
	if at == nil || entry(changelog, version) == "" || strings.Contains(changelog, "\n## "+version) {
		return changelog
	}
	heading := fmt.Sprintf("## Unreleased\n\n## %s - %s\n", version, day.Format(time.DateOnly))
	return changelog[:at[0]] + heading + changelog[at[1]:]
}
