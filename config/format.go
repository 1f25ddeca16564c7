// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Formats of files. A program gives further formats to its loader; parserOf chooses
// one by the name of a file. While a format parses a text, it records lines and faults
// in Places, so that the rules for keys, depth and number are the same in all formats.

// ErrNotLinked says that a configuration needs something that the program did not
// link, such as a file in a [Format] that is neither built in nor given. The error
// names the import and how to use it.
var ErrNotLinked = errors.New("not part of this program")

// MaxDepth is how deep the maps and lists of a file may be nested. It is far above what
// any section needs.
const MaxDepth = 32

// Format is the syntax of files whose names have a certain end. YAML and JSON are built
// in; others are given to a [Loader], TOML for instance, which is in the module
// config/toml. Package configtest has a suite for formats.
type Format interface {
	// Extension returns the end of the names, in lower case and with its dot: ".toml".
	Extension() string

	// Parse returns the content of a text as maps, lists ([]any), text, bool, int,
	// uint64 and float64, or nil if it has none. It records in places the line of each
	// key and each item of a list, and the faults; after a fault its result is
	// ignored. The text is UTF-8 without a byte order mark, and at most 1 MiB. Loaders
	// call Parse from any goroutine.
	Parse(text []byte, places *Places) map[string]any
}

// Places collects the lines of the keys and list items of a file, and its faults. A
// path is the keys and items from the top of the file down, see [Places.Key] and
// [Places.Item]. A Places belongs to one goroutine.
type Places struct {
	name   string
	breaks breaks         // Of the text.
	lines  map[string]int // By joined path.
	faults Errors
	full   bool
}

// Full reports whether there are too many keys and items. That has been recorded as a
// fault, and parsing may stop.
func (p *Places) Full() bool { return p.full }

// Refused reports whether a fault was recorded.
func (p *Places) Refused() bool { return len(p.faults) > 0 }

// Line returns the line, counted from 1, of an offset in the text that is parsed.
func (p *Places) Line(offset int) int { return p.breaks.line(offset) }

// Key returns the path of a key in a map, and records its line. For a key that no
// setting could have, or that is nested too deep, it records a fault and returns nil.
func (p *Places) Key(path []string, key string, line int) []string {
	if reason := badKey(key); reason != "" {
		p.Fault(line, path, reason)
		return nil
	}
	if len(path) > MaxDepth {
		p.Fault(line, path[:1], tooDeep())
		return nil
	}
	path = extend(path, key)
	p.Note(path, line)
	return path
}

// Item returns the path of an item of a list, which is counted from 0.
func (*Places) Item(path []string, i int) []string { return item(path, i) }

// Note records the line of a key or an item, counted from 1, if it is not known yet.
func (p *Places) Note(path []string, line int) {
	joined := strings.Join(path, separator)
	if _, known := p.lines[joined]; known || p.full {
		return
	}
	if p.lines[joined] = line; len(p.lines) > maxValues {
		p.full = true
		p.Fault(line, nil, fmt.Sprintf("more than %d keys and list items are in the file", maxValues))
	}
}

// Fault records a fault in a line, 0 if the line is not known; the path is nil for a
// fault that concerns no key.
func (p *Places) Fault(line int, path []string, reason string) {
	p.faults = append(p.faults, &Error{File: p.name, Line: line, Key: display(path), Reason: oneLine(reason), Err: ErrSyntax})
}

// Twice records the fault of a key that was found in the line first before.
func (p *Places) Twice(line int, path []string, first int) { p.Fault(line, path, twice(first)) }

// parser checks the form of a text and returns its values, their lines, and the
// faults. The tree is nil when the text has no content.
type parser func(name string, text []byte) (tree map[string]any, lines map[string]int, faults Errors)

// parserOf returns the parser for a file, chosen by the end of its name. Files whose
// names tell no format are read as YAML, since mounted files often have no extension.
func parserOf(name string, given []Format) (parser, *Error) {
	fault := func(err error, reason string) *Error {
		return &Error{File: name, Reason: reason, Err: errors.Join(ErrRead, err)}
	}
	ext := strings.ToLower(filepath.Ext(name))
	if i := slices.IndexFunc(given, func(f Format) bool { return f.Extension() == ext }); i >= 0 {
		return parserIn(given[i]), nil
	}
	switch ext {
	case ".json":
		return parseJSON, nil
	case ".toml":
		return nil, fault(ErrNotLinked, fmt.Sprintf("TOML is %v: import github.com/quorate/quorate/config/toml, and give toml.Format() "+
			"to the loader, which for a node is the option cluster.WithFormat(toml.Format())", ErrNotLinked))
	case ".hcl", ".ini", ".conf", ".properties", ".xml":
		return nil, fault(nil, fmt.Sprintf("%s files are not supported, write YAML, TOML or JSON into a .yaml, .toml or .json file", ext))
	}
	return parseYAML, nil
}

// parserIn returns the parser for a format that was given.
func parserIn(f Format) parser {
	return func(name string, text []byte) (map[string]any, map[string]int, Errors) {
		p := Places{name: name, breaks: lineBreaks(text), lines: map[string]int{}}
		tree := f.Parse(text, &p)
		if p.Refused() {
			return nil, nil, p.faults
		}
		return tree, p.lines, nil
	}
}

// extend returns a path with one more part. It never shares memory that path
// could be extended into.
func extend(path []string, part string) []string { return append(slices.Clip(path), part) }

// item returns the path of an item of a list.
func item(path []string, i int) []string { return extend(path, "["+strconv.Itoa(i)+"]") }

// badKey returns why no setting could have a key, or "".
func badKey(key string) string {
	if key == "" || strings.ContainsFunc(key, unicode.IsControl) {
		return fmt.Sprintf("the key %q is empty or holds a control character", key)
	}
	return ""
}

// The faults that all formats have in common.
func tooDeep() string { return fmt.Sprintf("is nested deeper than %d levels", MaxDepth) }

func twice(first int) string { return fmt.Sprintf("the key stands twice, first in line %d", first) }
