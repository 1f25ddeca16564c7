// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/tools/internal/akka"
	"github.com/quorate/quorate/tools/internal/hocon"
)

// Files are checked in two steps: as a node's start looks at them ([Checker]), then, if it is wanted, with the plugins
// that they name ([Check.askPlugins]).

// Config is the command that looks at configuration files.
type Config struct {
	Check     Check          `cmd:"" help:"Check configuration files; print every fault, or ok."`
	Diff      Diff           `cmd:"" help:"Say where two configurations differ, or one and a node."`
	Explain   ExplainSetting `cmd:"" help:"Say what a setting is, in files or on a node, and who says so."`
	FromAkka  FromAkka       `cmd:"" name:"from-akka" help:"Translate a file of Akka or Pekko."`
	Reference Reference      `cmd:"" help:"Print what each key means, its default and its values."`
	Schema    Schema         `cmd:"" help:"Print the JSON Schema of configuration files, for editors."`
}

// Extensions are what a program adds to the configuration, by name.
type Extensions struct {
	Strategies, Sections []string
	Kinds                []string // Its kinds of entities; none if they are not known.
	Each                 bool     // Each file is that of another node.
}

// Checker reads, merges and checks files for a program with its extensions. Its error lists the faults as
// [config.Errors]. Without a fault, needs are what the files demand of the program beyond what every program links, and
// warnings what this system does not keep of what they say.
type Checker func(extensions Extensions, paths ...string) (needs, warnings config.Errors, err error)

// Translator translates the settings of a file of Akka for a program that links everything.
type Translator func([]hocon.Setting) (*akka.Translation, error)

// NewConfig returns the command. Defaults is the struct that the files fill, with its
// defaults in it.
func NewConfig(check Checker, list ValueLister, translate Translator, defaults any) *Config {
	lists := valueLists{list: list}
	return &Config{
		Check: Check{check: check}, Diff: Diff{valueLists: lists}, Explain: ExplainSetting{valueLists: lists}, FromAkka: FromAkka{translate: translate},
		Schema: Schema{defaults: defaults},
	}
}

// Check is the command that checks files together, as a node would load them.
type Check struct {
	Files []string `arg:"" name:"file" help:"Files, merged in this order."`
	Own   []string `placeholder:"NAME" help:"Strategies that the program itself brings."`
	Allow []string `placeholder:"SECTION" help:"Sections of the program itself: whatever they hold is passed over."`
	Kinds []string `placeholder:"KIND" help:"Kinds of entities that the program has, to which gateway.kinds is held."`
	Each  bool     `help:"Each file is that of another node of one cluster: check each alone, and compare them."`

	Plugins bool `help:"Start each plugin, and check its settings by what it says of them."`

	check Checker
}

// Help is the text after the one-line help.
func (*Check) Help() string {
	return `The files are merged in order, then the QUORATE_ variables of the environment,
as a node does when it starts, and what its start would refuse is looked at too:
addresses that need TLS, two listeners with one port, certificates, files of tokens,
executables of plugins that are chosen, names of strategies, the sections of
methods of discovery that are selected. Files may ask for
parts that not every program links: the answer names each, with the import and the
option that give it to the program. What this system cannot keep, such as limits of
plugins that only Linux has, is a warning; so is a seed node that is the
node itself under another name, which no node finds. With --each the files
are those of several nodes: names of the cluster and addresses must fit, and
some nodes without node.data-dir among others, or different lists of seed
nodes, are warned of. With --plugins each plugin of the files is started as a
node starts it, and asked which settings it takes; it is not configured. Without,
nothing is started, and what is in the settings of plugins is not looked at. The
exit status is 0 when all is well and 2 when there are faults.

The end of its name tells the format of a file: .toml, .json, and YAML for
everything else.

Examples:
  quorate config check cluster.yaml
  quorate config check base.yaml site.toml
  quorate config check --each n1.yaml n2.yaml n3.yaml
  quorate config check --plugins cluster.yaml
  quorate config check --allow twins cluster.yaml
  quorate config check --kinds account,customer cluster.yaml
  QUORATE_NODE__ADDRESS=10.0.0.7:7946 quorate config check cluster.yaml
  quorate --json config check cluster.yaml`
}

// verdict is the JSON form of what Check found.
type verdict struct {
	OK     bool    `json:"ok"`
	Faults []fault `json:"faults"`
	Needs  []fault `json:"needs"`

	Warnings []fault `json:"warnings"`
}

type fault struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Key     string `json:"key,omitempty"`
	Reason  string `json:"reason"`
	Nearest string `json:"nearest,omitempty"`
}

// Run checks the files.
func (c *Check) Run(s *Session) error {
	needs, warnings, err := c.check(Extensions{Strategies: c.Own, Sections: c.Allow, Kinds: c.Kinds, Each: c.Each}, c.Files...)
	if err == nil && c.Plugins {
		var unsaid config.Errors
		unsaid, err = c.askPlugins(s)
		warnings = append(warnings, unsaid...)
	}
	faults, ok := errorsOf(err)
	if err != nil && !ok {
		return err
	}
	if s.JSON {
		if err := s.PrintJSON(verdict{OK: err == nil, Faults: faultsOf(faults), Needs: faultsOf(needs), Warnings: faultsOf(warnings)}); err != nil {
			return err
		}
	} else {
		for _, f := range faults {
			fmt.Fprintln(s.Stdout, s.Paint(31, f.Error()))
		}
	}
	if err != nil {
		return RejectedError{}
	}
	if !s.JSON {
		fmt.Fprintln(s.Stdout, s.Paint(32, "ok"))
		for _, f := range needs {
			fmt.Fprintln(s.Stdout, s.Paint(33, "refused by a program without it: "+f.Error()))
		}
		for _, f := range warnings {
			fmt.Fprintln(s.Stdout, s.Paint(33, "warning: "+f.Error()))
		}
	}
	return nil
}

// askPlugins holds the settings of plugins to what they say of them.
func (c *Check) askPlugins(s *Session) (warnings config.Errors, err error) {
	together := [][]string{c.Files}
	if c.Each {
		together = slices.Collect(slices.Chunk(c.Files, 1))
	}
	var faults config.Errors
	for _, files := range together {
		wrong, unsaid, err := heldToSchemas(s.Stderr, files...)
		if err != nil {
			return nil, err
		}
		faults, warnings = append(faults, wrong...), append(warnings, unsaid...)
	}
	if len(faults) > 0 {
		return warnings, faults
	}
	return warnings, nil
}

// errorsOf returns the faults that an error lists.
func errorsOf(err error) (config.Errors, bool) { return errors.AsType[config.Errors](err) }

func faultsOf(all config.Errors) []fault {
	faults := make([]fault, 0, len(all))
	for _, f := range all {
		faults = append(faults, fault{File: f.File, Line: f.Line, Key: f.Key, Reason: f.Reason, Nearest: f.Nearest})
	}
	return faults
}
