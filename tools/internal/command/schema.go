// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/tools/internal/reference"
)

// Schema is the command that prints the JSON Schema.
type Schema struct {
	Files []string `arg:"" optional:"" help:"Files whose plugins are started, and asked for their settings."`

	defaults any
}

// Help is the text after the one-line help.
func (*Schema) Help() string {
	return `An editor with a YAML language server completes and checks a file whose first
line is
` + "  # yaml-language-server: $schema=" + reference.SchemaID + `
or names a copy of this output there. The schema describes one file; what must
fit together across files and settings is seen by: quorate config check

With files, each plugin in them is started as a node starts it, and asked which
settings it takes, so that these are completed and checked too; it is not
configured.

Examples:
  quorate config schema > cluster.schema.json
  quorate config schema cluster.yaml > cluster.schema.json`
}

// Run prints the schema.
func (c *Schema) Run(s *Session) error {
	settings, err := reference.Read()
	if err != nil {
		return err
	}
	schema, err := reference.Schema(settings, c.defaults)
	if err != nil {
		return err
	}
	said, err := c.plugins(s)
	if err != nil {
		return err
	}
	if err := reference.WithPlugins(schema, said); err != nil {
		return err
	}
	return s.PrintJSON(schema)
}

// plugins returns what the plugins of the files say of their settings. One that says nothing is told to the user, and
// left out.
func (c *Schema) plugins(s *Session) (map[string][]byte, error) {
	if len(c.Files) == 0 {
		return nil, nil
	}
	_, all, err := pluginsOf(c.Files...)
	if err != nil {
		return nil, rejected(s, err)
	}
	said := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d, err := declaredSettings(s, name, all[name])
		if err != nil {
			fmt.Fprintf(s.Stderr, "left out: %v\n", err)
			continue
		}
		said[name] = d.Schema.Text()
	}
	return said, nil
}
