// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package hocon

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What nodes become when substitutions are replaced: each looks into the merged file, then into the environment. One
// that meets the value that it is a part of gets what was written there before.

// value is a node without substitutions. Nil is a value that is not there, since an optional substitution found
// nothing.
type value struct {
	file   string
	line   int
	fields map[string]*value
	list   []*value
	isList bool
	text   string
	null   bool
}

type resolver struct {
	root    *node
	environ map[string]string
	open    map[*node]bool // Those that are being resolved.
	steps   int
}

func faultAt(n *node, format string, args ...any) *Error {
	return &Error{File: n.file, Line: n.line, Reason: fmt.Sprintf(format, args...)}
}

// circle is the fault of a value that refers to itself.
func circle(n *node) *Error {
	fault := faultAt(n, "refers to itself")
	fault.circle = true
	return fault
}

func (r *resolver) resolve(n *node) (*value, *Error) {
	if r.steps++; r.steps > maxSteps {
		return nil, faultAt(n, "the substitutions make more than %d values", maxSteps)
	}
	if r.open[n] {
		return nil, circle(n)
	}
	r.open[n] = true
	defer delete(r.open, n)
	v, err := r.written(n)
	if err != nil || n.before == nil || v != nil && v.fields == nil {
		return v, err
	}
	before, err := r.resolve(n.before)
	if err != nil || before == nil {
		return v, err
	}
	if v == nil {
		return before, nil
	}
	r.steps += len(before.fields) + len(v.fields)
	return join(before, v), nil
}

// written resolves what was written, without what was there before.
func (r *resolver) written(n *node) (*value, *Error) {
	v := &value{file: n.file, line: n.line, isList: n.isList}
	switch {
	case n.fields != nil:
		v.fields = map[string]*value{}
		for _, key := range slices.Sorted(maps.Keys(n.fields)) {
			inside, err := r.resolve(n.fields[key])
			if err != nil {
				return nil, err
			}
			if inside != nil {
				v.fields[key] = inside
			}
		}
	case n.isList:
		for _, item := range n.list {
			inside, err := r.resolve(item)
			if err != nil {
				return nil, err
			}
			if inside != nil {
				v.list = append(v.list, inside)
			}
		}
	case n.parts != nil:
		return r.together(n)
	case n.scalar.kind == substitution:
		return r.substitute(n)
	default:
		v.text, v.null = n.scalar.text, n.scalar.kind == unquoted && n.scalar.text == "null"
	}
	return v, nil
}

// together makes one value of parts: an object, a list, or a text with the spaces between them.
func (r *resolver) together(n *node) (*value, *Error) {
	var whole *value
	for i, part := range n.parts {
		v, err := r.resolve(part)
		if err != nil {
			return nil, err
		}
		if v != nil { // What is copied for it counts too.
			r.steps += len(v.fields) + len(v.list) + len(v.text)/64
		}
		space := ""
		if i > 0 && part.scalar != nil {
			space = part.scalar.space
		}
		switch {
		case v == nil:
		case whole == nil:
			whole = &value{file: n.file, line: n.line, fields: v.fields, list: slices.Clone(v.list), isList: v.isList, text: v.text}
		case whole.fields != nil && v.fields != nil:
			whole = join(whole, v)
		case whole.isList && v.isList:
			whole.list = append(whole.list, v.list...)
		case whole.fields == nil && !whole.isList && v.fields == nil && !v.isList:
			if whole.text += space + v.text; len(whole.text) > maxText {
				return nil, faultAt(n, "a text of more than %d bytes", maxText)
			}
		default:
			return nil, faultAt(n, "values of different kinds side by side")
		}
	}
	return whole, nil
}

// join returns an object with the fields of two, the second over the first.
func join(below, above *value) *value {
	if below.fields == nil || above.fields == nil {
		return above
	}
	v := &value{file: above.file, line: above.line, fields: maps.Clone(below.fields)}
	for key, inside := range above.fields {
		if before := v.fields[key]; before != nil {
			inside = join(before, inside)
		}
		v.fields[key] = inside
	}
	return v
}

// substitute returns what a substitution stands for.
func (r *resolver) substitute(n *node) (*value, *Error) {
	names, reason := namesOf(n.scalar.text)
	if reason != "" {
		return nil, faultAt(n, "${%s}: %s", n.scalar.text, reason)
	}
	for _, base := range [][]string{n.scalar.base, nil} {
		v, err := r.find(r.root, slices.Concat(base, names))
		if err != nil && err.circle && n.scalar.optional {
			return nil, nil
		}
		if err != nil || v != nil {
			return v, err
		}
		if n.scalar.base == nil {
			break
		}
	}
	if text, ok := r.environ[strings.Join(names, ".")]; ok {
		return &value{file: n.file, line: n.line, text: text}, nil
	}
	if n.scalar.optional {
		return nil, nil
	}
	return nil, faultAt(n, "${%s} is neither in the file nor in the environment", n.scalar.text)
}

// find returns the value at a path, nil if there is none. What is being resolved is what was written before.
func (r *resolver) find(at *node, names []string) (*value, *Error) {
	for i, name := range names {
		if at.fields == nil || at.before != nil {
			return r.inside(at, names[i:])
		}
		next := at.fields[name]
		if next == nil {
			return nil, nil
		}
		at = next
	}
	return r.inside(at, nil)
}

// inside resolves a node and returns the value at a path in it.
func (r *resolver) inside(at *node, names []string) (*value, *Error) {
	for r.open[at] {
		if at.before == nil {
			return nil, circle(at)
		}
		at = at.before
	}
	v, err := r.resolve(at)
	for _, name := range names {
		if err != nil || v == nil {
			break
		}
		v = v.fields[name]
	}
	return v, err
}

// namesOf returns the names of a path in a substitution.
func namesOf(text string) ([]string, string) {
	s := scanner{rest: text}
	var tokens []token
	for {
		t, err := s.next()
		switch {
		case err != nil:
			return nil, err.Reason
		case t.kind == end:
			return pathOf(tokens)
		case t.kind != quoted && t.kind != unquoted:
			return nil, "is no key"
		}
		tokens = append(tokens, t)
	}
}
