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
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxSizeBytes bounds a file. The largest sensible one, with a thousand seed
	// nodes and plugins, is a tenth of it.
	maxSizeBytes = 1 << 20
	// maxValues bounds the keys and list items of a document, ten times what a
	// cluster of a thousand nodes names. What the libraries do with a map grows
	// with the square of its keys: a hundred thousand would take minutes.
	maxValues = 10_000
)

// document is one source text that passed the checks of its form.
type document struct {
	name     string
	data     []byte
	tree     map[string]any
	lines    map[string]int // line of each key and list item, by joined path
	includes []string       // the files in its include list
	text     bool           // its texts become what their settings need, see [Provider]
}

// directory is where files are opened: the file system, or a part of it.
type directory interface {
	Stat(name string) (fs.FileInfo, error)
	Open(name string) (*os.File, error)
}

// read returns the content of a file, with one clear fault for everything that
// is not a regular file of a sensible size. A named pipe would block for ever,
// so its type is looked at before the file is opened. The name is shown.
func read(dir directory, path, name string, given []Format) ([]byte, *Error) {
	fault := func(reason string) *Error { return &Error{File: name, Reason: reason, Err: ErrRead} }
	if _, fault := parserOf(name, given); fault != nil {
		return nil, fault
	}
	data, reason := content(dir, path, maxSizeBytes)
	if reason != "" {
		return nil, fault(reason)
	}
	return data, nil
}

// content returns up to a byte more than limit of a regular file, or why it cannot be read.
func content(dir directory, path string, limit int64) (data []byte, reason string) {
	info, err := dir.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "no such file"
	case errors.Is(err, fs.ErrPermission):
		return nil, "permission denied"
	case err != nil:
		return nil, oneLine(err.Error())
	case info.IsDir():
		return nil, "is a directory, a file is needed"
	case !info.Mode().IsRegular():
		return nil, "is not a regular file"
	}
	file, err := dir.Open(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, "permission denied"
	} else if err != nil {
		return nil, oneLine(err.Error())
	}
	defer file.Close() //nolint:errcheck // Closing a file that was only read loses nothing.
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, oneLine(err.Error())
	}
	return data, ""
}

// scan checks the form of a document and notes where its keys stand.
func scan(name string, data []byte, given []Format) (document, Errors) {
	doc := document{name: name, data: data}
	if len(data) > maxSizeBytes {
		return doc, Errors{{File: name, Reason: fmt.Sprintf("is larger than %d bytes", maxSizeBytes), Err: ErrRead}}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	fault := func(reason string) Errors { return Errors{{File: name, Reason: reason, Err: ErrSyntax}} }
	if !utf8.Valid(data) {
		return doc, fault("is not UTF-8 text")
	}
	parse, bad := parserOf(name, given)
	if bad != nil {
		return doc, Errors{bad}
	}
	var faults Errors
	if doc.tree, doc.lines, faults = parse(name, data); len(faults) > 0 {
		return doc, faults
	}
	if doc.tree == nil {
		return doc, fault("is empty")
	}
	return doc, doc.takeIncludes()
}

// breaks are the offsets of the line breaks of a text, so that the lines of a
// hundred thousand keys are found without counting from the top for each.
type breaks []int

func lineBreaks(data []byte) breaks {
	var b breaks
	for i, c := range data {
		if c == '\n' {
			b = append(b, i)
		}
	}
	return b
}

// line returns the line, counted from 1, of an offset.
func (b breaks) line(offset int) int { return 1 + sort.SearchInts(b, offset) }

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
