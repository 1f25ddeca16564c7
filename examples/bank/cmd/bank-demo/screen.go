// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen prints what happens, in at most 80 columns, with colour on a terminal
// only.
type screen struct {
	out    io.Writer
	colour bool
	begun  time.Time

	mu   sync.Mutex
	last map[string]string // Status of each member, as printed last.
	line string            // The members, as seen last.
}

// newScreen prints to out.
func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &screen{out: out, colour: terminal && os.Getenv("NO_COLOR") == "", begun: time.Now(), last: map[string]string{}}
}

// event prints one line.
func (s *screen) event(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print("36", fmt.Sprintf(format, args...))
}

// print writes one line behind the time; the caller holds the lock.
func (s *screen) print(colour, text string) {
	if s.colour {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	_, _ = fmt.Fprintf(s.out, "%6.2fs  %s\n", time.Since(s.begun).Seconds(), text) // A closed terminal does not stop the audit.
}

// members prints what changed since the last time, and keeps the members for
// the next line of figures.
func (s *screen) members(v view) {
	if len(v.Members) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var words []string
	seen := map[string]bool{}
	for _, m := range v.Members {
		host, _, _ := strings.Cut(m.Node, ":")
		status := m.Status
		if m.Unreachable {
			status += "?"
		}
		seen[host] = true
		if s.last[host] != status {
			s.print("33", fmt.Sprintf("member %s is %s, says %s", host, strings.Replace(status, "?", ", unreachable", 1), short(v.Self)))
			s.last[host] = status
		}
		words = append(words, strings.TrimPrefix(host, "127.0.0")+" "+status)
	}
	for host := range s.last {
		if !seen[host] {
			s.print("33", fmt.Sprintf("member %s is removed, says %s", host, short(v.Self)))
			delete(s.last, host)
		}
	}
	s.line = strings.Join(words, "  ")
}

// short is the host of a node id.
func short(node string) string {
	host, _, _ := strings.Cut(node, ":")
	return host
}

// watch prints the figures of each second until the load stops.
func (s *screen) watch(ctx context.Context, l *load) {
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
		if v, err := l.fleet.members(ctx); err == nil {
			s.members(v)
		}
		p := l.look()
		s.mu.Lock()
		_, _ = fmt.Fprintf(s.out, "%6.2fs  %4d op/s  p50 %s  p99 %s  waiting %d\n         %s\n",
			time.Since(s.begun).Seconds(), p.operations, millis(p.p50), millis(p.p99), p.waiting, s.line)
		s.mu.Unlock()
	}
}

// millis prints a duration in milliseconds.
func millis(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
