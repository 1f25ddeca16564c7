// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads one YAML document. The node tree gives the places.
func parseYAML(name string, data []byte) (map[string]any, map[string]int, Errors) {
	fault := func(line int, reason string) Errors {
		return Errors{{File: name, Line: line, Reason: reason, Err: ErrSyntax}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, next yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, nil, nil
	case err != nil:
		line, reason := syntax(err)
		return nil, nil, fault(line, reason)
	}
	if err := decoder.Decode(&next); err == nil {
		return nil, nil, fault(next.Line, "a second document begins here, one is allowed")
	} else if !errors.Is(err, io.EOF) {
		line, reason := syntax(err)
		return nil, nil, fault(line, reason)
	}
	top := root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return nil, nil, nil
	}
	if top.Kind != yaml.MappingNode {
		return nil, nil, fault(top.Line, "the top of the file must be a map of sections, such as \"node:\"")
	}
	s := scanner{Places{name: name, lines: map[string]int{}}}
	s.walk(top, nil)
	if len(s.faults) > 0 {
		return nil, nil, s.faults
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		line, reason := syntax(err)
		return nil, nil, fault(line, reason)
	}
	return tree, s.lines, nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// syntax takes the line out of an error of the YAML library.
func syntax(err error) (int, string) {
	text := oneLine(strings.TrimPrefix(err.Error(), "yaml: "))
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			return line, "not valid YAML: " + m[2]
		}
	}
	return 0, "not valid YAML: " + text
}

// scanner walks over a document.
type scanner struct{ Places }

func (s *scanner) walk(n *yaml.Node, path []string) {
	if s.full {
		return
	}
	if len(path) > MaxDepth {
		s.Fault(n.Line, path[:1], tooDeep())
		return
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		// A setting that stands somewhere else than where it takes effect is
		// hard to review, and aliases of aliases grow without bound.
		s.Fault(n.Line, path, "anchors and aliases are not supported, repeat the value")
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		s.mapping(n, path)
	case yaml.SequenceNode:
		for i, child := range n.Content {
			at := item(path, i)
			s.Note(at, child.Line)
			s.walk(child, at)
		}
	case yaml.ScalarNode, yaml.DocumentNode, yaml.AliasNode:
		if reason := notDecimal(n); reason != "" {
			s.Fault(n.Line, path, reason)
		}
		if n.Tag == "!!binary" || n.Tag != "" && !strings.HasPrefix(n.Tag, "!!") {
			s.Fault(n.Line, path, fmt.Sprintf("the tag %s is not supported", oneLine(n.Tag)))
		}
	}
}

// decimal are the numbers that the other formats read too, and in the same way.
var decimal = regexp.MustCompile(`^[-+]?((0|[1-9][0-9]*)?(\.[0-9]*)?([eE][-+]?[0-9]+)?|\.(inf|Inf|INF))$|^\.(nan|NaN|NAN)$`)

// notDecimal returns why a number is refused that YAML would read in its own way, "" for one that is decimal and for
// everything else: 0100 would be 64.
func notDecimal(n *yaml.Node) string {
	if tag := n.ShortTag(); tag != "!!int" && tag != "!!float" || decimal.MatchString(n.Value) {
		return ""
	}
	var read any
	if err := n.Decode(&read); err != nil {
		return "" // The library refuses it.
	}
	return fmt.Sprintf("%s is not a decimal number as written, and YAML would read %v: write that number in decimal digits, or put a text in quotes", short(n.Value), read)
}

func (s *scanner) mapping(n *yaml.Node, path []string) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!null" {
			s.Fault(key.Line, path, "a key must be a word")
			continue
		}
		if key.Tag == "!!merge" || key.Anchor != "" {
			s.Fault(key.Line, path, "anchors and aliases are not supported, repeat the value")
			continue
		}
		if reason := cmp.Or(badKey(key.Value), notDecimal(key)); reason != "" {
			s.Fault(key.Line, path, reason)
			continue
		}
		at := extend(path, key.Value)
		if first, found := seen[key.Value]; found {
			s.Fault(key.Line, at, twice(first))
			continue
		}
		seen[key.Value] = key.Line
		s.Note(at, key.Line)
		s.walk(value, at)
	}
}
