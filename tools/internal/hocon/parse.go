// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hocon

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The parser makes nodes of tokens. What a file writes twice is merged at once, and what a substitution may change
// keeps what was written before it, for resolve.go.

// node is a value as it was written: an object, a list, or parts that form a value together.
type node struct {
	file string
	line int

	fields map[string]*node // Of an object; not nil then.
	list   []*node          // The items of a list.
	isList bool
	parts  []*node // Parts side by side in a line.
	scalar *token  // A text or a substitution.

	before *node // What was written before under the same key, if one of the two depends on substitutions.
}

// parser parses one file.
type parser struct {
	scanner

	reader *reader
	now    token
	depth  int
	base   []string // Where the fields of the file are in the first one.
	at     []string // The names of the field that is being parsed.
}

// parse parses a file into an object. It returns with the first fault.
func (p *parser) parse(into *node) *Error {
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.skip(); err != nil {
		return err
	}
	if p.is("[") {
		return p.fault("a list, where an object is needed")
	}
	if !p.is("{") {
		return p.object(into, "")
	}
	if err := p.advance(); err != nil {
		return err
	}
	if err := p.object(into, "}"); err != nil {
		return err
	}
	if err := p.skip(); err != nil {
		return err
	}
	if p.now.kind != end {
		return p.fault("something follows the last }")
	}
	return nil
}

func (p *parser) advance() (err *Error) {
	p.now, err = p.next()
	return err
}

func (p *parser) is(text string) bool { return p.now.kind == mark && p.now.text == text }

// skip skips ends of lines.
func (p *parser) skip() *Error {
	for p.now.kind == newline {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

// separate skips ends of lines and a comma between fields or items.
func (p *parser) separate() *Error {
	if err := p.skip(); err != nil || !p.is(",") {
		return err
	}
	if err := p.advance(); err != nil {
		return err
	}
	return p.skip()
}

// object parses fields up to the mark that ends them, "" for the end of the file.
func (p *parser) object(into *node, last string) *Error {
	if p.depth++; p.depth > maxDepth {
		return p.fault("more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	for {
		if err := p.skip(); err != nil {
			return err
		}
		switch {
		case p.now.kind == end && last == "":
			return nil
		case p.now.kind == end:
			return p.fault("the end of the file, where a } is missing")
		case p.is("}") && last != "":
			return p.advance()
		}
		if err := p.field(into); err != nil {
			return err
		}
		if p.now.kind != newline && p.now.kind != end && !p.is(",") && !p.is("}") {
			return p.fault("%q, where a line or a field ends", p.now.text)
		}
		if err := p.separate(); err != nil {
			return err
		}
	}
}

// field parses a field or an include.
func (p *parser) field(into *node) *Error {
	line := p.now.line
	first := p.now
	if first.kind == unquoted && first.text == "include" {
		return p.include(into)
	}
	var key []token
	for p.now.kind == quoted || p.now.kind == unquoted {
		key = append(key, p.now)
		if err := p.advance(); err != nil {
			return err
		}
	}
	names, reason := pathOf(key)
	if reason != "" {
		return &Error{File: p.file, Line: line, Reason: reason}
	}
	if len(names) > maxDepth {
		return &Error{File: p.file, Line: line, Reason: fmt.Sprintf("a key of more than %d names", maxDepth)}
	}
	appends := p.is("+=")
	switch {
	case p.is("{"):
	case p.is(":"), p.is("="), appends:
		if err := p.advance(); err != nil {
			return err
		}
		if err := p.skip(); err != nil {
			return err
		}
	default:
		return &Error{File: p.file, Line: line, Reason: "the key " + strings.Join(names, ".") + " has no value"}
	}
	above := len(p.at)
	p.at = append(p.at, names...)
	value, err := p.value()
	if p.at = p.at[:above]; err != nil {
		return err
	}
	if appends { // a += b is a = ${?a} [b].
		self := &node{file: p.file, line: line, scalar: &token{kind: substitution, text: quotePath(slices.Concat(p.at, names)), optional: true, line: line, base: p.base}}
		value = &node{file: p.file, line: line, parts: []*node{self, {file: p.file, line: line, isList: true, list: []*node{value}}}}
	}
	return p.set(into, names, value)
}

// set stores a value under a path.
func (p *parser) set(into *node, names []string, value *node) *Error {
	for len(names) > 1 {
		value = &node{file: value.file, line: value.line, fields: map[string]*node{names[len(names)-1]: value}}
		names = names[:len(names)-1]
		if p.reader.count++; p.reader.count > maxValues {
			return p.fault("more than %d values", maxValues)
		}
	}
	merge(into, names[0], value)
	return nil
}

// merge lays a value over that of a key.
func merge(into *node, key string, value *node) {
	before := into.fields[key]
	switch {
	case before == nil:
		into.fields[key] = value
	case before.fields != nil && value.fields != nil && before.before == nil && value.before == nil:
		for name, inside := range value.fields {
			merge(before, name, inside)
		}
	case !settled(before) && value.fields != nil, !settled(value):
		value.before = before
		into.fields[key] = value
	default:
		into.fields[key] = value
	}
}

// settled reports whether no substitution decides what a value is.
func settled(n *node) bool {
	return n.before == nil && n.parts == nil && (n.scalar == nil || n.scalar.kind != substitution)
}

// value parses parts up to the end of the line.
func (p *parser) value() (*node, *Error) {
	n := &node{file: p.file, line: p.now.line}
	for {
		part := &node{file: p.file, line: p.now.line}
		switch {
		case p.is("{"):
			part.fields = map[string]*node{}
			if err := p.advance(); err != nil {
				return nil, err
			}
			if err := p.object(part, "}"); err != nil {
				return nil, err
			}
		case p.is("["):
			if err := p.items(part); err != nil {
				return nil, err
			}
		case p.now.kind == quoted, p.now.kind == unquoted, p.now.kind == substitution:
			t := p.now
			t.base = p.base
			part.scalar = &t
			if err := p.advance(); err != nil {
				return nil, err
			}
		case len(n.parts) == 0:
			return nil, p.fault("a value is missing")
		case len(n.parts) == 1:
			return n.parts[0], nil
		default:
			return n, nil
		}
		if p.reader.count++; p.reader.count > maxValues {
			return nil, p.fault("more than %d values", maxValues)
		}
		n.parts = append(n.parts, part)
	}
}

// items parses a list.
func (p *parser) items(into *node) *Error {
	if p.depth++; p.depth > maxDepth {
		return p.fault("more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	into.isList = true
	if err := p.advance(); err != nil {
		return err
	}
	for {
		if err := p.skip(); err != nil {
			return err
		}
		if p.is("]") {
			return p.advance()
		}
		item, err := p.value()
		if err != nil {
			return err
		}
		into.list = append(into.list, item)
		if p.now.kind != newline && !p.is(",") && !p.is("]") {
			return p.fault("a ] is missing")
		}
		if err := p.separate(); err != nil {
			return err
		}
	}
}

// include parses an include, and lays the fields of the other file over those that are there.
func (p *parser) include(into *node) *Error {
	line := p.now.line
	found := included.FindStringSubmatch(p.rest)
	if found == nil {
		text, _, _ := strings.Cut(p.rest, "\n")
		return &Error{File: p.file, Line: line, Reason: fmt.Sprintf("include %.40s: only files beside this one are read, as in include \"other.conf\"", strings.TrimSpace(text))}
	}
	p.rest = p.rest[len(found[0]):]
	if err := p.advance(); err != nil {
		return err
	}
	name := found[2]
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(p.file), name)
	}
	return p.reader.include(p, into, name, line, found[1] != "")
}

// included is what follows the word include.
var included = regexp.MustCompile(`^\s*(required\(\s*)?(?:file\(\s*)?"([^"\n]+)"[ \t)]*`)

// pathOf returns the names of a key or of a substitution: dots without quotes separate them.
func pathOf(tokens []token) (names []string, reason string) {
	var name strings.Builder
	begun := false
	for i, t := range tokens {
		if i > 0 {
			name.WriteString(t.space)
		}
		if t.kind == quoted {
			name.WriteString(t.text)
			begun = true
			continue
		}
		for k, part := range strings.Split(t.text, ".") {
			if k > 0 {
				if !begun && name.Len() == 0 {
					return nil, "a key with a name that is empty"
				}
				names = append(names, name.String())
				name.Reset()
				begun = false
			}
			name.WriteString(part)
		}
	}
	if !begun && name.Len() == 0 {
		return nil, "a key is missing, or ends with a dot"
	}
	return append(names, name.String()), ""
}

// quotePath writes names as the path of a substitution.
func quotePath(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		b, _ := json.Marshal(name)
		all[i] = string(b)
	}
	return strings.Join(all, ".")
}
