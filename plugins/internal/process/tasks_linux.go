// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// task is a process as the kernel describes it in its file stat.
type task struct {
	pid, parent, group, threads int
}

// tasksOf counts the processes of a group and those that descend from them, with their
// threads. A process that has left the group and whose parent has ended is not found.
func tasksOf(group int) (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	children := map[int][]task{}
	var found []task
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		t, ok := readTask(pid)
		switch {
		case !ok: // It has ended.
		case t.group == group:
			found = append(found, t)
		default:
			children[t.parent] = append(children[t.parent], t)
		}
	}
	total := 0
	for len(found) > 0 { // Ends: a process has one parent.
		t := found[len(found)-1]
		total += t.threads
		found = append(found[:len(found)-1], children[t.pid]...)
		delete(children, t.pid)
	}
	return total, nil
}

// readTask reads the file stat of a process: its number, its name in parentheses, which may
// contain anything, its state, and then numbers.
func readTask(pid int) (task, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return task{}, false
	}
	const parent, group, threads = 1, 2, 17 // Places after the name.
	end := strings.LastIndexByte(string(text), ')')
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) <= threads {
		return task{}, false
	}
	t := task{pid: pid}
	for place, into := range map[int]*int{parent: &t.parent, group: &t.group, threads: &t.threads} {
		if *into, err = strconv.Atoi(fields[place]); err != nil {
			return task{}, false
		}
	}
	return t, true
}
