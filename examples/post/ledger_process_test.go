// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

//go:build process && unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The auditor of the ledger. Its lines stand in the order in which they were written, so a line under a lower epoch
// than one above it is the work of somebody who had been replaced, and a counter of a former revision beside one of a
// later revision has not stopped in time.

// worker is somebody of whom there may be one.
type worker struct {
	who    string
	number int
}

// auditor reads the ledger.
type auditor struct {
	highest  map[worker]entry // The last line of each under its highest epoch.
	revision uint64           // The highest of the counters.
	late     map[string]int   // Lines of those who had been replaced, by their node.
	faults   []string
}

// read reads lines. A node that was started anew begins with the first revision if all had ended.
func (a *auditor) read(e entry) {
	of := worker{e.Who, e.Number}
	last, known := a.highest[of]
	switch {
	case known && bytes.Compare(e.Epoch, last.Epoch) < 0:
		a.late[e.Node]++
		return
	case known && bytes.Equal(e.Epoch, last.Epoch) && e.Node != last.Node:
		a.faults = append(a.faults, fmt.Sprintf("%+v at two nodes under one epoch: %s and %s", of, last.Node, e.Node))
	case e.Who == "counter" && e.Revision < a.revision:
		a.late[e.Node]++
		return
	case e.Who == "counter" && e.Number >= e.Count:
		a.faults = append(a.faults, fmt.Sprintf("%+v is there although there are %d", of, e.Count))
	}
	if e.Who == "counter" {
		a.revision = max(a.revision, e.Revision)
	}
	a.highest[of] = e
}

// ledger returns the lines of the ledger from an offset on, and the next offset.
func (w *town) ledger(from int64) (lines []entry, next int64) {
	w.t.Helper()
	text, err := os.ReadFile(ledgerOf(w.path("journal")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, from // Nobody has been at work yet.
	}
	require.NoError(w.t, err)
	text = text[from:]
	whole := bytes.LastIndexByte(text, '\n') + 1
	scanner := bufio.NewScanner(bytes.NewReader(text[:whole]))
	for scanner.Scan() {
		var e entry
		require.NoError(w.t, json.Unmarshal(scanner.Bytes(), &e), "%s", scanner.Text())
		lines = append(lines, e)
	}
	return lines, from + int64(whole)
}

// audited reads a part of the ledger, in which at most so many lines of nodes that stood still may be late: a process
// that is stopped between a look at its context and its write goes on with the write.
func (w *town) audited(from int64, stoodStill map[string]bool) (next int64) {
	w.t.Helper()
	a := &auditor{highest: map[worker]entry{}, late: map[string]int{}}
	lines, next := w.ledger(from)
	for _, e := range lines {
		a.read(e)
	}
	require.Empty(w.t, a.faults)
	for node, late := range a.late {
		require.True(w.t, stoodStill[node], "%s has written %d lines after it was replaced", node, late)
		require.LessOrEqual(w.t, late, maxCounters+1, "%s stood still, and went on for longer than a line of each", node)
	}
	return next
}

// atWork says what is wrong with who is at work now: one postmaster, and so many counters.
func (w *town) atWork(counters int) string {
	_, now := w.ledger(0)
	var lines []entry
	w.eventually("some lines", func() string {
		if lines, _ = w.ledger(now); len(lines) < 20*(counters+1) {
			return "the ledger stands still"
		}
		return ""
	})
	at := map[worker]map[string]bool{}
	for _, e := range lines {
		of := worker{e.Who, e.Number}
		if at[of] == nil {
			at[of] = map[string]bool{}
		}
		at[of][e.Node] = true
	}
	var wrong []string
	if len(at) != counters+1 {
		wrong = append(wrong, fmt.Sprintf("%d are at work", len(at)))
	}
	for of, at := range at {
		if len(at) != 1 {
			wrong = append(wrong, fmt.Sprintf("%+v is at %d nodes", of, len(at)))
		}
	}
	return strings.Join(wrong, ", ")
}

// The auditor finds what must not be.
func TestTheAuditorOfTheLedger(t *testing.T) {
	line := func(who string, number int, epoch byte, node string, revision uint64) entry {
		return entry{Who: who, Number: number, Epoch: []byte{epoch}, Node: node, Revision: revision, Count: 2}
	}
	for name, test := range map[string]struct {
		lines  []entry
		late   map[string]int
		faults int
	}{
		"all is well":         {lines: []entry{line("postmaster", 0, 1, "a", 0), line("postmaster", 0, 2, "b", 0), line("counter", 1, 1, "a", 1)}},
		"a late line":         {lines: []entry{line("postmaster", 0, 2, "b", 0), line("postmaster", 0, 1, "a", 0)}, late: map[string]int{"a": 1}},
		"two of one epoch":    {lines: []entry{line("postmaster", 0, 1, "b", 0), line("postmaster", 0, 1, "a", 0)}, faults: 1},
		"a former revision":   {lines: []entry{line("counter", 1, 2, "b", 2), line("counter", 0, 1, "a", 1)}, late: map[string]int{"a": 1}},
		"one that is no more": {lines: []entry{line("counter", 2, 1, "b", 2)}, faults: 1},
	} {
		t.Run(name, func(t *testing.T) {
			a := &auditor{highest: map[worker]entry{}, late: map[string]int{}}
			for _, e := range test.lines {
				a.read(e)
			}
			if test.late == nil {
				test.late = map[string]int{}
			}
			require.Equal(t, test.late, a.late)
			require.Len(t, a.faults, test.faults)
		})
	}
}
