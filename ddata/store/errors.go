// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"strings"
)

var (
	// ErrCorrupt is wrapped by the error about a file that does not hold what was
	// written: flipped, cut off, missing, or never one of a store.
	ErrCorrupt = errors.New("the data is damaged")
	// ErrInUse is wrapped by the error of opening a store that is open elsewhere.
	ErrInUse = errors.New("another process uses it")
	// ErrVersion is wrapped by the error about a store that another version has
	// written, in a format which this one does not know.
	ErrVersion = errors.New("written in another format")
	// ErrCluster is wrapped by the error of opening a store that belongs to another cluster.
	ErrCluster = errors.New("it belongs to another cluster")
	// ErrFull is wrapped by the error of a write for which there is no room.
	ErrFull = errors.New("the disk is full")
	// ErrClosed is wrapped by the error of a method that was called after Close.
	ErrClosed = errors.New("the store is closed")
	// ErrTooLarge is wrapped by the error about a batch that no store takes.
	ErrTooLarge = errors.New("the batch is too large")
)

// Error is a fault of a store, in words for whoever runs the node.
type Error struct {
	// Kind is one of the errors of this package, or nil for another fault of the disk.
	Kind error
	// File is the file or directory with the fault.
	File string
	// Problem says what is wrong with the file, "" if Kind or Cause says all.
	Problem string
	// Remedy says what to do.
	Remedy string
	// Cause is the error of the system, or nil.
	Cause error
}

// Error returns the file, the fault and the remedy in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Kind != nil {
		b.WriteString(": " + e.Kind.Error())
	}
	if e.Problem != "" {
		b.WriteString(": " + e.Problem)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	if e.Remedy != "" {
		b.WriteString(": " + e.Remedy)
	}
	return b.String()
}

// Unwrap returns the kind and the cause, those that there are.
func (e *Error) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Kind, e.Cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}
