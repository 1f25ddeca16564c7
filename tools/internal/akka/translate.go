// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package akka

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/config"
	"github.com/quorate/quorate/tools/internal/hocon"
)

// Translation: each setting is translated by its rule, or noted (setting), what several make is added (together), then
// the file is written and checked as a node would (check).

// The keys that are put together of several settings.
const (
	nodeAddress       = "node.address"
	transportBind     = "transport.bind"
	managementAddress = "management.address"
	clusterName       = "cluster.name"
	durableKeys       = "ddata.durable"
	dataDir           = "node.data-dir"
)

// The ports that are usual there.
const (
	artery     = "25520"
	management = "8558"
)

// Diagnostic is a setting that was not translated.
type Diagnostic struct {
	Key   string `json:"key"`
	Place string `json:"place,omitempty"`
	Why   string `json:"why"`
}

// Translation is what became of the settings of a file.
type Translation struct {
	File     string       `json:"file"` // In YAML, with a comment on each line that says where it is from.
	Obsolete []Diagnostic `json:"obsolete"`
	Unknown  []Diagnostic `json:"unknown"`
	Missing  []Diagnostic `json:"missing"` // What has to be set besides, and has no counterpart there.
}

// line is a setting of Quorate.
type line struct {
	path  []string
	value any
	from  []hocon.Setting
}

// translator collects the lines of one file.
type translator struct {
	Translation

	lines  []*line
	more   parts
	faults config.Errors
}

// Translate translates settings for a program with its extensions. The error is of type [config.Errors], with a fault
// for each value that cannot be what its key needs.
func Translate(settings []hocon.Setting, own cluster.Extensions) (*Translation, error) {
	t := translator{more: parts{hosts: map[string]string{}, ports: map[string]string{}}}
	for _, s := range settings {
		t.setting(s)
	}
	t.together(settings)
	if len(t.faults) > 0 {
		return nil, t.faults
	}
	if err := t.write(); err != nil {
		return nil, err
	}
	if t.check(own); len(t.faults) > 0 {
		return nil, t.faults
	}
	return &t.Translation, nil
}

func (t *translator) fault(s hocon.Setting, reason string) {
	t.faults = append(t.faults, &config.Error{File: s.File, Line: s.Line, Key: s.Key(), Reason: reason, Err: config.ErrBadValue})
}

// setting translates one setting, or notes that it is not.
func (t *translator) setting(s hocon.Setting) {
	note := Diagnostic{Key: s.Key(), Place: fmt.Sprintf("%s:%d", s.File, s.Line)}
	if top := s.Path[0]; top != "akka" && top != "pekko" || len(s.Path) == 1 {
		note.Why = "is the program's own: a section of the program has them here, see cluster.WithSection"
		t.Unknown = append(t.Unknown, note)
		return
	}
	below := s
	below.Path = s.Path[1:]
	for _, r := range Rules() {
		star, ok := match(strings.Split(r.From, "."), below.Path)
		if !ok {
			continue
		}
		v, err := r.convert(value{below, &t.more})
		switch {
		case err != nil:
			t.fault(s, err.Error())
		case v != nil:
			t.add(strings.Split(r.To, "."), star, v, s)
		}
		return
	}
	best := Obsolete{}
	for _, u := range ObsoleteKeys() {
		if (below.Key() == u.From || strings.HasPrefix(below.Key(), u.From+".")) && len(u.From) > len(best.From) {
			best = u
		}
	}
	if note.Why = best.Why; note.Why != "" {
		t.Obsolete = append(t.Obsolete, note)
		return
	}
	t.Unknown = append(t.Unknown, note)
}

// match reports whether a path is that of a rule, and what stands in the place of its "*".
func match(rule, path []string) (star string, ok bool) {
	return star, slices.EqualFunc(rule, path, func(r, p string) bool {
		if r == "*" {
			star = p
		}
		return r == p || r == "*"
	})
}

// add notes the value of a key. Two settings may give it if they agree.
func (t *translator) add(path []string, star string, v any, from ...hocon.Setting) {
	for i := range path {
		if path[i] == "*" {
			path[i] = star
		}
	}
	for _, l := range t.lines {
		if !slices.Equal(l.path, path) {
			continue
		}
		if fmt.Sprint(l.value) != fmt.Sprint(v) {
			t.fault(from[0], fmt.Sprintf("becomes %s, as %s does, which says something else", strings.Join(path, "."), l.from[0].Key()))
		}
		l.from = append(l.from, from...)
		return
	}
	t.lines = append(t.lines, &line{path, v, from})
}

// together adds what several settings make.
func (t *translator) together(settings []hocon.Setting) {
	of := func(keys ...string) (from []hocon.Setting) {
		for _, s := range settings {
			if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(strings.Join(s.Path[1:], "."), key) }) {
				from = append(from, s)
			}
		}
		return from
	}
	for key, made := range map[string]struct{ from, usual string }{
		nodeAddress: {"remote.artery.canonical", artery}, transportBind: {"remote.artery.bind", artery}, managementAddress: {"management.http", management},
	} {
		if address := t.more.address(made.from, made.usual); address != "" {
			t.add(strings.Split(key, "."), "", address, of(made.from+".hostname", made.from+".port")...)
		}
	}
	if t.more.system != "" {
		t.add(strings.Split(clusterName, "."), "", t.more.system, of("cluster.seed-nodes")...)
	}
	slices.SortFunc(t.lines, func(a, b *line) int { return slices.Compare(a.path, b.path) })
}

// write writes the file.
func (t *translator) write() error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, l := range t.lines {
		at := root
		for _, name := range l.path[:len(l.path)-1] {
			at = inside(at, name)
		}
		v := new(yaml.Node)
		if err := v.Encode(l.value); err != nil {
			return err
		}
		if v.Kind == yaml.SequenceNode {
			v.Style = yaml.FlowStyle
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Value: l.path[len(l.path)-1]}
		var from []string
		for _, s := range l.from {
			from = append(from, s.Key())
		}
		v.LineComment = "# " + strings.Join(from, ", ")
		at.Content = append(at.Content, key, v)
	}
	if len(root.Content) == 0 {
		return nil
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := errors.Join(e.Encode(root), e.Close())
	t.File = b.String()
	return err
}

// inside returns the group with a name in a group.
func inside(at *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(at.Content); i += 2 {
		if at.Content[i].Value == name {
			return at.Content[i+1]
		}
	}
	group := &yaml.Node{Kind: yaml.MappingNode}
	at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, group)
	return group
}

// check looks at the file as a node would. What the node would refuse of a value is a fault at its place; what it would
// miss besides, such as certificates, is missing.
func (t *translator) check(own cluster.Extensions) {
	cfg := cluster.Default()
	if t.of(durableKeys) != nil {
		cfg.Node.DataDir = "data"
	}
	text := storage(cmp.Or(t.File, "{}"))
	file, err := config.Parse(translated, []byte(text))
	if err == nil {
		err = file.Decode("", &cfg)
	}
	refused, _ := errors.AsType[config.Errors](err)
	for _, e := range refused {
		key, _, _ := strings.Cut(e.Key, "[")
		if l := t.of(key); l != nil {
			t.fault(l.from[0], fmt.Sprintf("becomes %s, which is refused: %s", e.Key, e.Reason))
		}
	}
	own.Options = append(slices.Clone(own.Options), cluster.WithProvider(translated, text, storageParser{}))
	err = cluster.Check(own)
	missed, _ := errors.AsType[config.Errors](err)
	for _, e := range missed {
		t.Missing = append(t.Missing, Diagnostic{Key: e.Key, Why: e.Reason})
	}
}

// translated is the name of the file in faults.
const translated = "translated.yaml"

// storage is a provider of the text of the file.
type storage string

func (s storage) ReadBytes() ([]byte, error)  { return []byte(s), nil }
func (storage) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }

// storageParser reads YAML.
type storageParser struct{}

func (storageParser) Marshal(map[string]any) ([]byte, error) { return nil, errors.ErrUnsupported }
func (storageParser) Unmarshal(b []byte) (tree map[string]any, err error) {
	return tree, yaml.Unmarshal(b, &tree)
}

// of returns the line with a key, nil if there is none.
func (t *translator) of(key string) *line {
	i := slices.IndexFunc(t.lines, func(l *line) bool { return strings.Join(l.path, ".") == key })
	if i < 0 {
		return nil
	}
	return t.lines[i]
}
