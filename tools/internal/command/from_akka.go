// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/hocon"
)

// FromAkka is the command that translates a file of Akka or Pekko.
type FromAkka struct {
	File string `arg:"" help:"The file, such as application.conf; it may include others beside it."`
	Out  string `placeholder:"FILE" help:"Write to this file, which must not exist."`

	translate Translator
}

// Help is the text after the one-line help.
func (*FromAkka) Help() string {
	return `Writes the configuration of a node, in YAML, that says what the file said: each setting
is translated, or stands in a comment at the top as not needed, with the reason, or as
unknown. A value that cannot be translated, and one that a node would refuse, is a fault
with file and line; nothing is written then, and the exit status is 2. What has to be
set besides is listed too. docs/choosing.md has the table.

Examples:
  quorate config from-akka application.conf
  quorate config from-akka application.conf --out cluster.yaml
  quorate --json config from-akka application.conf | jq -r '.unknown[].key'`
}

// Run translates the file.
func (c *FromAkka) Run(s *Session) error {
	settings, err := hocon.Read(c.File, os.Environ())
	if err != nil {
		if f, ok := errors.AsType[*hocon.Error](err); ok {
			err = config.Errors{{File: f.File, Line: f.Line, Reason: f.Reason, Err: config.ErrSyntax}}
		}
		return rejected(s, err)
	}
	t, err := c.translate(settings)
	if err != nil {
		return rejected(s, err)
	}
	if s.JSON {
		return s.PrintJSON(t)
	}
	text := commented(c.File, t)
	if c.Out == "" {
		_, err := fmt.Fprint(s.Stdout, text)
		return err
	}
	if err := writeNew(c.Out, 0o600, []byte(text)); err != nil {
		return err
	}
	field(s.Stdout, "written", c.Out)
	field(s.Stdout, "not needed", fmt.Sprint(len(t.Obsolete)))
	field(s.Stdout, "unknown", fmt.Sprint(len(t.Unknown)))
	for _, n := range t.Missing {
		field(s.Stdout, "to be set", n.Key+": "+n.Why)
	}
	return nil
}

// commented returns the file with what was not translated in a comment at its top.
func commented(name string, t *akka.Translation) string {
	var b strings.Builder
	comment := func(title string, notes []akka.Diagnostic) {
		if len(notes) == 0 {
			return
		}
		fmt.Fprintf(&b, "#\n# %s:\n", title)
		for _, n := range notes {
			var lines strings.Builder
			text := n.Key
			if n.Place != "" {
				text += " (" + filepath.Base(n.Place) + ")"
			}
			if n.Why != "" {
				text += ": " + n.Why
			}
			paragraph(&lines, len("#   "), text)
			fmt.Fprint(&b, "#   "+strings.ReplaceAll(strings.TrimSuffix(lines.String(), "\n"), "\n    ", "\n#     ")+"\n")
		}
	}
	fmt.Fprintf(&b, "# Translated from %s by quorate config from-akka.\n", printable(name))
	comment("To be set besides", t.Missing)
	comment("Not needed", t.Obsolete)
	comment("Unknown, and not translated", t.Unknown)
	return b.String() + "\n" + t.File
}
