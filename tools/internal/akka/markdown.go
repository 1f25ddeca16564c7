// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package akka

import (
	"fmt"
	"strings"
)

// Markdown returns the rules, and what is not needed, as two tables.
func Markdown() string {
	var b strings.Builder
	b.WriteString("\n| there | here | |\n| --- | --- | --- |\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", r.From, r.To, r.Note)
	}
	b.WriteString("\n| not needed | since |\n| --- | --- |\n")
	for _, u := range ObsoleteKeys() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", u.From, u.Why)
	}
	b.WriteByte('\n')
	return b.String()
}
