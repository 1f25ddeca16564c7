// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// What can go wrong with a call besides what can go wrong with any message, which the caller's
// own errors say.

// ErrUnknownMethod is wrapped by the [Fault] of a call whose method the entity does not know, since it is
// older than the client, or of another service. The entity did nothing.
var ErrUnknownMethod = errors.New("the entity does not know the method")

// ErrInvalid is wrapped by the error of a call that was not sent, since its message is nil, and of a reply that
// cannot be decoded; also by that of [Call.Append], for which callers have errors of their own.
var ErrInvalid = errors.New("invalid")

// CodeUnknownMethod is the [Fault.Code] that wraps [ErrUnknownMethod].
const CodeUnknownMethod = "quorate.unknown-method"

const (
	maxCodeBytes = 128  // Bound of Fault.Code.
	maxTextBytes = 1000 // Bound of Fault.Text.
)

// Fault is the refusal of a call by its entity, which is well and goes on. It is an error on
// both sides.
type Fault struct { //nolint:errname // It is a reply too, and stands in one.
	// Code tells programs what was refused, such as "insufficient-funds"; up to 128 bytes. Those
	// that begin with "quorate." are this package's.
	Code string

	// Text tells people more; up to 1,000 bytes, what is beyond is cut off.
	Text string
}

// Refuse returns a [Fault] as an error. To return it from a method says that the call has changed nothing, see
// the package comment.
func Refuse(code, format string, args ...any) error {
	return &Fault{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Error has code and text.
func (f *Fault) Error() string {
	if f.Text == "" {
		return "refused: " + f.Code
	}
	return "refused: " + f.Code + ": " + f.Text
}

// Is reports whether the target is [ErrUnknownMethod] and the code says that.
func (f *Fault) Is(target error) bool {
	return target == ErrUnknownMethod && f.Code == CodeUnknownMethod
}

// bounded returns the fault as it can travel.
func (f *Fault) bounded() Fault { return Fault{cut(f.Code, maxCodeBytes), cut(f.Text, maxTextBytes)} }

// cut makes valid UTF-8 of at most so many bytes of a text.
func cut(s string, most int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return s
}

// unknown is the fault of a method that a service does not have.
func unknown(service, method string) *Fault {
	return &Fault{Code: CodeUnknownMethod, Text: fmt.Sprintf("%s has no method %q here", service, cut(method, maxCodeBytes))}
}

// Unimplemented returns the fault of a method that an entity does not implement. Generated
// code calls it.
func Unimplemented(service, method string) error { return unknown(service, method) }

// Ignored logs a one-way call that an entity does not implement: nobody else hears of it. Generated code
// calls it.
func Ignored(service, method string) {
	slog.Default().Warn("one-way call ignored: the entity does not implement the method", "service", service, "method", method)
}
