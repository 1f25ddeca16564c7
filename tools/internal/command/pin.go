// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The file is parsed to find plugins and the places of their checksums ([pins]); each
// change is an edit of one line, so that comments and layout stay; the file is replaced
// in one step ([replaceFile]).

// Pin is the command that writes checksums into a file.
type Pin struct {
	File  string `arg:"" help:"Configuration file, YAML."`
	Check bool   `help:"Write nothing; exit with 1 when a checksum is missing or wrong."`
}

// Help is the text after the one-line help.
func (*Pin) Help() string {
	return `For each plugin under plugins, computes the SHA-256 checksum of the executable at
path, relative to the file, and writes it as sha256; where that is a list, of which
each platform has one, it is added. Everything else in the file stays as it is. A node starts nothing whose checksum differs.

Look at what you pin: whoever could change the executable before decides for the
cluster from now on.

Examples:
  quorate plugin pin cluster.yaml
  quorate plugin pin --check cluster.yaml`
}

// pinResult is the result for one plugin, and the JSON form of the output about it.
type pinResult struct {
	Plugin string `json:"plugin"`
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Before string `json:"before,omitempty"`
	Same   bool   `json:"same"`

	edit edit
}

// edit replaces a part of a line, counted from 1; an empty part makes it an insertion.
type edit struct {
	line, from, to int
	text           string
}

// Run pins the plugins of the file.
func (p *Pin) Run(s *Session) error {
	text, err := os.ReadFile(p.File)
	if err != nil {
		return err
	}
	all, err := pins(p.File, string(text))
	if err != nil {
		return RejectedError{p.File + ": " + err.Error()}
	}
	stale := slices.ContainsFunc(all, func(p pinResult) bool { return !p.Same })
	if stale && !p.Check {
		if err := replaceFile(p.File, apply(string(text), all)); err != nil {
			return err
		}
	}
	if err := p.show(s, all); err != nil {
		return err
	}
	if stale && p.Check {
		return errors.New("checksums are missing or wrong: run quorate plugin pin " + p.File)
	}
	return nil
}

func (p *Pin) show(s *Session, all []pinResult) error {
	if s.JSON {
		return s.PrintJSON(all)
	}
	for _, one := range all {
		what := "pinned"
		switch {
		case one.Same:
			what = "is pinned already"
		case p.Check && one.Before == "":
			what = "is not pinned"
		case p.Check:
			what = "is pinned to another file"
		}
		fmt.Fprintf(s.Stdout, "%s %s\n  %s\n  %s\n", one.Plugin, what, one.Path, one.SHA256)
	}
	if len(all) == 0 {
		fmt.Fprintf(s.Stdout, "%s has no plugins\n", p.File)
	}
	return nil
}

// pins finds the plugins of a file, and the edits that pin them.
func pins(path, text string) ([]pinResult, error) {
	if ext := filepath.Ext(path); ext == ".json" || ext == ".toml" {
		return nil, fmt.Errorf("pins are written into YAML files only; put the output of sha256sum into sha256 by hand")
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	section := valueOf(doc.Content[0], "plugins")
	if section == nil {
		return nil, nil
	}
	var all []pinResult
	for i := 0; i+1 < len(section.Content); i += 2 {
		one, err := pinOf(filepath.Dir(path), text, section.Content[i], section.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("plugins.%s: %w", section.Content[i].Value, err)
		}
		all = append(all, one)
	}
	return all, nil
}

func pinOf(dir, text string, name, plugin *yaml.Node) (pinResult, error) {
	path := valueOf(plugin, "path")
	if path == nil {
		return pinResult{}, errors.New("has no path")
	}
	one := pinResult{Plugin: name.Value, Path: path.Value}
	if !filepath.IsAbs(one.Path) {
		one.Path = filepath.Join(dir, one.Path)
	}
	var err error
	if one.SHA256, err = checksum(one.Path); err != nil {
		return one, err
	}
	old := valueOf(plugin, "sha256")
	if old != nil && old.Kind == yaml.SequenceNode {
		return pinBeside(one, text, old)
	}
	if old != nil {
		one.Before, one.Same = old.Value, strings.EqualFold(old.Value, one.SHA256)
		width := width(old)
		one.edit = edit{old.Line, old.Column, old.Column + width, one.SHA256}
		return one, nil
	}
	key := keyOf(plugin, "path")
	end := path.Column + width(path)
	if plugin.Style&yaml.FlowStyle != 0 {
		one.edit = edit{path.Line, end, end, ", sha256: " + one.SHA256}
		return one, nil
	}
	line := strings.Split(text, "\n")[path.Line-1]
	end = len(strings.TrimSuffix(line, "\r")) + 1 // Behind a comment.
	one.edit = edit{path.Line, end, end, "\n" + strings.Repeat(" ", key.Column-1) + "sha256: " + one.SHA256}
	return one, nil
}

// pinBeside adds a checksum to those of other platforms, behind the last of them.
func pinBeside(one pinResult, text string, list *yaml.Node) (pinResult, error) {
	if len(list.Content) == 0 {
		return one, errors.New("sha256 is an empty list: take it out")
	}
	var before []string
	for _, sum := range list.Content {
		before = append(before, sum.Value)
		one.Same = one.Same || strings.EqualFold(sum.Value, one.SHA256)
	}
	one.Before = strings.Join(before, ", ")
	last := list.Content[len(list.Content)-1]
	end := last.Column + width(last)
	one.edit = edit{last.Line, end, end, ", " + one.SHA256}
	if list.Style&yaml.FlowStyle == 0 {
		line := strings.Split(text, "\n")[last.Line-1]
		end = len(strings.TrimSuffix(line, "\r")) + 1 // Behind a comment.
		one.edit = edit{last.Line, end, end, "\n" + line[:last.Column-1] + one.SHA256}
	}
	return one, nil
}

// width is how long a scalar is in the file; scalars that span lines are not paths.
func width(n *yaml.Node) int {
	if n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
		return len(n.Value) + 2
	}
	return len(n.Value)
}

// keyOf returns the node of a key of a map, nil if it has none.
func keyOf(m *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Kind == yaml.MappingNode && m.Content[i].Value == key {
			return m.Content[i]
		}
	}
	return nil
}

// valueOf returns the value of a key of a map, nil if it has none.
func valueOf(m *yaml.Node, key string) *yaml.Node {
	k := keyOf(m, key)
	if k == nil {
		return nil
	}
	return m.Content[slices.Index(m.Content, k)+1]
}

// checksum is the SHA-256 checksum of a file.
func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// apply makes the edits, the last one in the text first, so that the positions of the
// others stay right.
func apply(text string, all []pinResult) string {
	lines := strings.Split(text, "\n")
	edits := make([]edit, 0, len(all))
	for _, p := range all {
		if !p.Same {
			edits = append(edits, p.edit)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(b.line, a.line), cmp.Compare(b.from, a.from)) })
	for _, e := range edits {
		l := lines[e.line-1]
		lines[e.line-1] = l[:e.from-1] + e.text + l[e.to-1:]
	}
	return strings.Join(lines, "\n")
}

// replaceFile replaces a file in one step, so that a node that watches it reads the old
// content or the new.
func replaceFile(path, text string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".pin-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(info.Mode()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // The first error is the one to return.
	}
	return err
}
