// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/config/field"
)

// Values returns in words which values a setting may have, "" for any value of its
// type.
func (s Setting) Values() string {
	switch {
	case len(s.OneOf) > 0:
		return "one of " + strings.Join(s.OneOf, ", ")
	case len(s.Known) > 0:
		return strings.Join(s.Known, ", ") + ", or another"
	case s.Range == "":
		return ""
	}
	r, err := field.ParseRange(s.Range)
	if err != nil {
		return s.Range
	}
	text := r.String()
	if s.Unit != "" && s.Unit != "duration" {
		text += " " + s.Unit
	}
	return text
}

// Preset returns in words what applies when the setting is not set.
func (s Setting) Preset() string {
	if s.Required {
		return "must be set"
	}
	return s.Default
}

// Markdown returns the settings as tables, one table for each section, and one for what comes before the first.
func Markdown(settings []Setting) string {
	var b strings.Builder
	for i, s := range settings {
		if i == 0 || !strings.Contains(s.Key, ".") {
			fmt.Fprintf(&b, "\n### `%s`\n\n%s\n", s.Key, s.Meaning)
			b.WriteString("\n| key | type | default | values | reload | meaning |\n| --- | --- | --- | --- | --- | --- |\n")
			if s.Group() || !strings.Contains(s.Key, ".") {
				continue
			}
		}
		if s.Group() {
			fmt.Fprintf(&b, "| `%s` | %s |  |  | %s | %s |\n", s.Key, s.Type, yes(s.Reload), cell(s.Meaning))
			continue
		}
		preset := s.Preset()
		if !s.Required {
			preset = "`" + preset + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", s.Key, s.Type, preset, cell(s.Values()), yes(s.Reload), cell(s.Meaning))
	}
	return b.String()
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

// cell escapes a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
