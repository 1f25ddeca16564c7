// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package durable

// Loss is something that could not be read.
type Loss struct {
	File  string `json:"file"`            // path of the file
	At    int64  `json:"at"`              // first byte
	Bytes int64  `json:"bytes,omitempty"` // how many; 0 if that is not known
	Fault string `json:"fault"`           // what is wrong with them
}

// losses collects the faults of files that are read as far as that is possible. Nil accepts no fault.
type losses struct{ list []Loss }

// accept notes a fault, or returns it if none is accepted.
func (l *losses) accept(fault error) error {
	if l == nil || fault == nil {
		return fault
	}
	l.list = append(l.list, Loss{File: faultFile(fault), Fault: faultText(fault)})
	return nil
}

// skipped notes bytes that were skipped because of a fault, or returns the fault if none
// is accepted.
func (l *losses) skipped(fault error, file string, at, bytes int64) error {
	if l == nil {
		return fault
	}
	l.list = append(l.list, Loss{File: file, At: at, Bytes: bytes, Fault: faultText(fault)})
	return nil
}
