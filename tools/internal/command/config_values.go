// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/config/manual"
	"github.com/quorate/quorate/tools/internal/reference"
)

// The commands about the values of settings: explain says what one is, in files or on a running node, and diff where
// two lists differ. Both take their lists from [valueLists].

// ValueLister reads and merges files for a program with its extensions, and lists the values of all settings. Its error
// lists the faults as [config.Errors].
type ValueLister func(extensions Extensions, paths ...string) ([]config.Value, error)

// valueLists are where values come from.
type valueLists struct {
	Allow []string `placeholder:"SECTION" help:"Sections of the program itself: their values are not shown."`

	RemoteFlags

	list ValueLister
}

// files lists the values of files, of which several, to be merged, are joined by commas.
func (v *valueLists) files(s *Session, names string) ([]config.Value, error) {
	values, err := v.list(Extensions{Sections: v.Allow}, strings.Split(names, ",")...)
	return values, rejected(s, err)
}

// node asks the node.
func (v *valueLists) node() (report cluster.SettingsReport, err error) {
	v.Timeout = max(v.Timeout, operationWait) // It may read its files slowly.
	_, err = v.get("/v1/settings", nil, &report)
	return report, err
}

// rejected prints faults of files, and returns the error for what was printed.
func rejected(s *Session, err error) error {
	if faults, ok := errorsOf(err); ok {
		for _, f := range faults {
			fmt.Fprintln(s.Stderr, s.Paint(31, f.Error()))
		}
		return RejectedError{}
	}
	return err
}

// ExplainSetting is the command that says what a setting is.
type ExplainSetting struct {
	Key   string `arg:"" help:"The setting, or a group of them."`
	Files string `arg:"" optional:"" help:"Files to look into, joined by commas and merged in this order, in place of a node."`

	valueLists
}

// Help is the text after the one-line help.
func (*ExplainSetting) Help() string {
	return `Says what a setting means, its value, and where that was written. A node that is asked
says besides what its files have by now, if it is something else, and what it takes for
that to count. Secrets, and what plugins and the program itself check, are not shown.

Examples:
  quorate config explain membership.fence
  quorate config explain downing -node http://10.0.0.7:8080
  quorate config explain membership.fence base.yaml,site.yaml
  quorate --json config explain plugins.witness.path | jq -r '.[0].source'`
}

// settingExplanation is the JSON form of a setting.
type settingExplanation struct {
	config.Value

	Meaning string        `json:"meaning,omitempty"`
	Files   *config.Value `json:"files,omitempty"` // What the files of a node have by now, if that differs.
}

// Run explains the setting.
func (c *ExplainSetting) Run(s *Session) error {
	all, err := reference.Read()
	if err != nil {
		return err
	}
	var report cluster.SettingsReport
	if c.Files != "" {
		report.Settings, err = c.files(s, c.Files)
	} else {
		report, err = c.node()
	}
	if err != nil {
		return err
	}
	found := c.find(all, report)
	if len(found) == 0 {
		return c.nothing(all)
	}
	if s.JSON {
		return s.PrintJSON(found)
	}
	for i, one := range found {
		if i > 0 {
			fmt.Fprintln(s.Stdout)
		}
		setting, _ := manual.Find(all, one.Key)
		setting.Key, setting.Reload = one.Key, one.Reload
		explain(s, setting)
		field(s.Stdout, "  value", shown(&one.Value))
		if one.Files != nil {
			field(s.Stdout, "  files", shown(one.Files)+"; "+effect(one.Reload))
		}
	}
	for _, fault := range report.Faults {
		field(s.Stdout, "files", fault)
	}
	return nil
}

// find returns the settings at and below the key.
func (c *ExplainSetting) find(all []manual.Setting, report cluster.SettingsReport) (found []settingExplanation) {
	at := map[string]int{}
	add := func(v config.Value) *settingExplanation {
		i, ok := at[v.Key]
		if !ok {
			i, at[v.Key] = len(found), len(found)
			setting, _ := manual.Find(all, v.Key)
			found = append(found, settingExplanation{Value: v, Meaning: setting.Meaning})
		}
		return &found[i]
	}
	for _, v := range report.Settings {
		if manual.IsUnder(v.Key, c.Key) {
			add(v)
		}
	}
	for _, d := range report.Pending {
		if manual.IsUnder(d.Key, c.Key) {
			before := config.Value{Key: d.Key, Reload: d.Reload()}
			one := add(before)
			one.Files = cmp.Or(d.To, &config.Value{Key: d.Key})
			one.Reload = d.Reload()
		}
	}
	return found
}

// nothing says why there is nothing at the key.
func (c *ExplainSetting) nothing(all []manual.Setting) error {
	if _, ok := manual.Find(all, c.Key); ok {
		return RejectedError{fmt.Sprintf("%s has no entry: quorate config reference %s says what may be there", printable(c.Key), printable(c.Key))}
	}
	return RejectedError{fmt.Sprintf("no key is named %q: quorate config reference lists all", printable(c.Key))}
}

// Diff is the command that says where two configurations differ.
type Diff struct {
	From string `arg:"" help:"Files, joined by commas and merged in this order."`
	To   string `arg:"" optional:"" help:"The other files. None: say what the first would change on a node."`

	valueLists
}

// Help is the text after the one-line help.
func (*Diff) Help() string {
	return `Lists the settings that have other values in the second configuration than in the
first, with where they were written, and what it takes to take the change over. Defaults
count: a file that writes a default is as one that does not. Secrets are compared between
files and not shown; with a node they cannot be compared, and are listed. The exit status
is 0 if nothing differs, 1 if something does, and 2 if files have faults.

Examples:
  quorate config diff old.yaml new.yaml
  quorate config diff base.yaml,blue.yaml base.yaml,green.yaml
  quorate config diff cluster.yaml -node http://10.0.0.7:8080
  quorate --json config diff old.yaml new.yaml | jq -r '.differences[].key'`
}

// differences is the JSON form of what Diff found.
type differences struct {
	Differences []config.Difference `json:"differences"`
	Unknown     []string            `json:"unknown,omitempty"` // Keys of values that could not be compared.
}

// Run compares the two.
func (c *Diff) Run(s *Session) error {
	from, err := c.files(s, c.From)
	if err != nil {
		return err
	}
	to := from
	if c.To != "" {
		to, err = c.files(s, c.To)
	} else {
		var report cluster.SettingsReport
		report, err = c.node()
		from = report.Settings
	}
	if err != nil {
		return err
	}
	var d differences
	d.Differences, d.Unknown = config.Compare(from, to)
	if s.JSON {
		d.Differences = append([]config.Difference{}, d.Differences...)
		err = s.PrintJSON(d)
	} else {
		d.print(s)
	}
	if err == nil && len(d.Differences) > 0 {
		return errSaid
	}
	return err
}

func (d differences) print(s *Session) {
	for _, one := range d.Differences {
		fmt.Fprintln(s.Stdout, s.Paint(32, printable(one.Key)))
		field(s.Stdout, "  from", shown(one.From))
		field(s.Stdout, "  to", shown(one.To))
		field(s.Stdout, "  change", effect(one.Reload()))
	}
	if len(d.Unknown) > 0 {
		field(s.Stdout, "not compared", strings.Join(d.Unknown, ", "))
	}
	if len(d.Differences) == 0 {
		fmt.Fprintln(s.Stdout, s.Paint(32, "no difference"))
	}
}

// shown returns a value for people, with where it was written.
func shown(v *config.Value) string {
	if v == nil || v.Text == "" && !v.Hidden {
		return "nothing"
	}
	text := v.Text
	if v.Hidden {
		text = strings.TrimSpace(text + " (not shown)")
	}
	return text + ", " + cmp.Or(v.Source, "the default")
}

// effect says how a node takes a change over.
func effect(reload bool) string {
	if reload {
		return "quorate reload takes it over"
	}
	return "needs a restart of the node"
}
