// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/quorate/quorate/plugins"
	"github.com/quorate/quorate/tools/internal/scaffold"
)

// NewPlugin is the command that writes the project of a plugin.
type NewPlugin struct {
	Policy   string `arg:"" help:"What it decides: downing, allocation, failure-detector, join-decider or discovery."`
	Name     string `arg:"" help:"Name of the plugin, such as my-witness."`
	Lang     string `help:"Language: go or python." default:"go" placeholder:"LANG"`
	Dir      string `help:"Directory to make; by default the name of the plugin." placeholder:"DIR"`
	Module   string `help:"Path of the Go module; by default example.com/NAME." placeholder:"PATH"`
	Checkout string `help:"Build with a checkout of Quorate, not a release." placeholder:"DIR" env:"QUORATE_CHECKOUT"`
}

// Help is the text after the one-line help.
func (*NewPlugin) Help() string {
	return `Makes a directory with a plugin that works: a strategy with one place to change,
its tests, and what builds, checks and pins it. If the directory exists already, it
must be empty. After an error nothing has been written; the exit status is 2 when
the arguments are wrong, else 1.

Examples:
  quorate plugin new downing my-witness
  quorate plugin new allocation by-label --lang python
  quorate plugin new discovery inventory --dir plugins/inventory \
      --module git.example/plugins/inventory`
}

// createdProject is a project that was written, and the JSON form of the output.
type createdProject struct {
	Dir      string   `json:"dir"`
	Policy   string   `json:"policy"`
	Language string   `json:"language"`
	Files    []string `json:"files"`
}

// Run writes the project.
func (n *NewPlugin) Run(s *Session) error {
	p := scaffold.Project{
		Name: n.Name, Policy: plugins.Policy(n.Policy), Language: n.Lang, Module: cmp.Or(n.Module, "example.com/"+n.Name), Release: release(),
	}
	if n.Checkout != "" {
		checkout, err := filepath.Abs(n.Checkout)
		if err != nil {
			return err
		}
		p.Checkout = filepath.ToSlash(checkout)
	}
	files, err := p.Files()
	if err != nil {
		return RejectedError{err.Error()}
	}
	m := createdProject{Dir: cmp.Or(n.Dir, n.Name), Policy: n.Policy, Language: n.Lang}
	if err := scaffold.Write(m.Dir, files); err != nil {
		return err
	}
	for _, f := range files {
		m.Files = append(m.Files, f.Name)
	}
	if s.JSON {
		return s.PrintJSON(m)
	}
	for _, name := range m.Files {
		fmt.Fprintln(s.Stdout, filepath.Join(m.Dir, filepath.FromSlash(name)))
	}
	fmt.Fprintf(s.Stdout, "\nBuild and test it:  cd %s && make\nREADME.md says the rest, and how to do without make.\n", m.Dir)
	return nil
}

// release returns the release of which this program is, empty if it is of a work tree.
func release() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(info.Main.Version) || strings.Contains(info.Main.Version, "+dirty") {
		return ""
	}
	return info.Main.Version
}
