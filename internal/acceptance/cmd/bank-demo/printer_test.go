// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// seven is a view of as many members as a run may have.
func seven(status string) view {
	v := view{Self: "n1"}
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5", "n6", "n7"} {
		v.Members = append(v.Members, member{Node: name, Status: status, Unreachable: true})
	}
	return v
}

// TestScreenKeepsTo80Columns prints the longest things that a run can say.
func TestScreenKeepsTo80Columns(t *testing.T) {
	var out strings.Builder
	s := &printer{out: &out, begun: time.Now().Add(-119 * time.Second), last: map[string]string{}}
	s.members(seven("weakly-up"))
	s.figures(pace{operations: 99999, p50: 100 * time.Second, p99: 100 * time.Second, waiting: maxInFlight})
	s.event("every account answers again, %v after the kill", 17*time.Second+990*time.Millisecond)
	s.event("kill -9 %s (%s)", "n7", "the oldest node, the coordinator")
	s.members(view{Self: "n7", Members: []member{{Node: "n7", Status: "up"}}})
	s.figures(pace{})
	for line := range strings.SplitSeq(out.String(), "\n") {
		require.LessOrEqual(t, len(line), columns, line)
	}
	for _, want := range []string{
		"member n3 is weakly-up, unreachable, says n1", "n1 weakly-up?", "99999 op/s", "waiting 6000", "kill -9 n7", "member n6 is removed, says n7",
	} {
		require.Contains(t, out.String(), want)
	}
}

// TestThePrinterSaysAChangeOnce shows that the printer prints a member when it changes, not
// again and again.
func TestThePrinterSaysAChangeOnce(t *testing.T) {
	var out strings.Builder
	s := &printer{out: &out, begun: time.Now(), last: map[string]string{}}
	for range 3 {
		s.members(seven("up"))
		s.members(view{}) // A node that has not joined knows no member, which is no removal.
	}
	require.Equal(t, 7, strings.Count(out.String(), "\n"), out.String())
}

// TestScreenColoursTerminalsOnly shows that what goes into a file is text.
func TestScreenColoursTerminalsOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	require.NoError(t, err)
	newPrinter(file).event("hello")
	require.NoError(t, file.Close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "hello")
	require.NotContains(t, string(text), "\x1b")

	var out strings.Builder
	(&printer{out: &out, colour: true, begun: time.Now()}).event("hello")
	require.Contains(t, out.String(), "\x1b[36mhello\x1b[0m")
}
