// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/config/manual"
	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/plugins/host"
	"github.com/quorate/quorate/tools/internal/reference"
)

// Reference is the command that explains the keys of the configuration.
type Reference struct {
	Key      string `arg:"" optional:"" help:"Only this key, and those below it."`
	Files    string `arg:"" optional:"" help:"Files that have the plugin of the key, joined by commas: it is asked for its settings."`
	Markdown bool   `help:"Print Markdown tables."`
}

// Help is the text after the one-line help.
func (*Reference) Help() string {
	return `For each key: its type, default, values, whether it may change while the node
runs, what it means, and the environment variable that overrides it. With
plugins.NAME and files that have this plugin, the plugin is started as a node
starts it, and asked which settings it takes; it is not configured.

Examples:
  quorate config reference
  quorate config reference sharding.rebalance
  quorate config reference plugins.witness cluster.yaml
  quorate config reference --markdown > configuration.md
  quorate --json config reference membership.fence`
}

// Run prints the reference.
func (r *Reference) Run(s *Session) error {
	all, err := r.read(s)
	if err != nil {
		return err
	}
	settings := manual.Under(all, r.Key)
	if len(settings) == 0 {
		return RejectedError{fmt.Sprintf("no key is named %q: quorate config reference lists all", printable(r.Key))}
	}
	switch {
	case s.JSON:
		return s.PrintJSON(settings)
	case r.Markdown:
		fmt.Fprint(s.Stdout, manual.Markdown(settings))
		return nil
	}
	for i, one := range settings {
		if i > 0 {
			fmt.Fprintln(s.Stdout)
		}
		explain(s, one)
	}
	return nil
}

// read returns the settings of Quorate, or those of the plugin of files.
func (r *Reference) read(s *Session) ([]manual.Setting, error) {
	if r.Files == "" {
		return reference.Read()
	}
	parts := strings.SplitN(r.Key, ".", 3)
	if len(parts) < 2 || parts[0] != "plugins" {
		return nil, RejectedError{fmt.Sprintf("%q is no plugin: say plugins.NAME before the files", printable(r.Key))}
	}
	name := parts[1]
	_, all, err := pluginsOf(strings.Split(r.Files, ",")...)
	if err != nil {
		return nil, rejected(s, err)
	}
	cfg, err := pluginOf(all, r.Files, name)
	if err != nil {
		return nil, RejectedError{err.Error()}
	}
	d, err := declaredSettings(s, name, cfg)
	if err != nil {
		return nil, err
	}
	about := strings.TrimSpace(d.Manifest.Name + " " + d.Manifest.Version)
	return reference.Plugin("plugins."+name+".settings", "The settings of "+about+".", d.Schema.Text())
}

// declaredSettings starts a plugin and returns what it says of itself, which has a schema.
func declaredSettings(s *Session, name string, cfg plugins.Config) (host.Declaration, error) {
	d, err := declared(s.Stderr, name, cfg)
	switch {
	case err != nil:
		return d, err
	case d.Fault != nil:
		return d, fmt.Errorf("what the plugin %s says of its settings cannot be used: %w", name, d.Fault)
	case d.Schema == nil:
		return d, fmt.Errorf("the plugin %s does not say which settings it takes", name)
	}
	return d, nil
}

// explain prints one setting as a paragraph.
func explain(s *Session, one manual.Setting) {
	fmt.Fprintln(s.Stdout, s.Paint(32, one.Key))
	field(s.Stdout, "  meaning", one.Meaning)
	if one.Group() {
		return
	}
	field(s.Stdout, "  type", one.Type)
	field(s.Stdout, "  default", one.Preset())
	field(s.Stdout, "  values", one.Values())
	if one.Reload {
		field(s.Stdout, "  reload", "may change while the node runs")
	} else {
		field(s.Stdout, "  reload", "needs a restart of the node")
	}
	field(s.Stdout, "  variable", one.Variable)
}
