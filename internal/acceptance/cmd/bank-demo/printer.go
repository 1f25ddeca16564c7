// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lines are printed behind the time of the run ([printer.event]), in at most 80 columns
// ([wrap]): changes of members, figures of each second, and at the end the verdict and
// the phases.

// printer prints events, in at most 80 columns, with colour only on a terminal.
type printer struct {
	out    io.Writer
	colour bool
	begun  time.Time

	mu   sync.Mutex
	last map[string]string // Status of each member as it was printed last.
	line string            // The members as they were seen last.
}

// newPrinter prints to out.
func newPrinter(out *os.File) *printer {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &printer{out: out, colour: terminal && os.Getenv("NO_COLOR") == "", begun: time.Now(), last: map[string]string{}}
}

// event prints one line.
func (s *printer) event(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("36", fmt.Sprintf(format, args...))
}

// print writes one line after the time; its caller holds the lock.
func (s *printer) print(colour, text string) {
	if s.colour {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	_, _ = fmt.Fprintf(s.out, "%6.2fs  %s\n", time.Since(s.begun).Seconds(), text) // A closed terminal does not stop the audit.
}

// members prints what has changed since the last call, and keeps the members for the next
// line of figures. The nodes in v have names for people.
func (s *printer) members(v view) {
	if len(v.Members) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var words []string
	seen := map[string]bool{}
	for _, m := range v.Members {
		status := m.Status
		if m.Unreachable {
			status += ", unreachable"
		}
		seen[m.Node] = true
		if s.last[m.Node] != status {
			s.print("33", fmt.Sprintf("member %s is %s, says %s", m.Node, status, v.Self))
			s.last[m.Node] = status
		}
		words = append(words, m.Node+" "+strings.Replace(status, ", unreachable", "?", 1))
	}
	for _, name := range slices.Sorted(maps.Keys(s.last)) {
		if !seen[name] {
			s.print("33", fmt.Sprintf("member %s is removed, says %s", name, v.Self))
			delete(s.last, name)
		}
	}
	slices.Sort(words)
	s.line = wrap(words)
}

// columns is the largest width of a line, except of the last one.
const columns = 80

// indent begins a line that continues another, so that it lines up under its text.
const indent = "         "

// wrap sets words in lines of at most columns.
func wrap(words []string) string {
	var text strings.Builder
	at := 0
	for _, word := range words {
		switch {
		case at == 0 || at+2+len(word) > columns:
			if at > 0 {
				text.WriteByte('\n')
			}
			text.WriteString(indent + word)
			at = len(indent) + len(word)
		default:
			text.WriteString("  " + word)
			at += 2 + len(word)
		}
	}
	return text.String()
}

// watch prints the figures of each second until the load stops.
func (s *printer) watch(ctx context.Context, l *load) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if v, err := l.processes.members(ctx); err == nil {
			l.processes.show(v)
		}
		s.figures(l.look())
	}
}

// figures prints the traffic of a second and the members.
func (s *printer) figures(p pace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "%6.2fs  %4d op/s  p50 %s  p99 %s  waiting %d\n%s\n",
		time.Since(s.begun).Seconds(), p.operations, millis(p.p50), millis(p.p99), p.waiting, s.line)
}

// summary prints the verdict for people.
func (s *printer) summary(v verdict) {
	word := "nothing was lost"
	switch {
	case v.Error != "":
		word = "the run did not get to its end"
	case !v.OK:
		word = "THE BANK IS WRONG"
	}
	s.event("%s", word)
	s.mu.Lock()
	defer s.mu.Unlock()
	row := func(what string, value any, more string) {
		_, _ = fmt.Fprintf(s.out, "  %-20s %8v%s\n", what, value, more) // As in print.
	}
	none := func(what string, value any, more string) { row(what, value, more+", allowed 0") }
	_, _ = fmt.Fprintln(s.out)
	row("nodes started", v.Nodes, "")
	row("accounts", v.Accounts, fmt.Sprintf(", %d owners in all", v.Moved))
	row("transfers answered", v.Acknowledged, fmt.Sprintf(", %d of them after a retry", v.Retried))
	none("not answered", v.Unanswered, "")
	none("lost", v.Lost, "")
	none("booked twice", v.Duplicated, "")
	none("never asked for", v.Unasked, "")
	none("overlapping owners", v.OverlappingEpoch, "")
	none("late answers", v.Late, " of owners that had been replaced")
	none("cents out of nothing", v.CentsAppeared, "")
	row("longest recovery", seconds(v.RecoveredMax), fmt.Sprintf(" s from a kill to the last answer, allowed %.0f", promises(v.Plugins != nil)[string(killPlain)].gap.Seconds()))
	row("longest wait", seconds(v.UnavailableMax), " s for one transfer, retried or not")
	if v.Paused > 0 {
		row("the load paused", v.Paused, fmt.Sprintf(" times: %d transfers waited", maxInFlight))
	}
	row("machine stood still", seconds(v.StoodStill), " s in all")
	if v.Waited > 0 {
		row("programs waited", fmt.Sprintf("%d %%", v.Waited), " of the time for a processor")
	}
}

// seconds prints milliseconds as seconds.
func seconds(ms int64) string { return fmt.Sprintf("%.1f", float64(ms)/1000) }

// phases prints what the clients saw in each phase, in the order of the run, and what is allowed.
func (s *printer) phases(windows []window, v verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.out, "\n  %-15s %6s %7s %11s %8s %7s %8s %7s\n", "phase", "s", "replies", "longest gap", "allowed", "failed", "allowed", "retried")
	limits := promises(v.Plugins != nil)
	for _, w := range windows {
		p, gap, failed := v.Phases[w.name], "", ""
		if limit, known := limits[w.name]; known {
			if limit.gap > 0 {
				gap = fmt.Sprintf("%.1f s", limit.gap.Seconds())
			}
			if !limit.failed {
				failed = "0"
			}
		}
		_, _ = fmt.Fprintf(s.out, "  %-15s %6.1f %7d %9.2f s %8s %7d %8s %7d\n", w.name, p.Seconds, p.Answered, float64(p.LongestGap)/1000, gap, p.FailedAsks, failed, p.Retried)
	}
	for _, m := range v.Missed {
		_, _ = fmt.Fprintln(s.out, "  missed:", m)
	}
	for _, m := range v.NotJudged {
		_, _ = fmt.Fprintln(s.out, "  not judged (busy machine):", m)
	}
}

// millis prints a duration in milliseconds.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
