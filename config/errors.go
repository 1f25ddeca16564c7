// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"strconv"
	"strings"
)

// Sentinels that the errors of this package wrap, one for each class of fault.
var (
	// ErrRead says that a file is missing, is not a readable regular file, or is
	// too large.
	ErrRead = errors.New("cannot be read")
	// ErrSyntax says that a file is not one document with a map at its top, or uses a
	// construct that this package refuses (anchors, duplicate keys).
	ErrSyntax = errors.New("bad syntax")
	// ErrUnknownKey says that no setting has this key.
	ErrUnknownKey = errors.New("unknown key")
	// ErrBadValue says that a value does not fit the type of its setting.
	ErrBadValue = errors.New("bad value")
	// ErrInvalid says that a Validate method refused a value.
	ErrInvalid = errors.New("invalid")
)

// Error is one fault in the configuration.
type Error struct {
	// File is the path as given to [Load], or "$NAME" for an environment variable.
	// Empty for a fault of a value that is only in the defaults.
	File string
	// Line is the line in File, counted from 1; 0 when there is none.
	Line int
	// Key is the dotted path of the setting; empty when the fault concerns a file
	// as a whole.
	Key string
	// Nearest is the known key closest to an unknown one; empty if none is close.
	Nearest string
	// Reason says what is wrong and what would be right, in one line.
	Reason string
	// Err is the class of the fault, one of the sentinels; [ErrInvalid] is joined with
	// the error of the Validate method.
	Err error
}

// Error returns "file:line: key: reason", without the parts that are unknown.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			b.WriteString(":" + strconv.Itoa(e.Line))
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.Reason)
	if e.Nearest != "" {
		b.WriteString("; did you mean " + strconv.Quote(e.Nearest) + "?")
	}
	return b.String()
}

// Unwrap returns the class of the fault and its cause, for [errors.Is].
func (e *Error) Unwrap() error { return e.Err }

// Errors are all faults that one [Load] or [File.Decode] found, ordered by file,
// line and key. It is never empty when returned as an error.
type Errors []*Error

// Error returns one line for each fault.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single faults, for [errors.Is] and [errors.As].
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, one := range e {
		out[i] = one
	}
	return out
}

// orNil returns e as an error, or nil when there is no fault: a nil slice in an
// error interface would not compare equal to nil.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}
