// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"strings"
	"sync"
)

// Bounds of an [Output].
const (
	outputLines     = 40
	outputLineBytes = 400
)

// Output keeps the last lines that the processes of a plugin print: 40, of 400 bytes each. A test of a plugin
// shows them where it fails. The zero value is empty. It may be used from any goroutine.
type Output struct {
	mu    sync.Mutex // Guards what follows.
	lines []string
	all   int // How many lines there were, those that are not kept included.
}

// add keeps a line, and drops the oldest one when there are too many.
func (o *Output) add(line string) {
	if len(line) > outputLineBytes {
		line = strings.ToValidUTF8(line[:outputLineBytes], "") + "..."
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all++
	o.lines = append(o.lines[max(0, len(o.lines)+1-outputLines):], line)
}

// Lines returns the lines that are kept, the oldest first, and how many were printed in all.
func (o *Output) Lines() (kept []string, all int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines), o.all
}
