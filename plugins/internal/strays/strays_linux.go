// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package strays

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// rounds is how often the processes are searched: a process may have forked just before
// it was killed.
const rounds = 5

// Kill kills the processes whose environment names dir, or a path in it, under the
// variable, and returns how many it killed. It spares the calling process.
func Kill(variable, dir string) int {
	killed := 0
	for range rounds {
		found := 0
		for _, pid := range processes() {
			if kill(pid, variable+"="+dir) {
				found++
			}
		}
		if killed += found; found == 0 {
			break
		}
	}
	return killed
}

// processes returns the ids of all processes except this one.
func processes() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // Without /proc no process can be found.
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// kill kills a process if its environment has the setting. It holds the process by a
// handle before it looks, so that no other process is hit that gets the number meanwhile.
func kill(pid int, setting string) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release() //nolint:errcheck // It was looked at.
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil { // The process is another user's, or has ended.
		return false
	}
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		rest, ok := bytes.CutPrefix(entry, []byte(setting))
		if ok && (len(rest) == 0 || rest[0] == '/') {
			return p.Kill() == nil
		}
	}
	return false
}
