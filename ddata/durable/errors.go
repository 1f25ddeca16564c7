// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/quorate/quorate/ddata/store"
	"github.com/quorate/quorate/machine/directory"
)

// ErrNoStore is wrapped by the error of [Check], [Export] and [Repair] for a directory
// without a store.
var ErrNoStore = errors.New("there is no store in it")

// repairHint is what to do about damage.
const repairHint = "look with quorate data check, take out what is readable with quorate data export, and go on with quorate data repair; " +
	"or move the directory away: the node comes back as a new replica and copies from the others"

// corrupt returns the error about a damaged file.
func corrupt(file, format string, args ...any) error {
	return &store.Error{Kind: store.ErrCorrupt, File: file, Problem: fmt.Sprintf(format, args...), Remedy: repairHint}
}

// ioFault returns the error about what the system says of a file.
func ioFault(file string, err error) error {
	fault := &store.Error{File: file, Cause: err}
	switch path := new(fs.PathError); {
	case errors.Is(err, errBroken), errors.Is(err, errUnknown):
		fault.Remedy = "look at the disk, whether it has room, and at the log of the system, and start the node again"
		return fault // The store is over, so that this is more than a full disk.
	case errors.As(err, &path):
		fault.Cause = path.Err // The file is named already.
	}
	switch {
	case directory.Full(err):
		fault.Kind, fault.Remedy = store.ErrFull, "make room; nothing that was acknowledged is lost"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		fault.Remedy = "let the user of the node read and write the directory and the files in it"
	case errors.Is(err, fs.ErrNotExist):
		fault.Kind, fault.Remedy = store.ErrCorrupt, repairHint
	default:
		fault.Remedy = "look at the disk and at the log of the system, and start the node again; if the disk is bad: quorate data export"
	}
	return fault
}

// closed is the error of a method that was called after Close.
func closed(dir string) error {
	return &store.Error{Kind: store.ErrClosed, File: dir, Remedy: "open it again"}
}

// faultFile returns the file that a fault names.
func faultFile(err error) string {
	if fault := new(store.Error); errors.As(err, &fault) {
		return fault.File
	}
	return ""
}

// faultText returns what a fault says of its file, without the file and the remedy.
func faultText(err error) string {
	fault := new(store.Error)
	switch {
	case !errors.As(err, &fault):
		return err.Error()
	case fault.Problem != "":
		return fault.Problem
	case fault.Cause != nil:
		return fault.Cause.Error()
	}
	return fault.Kind.Error()
}
