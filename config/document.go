// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// sizeBytesMax bounds a file. The largest sensible one, with a thousand seed
	// nodes and plugins, is a tenth of it.
	sizeBytesMax = 1 << 20
	// depthMax bounds the nesting, far above what any section needs.
	depthMax = 32
)

// document is one source text that passed the checks of its form.
type document struct {
	name  string
	data  []byte
	lines map[string]int // line of each key and list item, by joined path
}

// read returns the content of a file, with one clear fault for everything that
// is not a regular file of a sensible size. A named pipe would block for ever,
// so the kind is looked at before the file is opened.
func read(path string) ([]byte, *Error) {
	fault := func(reason string) *Error { return &Error{File: path, Reason: reason, Err: ErrRead} }
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".toml", ".hcl", ".ini", ".conf", ".properties", ".xml":
		return nil, fault(fmt.Sprintf("%s files are not supported, write YAML into a .yaml file", ext))
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault("no such file")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault("permission denied")
	case err != nil:
		return nil, fault(oneLine(err.Error()))
	case info.IsDir():
		return nil, fault("is a directory, a file is needed")
	case !info.Mode().IsRegular():
		return nil, fault("is not a regular file")
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fault("permission denied")
	} else if err != nil {
		return nil, fault(oneLine(err.Error()))
	}
	defer file.Close() //nolint:errcheck // Closing a file that was only read loses nothing.
	data, err := io.ReadAll(io.LimitReader(file, sizeBytesMax+1))
	if err != nil {
		return nil, fault(oneLine(err.Error()))
	}
	return data, nil
}

// scan checks the form of a document and notes where its keys stand.
func scan(name string, data []byte) (document, Errors) {
	fault := func(line int, reason string) Errors {
		return Errors{{File: name, Line: line, Reason: reason, Err: ErrSyntax}}
	}
	if len(data) > sizeBytesMax {
		return document{}, Errors{{File: name, Reason: fmt.Sprintf("is larger than %d bytes", sizeBytesMax), Err: ErrRead}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return document{}, fault(0, "is not UTF-8 text")
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root, next yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return document{}, fault(0, "is empty")
	case err != nil:
		line, reason := syntax(err)
		return document{}, fault(line, reason)
	}
	if err := decoder.Decode(&next); err == nil {
		return document{}, fault(next.Line, "a second document begins here, one is allowed")
	} else if !errors.Is(err, io.EOF) {
		line, reason := syntax(err)
		return document{}, fault(line, reason)
	}
	top := root.Content[0]
	if top.Kind == yaml.ScalarNode && top.Tag == "!!null" {
		return document{}, fault(0, "is empty")
	}
	if top.Kind != yaml.MappingNode {
		return document{}, fault(top.Line, "the top of the file must be a map of sections, such as \"node:\"")
	}
	s := scanner{name: name, lines: map[string]int{}}
	s.walk(top, nil)
	return document{name: name, data: data, lines: s.lines}, s.faults
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

// scanner walks a document and collects lines and faults.
type scanner struct {
	name   string
	lines  map[string]int
	faults Errors
}

func (s *scanner) fault(n *yaml.Node, path []string, reason string) {
	s.faults = append(s.faults, &Error{File: s.name, Line: n.Line, Key: display(path), Reason: reason, Err: ErrSyntax})
}

func (s *scanner) walk(n *yaml.Node, path []string) {
	if len(path) > depthMax {
		s.fault(n, path[:1], fmt.Sprintf("is nested deeper than %d levels", depthMax))
		return
	}
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		// A setting that stands somewhere else than where it takes effect is
		// hard to review, and aliases of aliases grow without bound.
		s.fault(n, path, "anchors and aliases are not supported, repeat the value")
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		s.mapping(n, path)
	case yaml.SequenceNode:
		for i, item := range n.Content {
			at := append(slices.Clip(path), "["+strconv.Itoa(i)+"]")
			s.lines[strings.Join(at, separator)] = item.Line
			s.walk(item, at)
		}
	case yaml.ScalarNode, yaml.DocumentNode, yaml.AliasNode:
		if n.Tag == "!!binary" || n.Tag != "" && !strings.HasPrefix(n.Tag, "!!") {
			s.fault(n, path, fmt.Sprintf("the tag %s is not supported", oneLine(n.Tag)))
		}
	}
}

func (s *scanner) mapping(n *yaml.Node, path []string) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Tag == "!!null" {
			s.fault(key, path, "a key must be a word")
			continue
		}
		if key.Tag == "!!merge" || key.Anchor != "" {
			s.fault(key, path, "anchors and aliases are not supported, repeat the value")
			continue
		}
		if key.Value == "" || strings.ContainsFunc(key.Value, unicode.IsControl) {
			s.fault(key, path, fmt.Sprintf("the key %q is empty or holds a control character", key.Value))
			continue
		}
		at := append(slices.Clip(path), key.Value)
		if first, twice := seen[key.Value]; twice {
			s.fault(key, at, fmt.Sprintf("the key stands twice, first in line %d", first))
			continue
		}
		seen[key.Value] = key.Line
		s.lines[strings.Join(at, separator)] = key.Line
		s.walk(value, at)
	}
}

// display joins a path for people: "node.roles[2]".
func display(path []string) string {
	var b strings.Builder
	for i, part := range path {
		if i > 0 && !strings.HasPrefix(part, "[") {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// oneLine makes a text of another library fit into one line of a report.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, unicode.IsControl), " ")
}
