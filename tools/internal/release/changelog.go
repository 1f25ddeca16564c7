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

// unreleased returns what a changelog says under "Unreleased"; empty where it says nothing.
func unreleased(changelog string) string {
	at := unreleasedHeading.FindStringIndex(changelog)
	if at == nil {
		return ""
	}
	text := changelog[at[1]:]
	if next := nextHeading.FindStringIndex(text); next != nil {
		text = text[:next[0]]
	}
	if !said(text) {
		return ""
	}
	return strings.TrimSpace(text)
}

// stepOf returns the step that the headings under "Unreleased" say.
func stepOf(changelog string) (Step, error) {
	text := unreleased(changelog)
	if text == "" {
		return StepNone, fmt.Errorf("its %s says nothing under \"Unreleased\": say what its users will notice, under ### Removed, Changed, Added or Fixed", changelogName)
	}
	step := StepPatch
	for line := range strings.Lines(text) {
		switch strings.TrimSpace(line) {
		case "### Breaking", "### Removed":
			step = max(step, StepBreaking)
		case "### Added", "### Changed", "### Deprecated":
			step = max(step, StepMinor)
		}
	}
	return step, nil
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
// empty section for later changes. A changelog that says nothing gets the note, if there is one.
func promote(changelog, version, note string, day time.Time) string {
	at := unreleasedHeading.FindStringIndex(changelog)
	if at == nil || unreleased(changelog) == "" && note == "" {
		return changelog
	}
	heading := fmt.Sprintf("## Unreleased\n\n## %s - %s\n", version, day.Format(time.DateOnly))
	if unreleased(changelog) == "" {
		heading += "\n" + note + "\n"
	}
	return changelog[:at[0]] + heading + changelog[at[1]:]
}
