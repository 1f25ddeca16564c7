// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/plugins"
)

// The parts in which a plugin is asked often: by many at once, and for long.

const (
	// callers ask at the same time, each callsEach questions. Hosts wait for one answer at a
	// time; calls that they have given up may run besides.
	callers, callsEach = 4, 25
	// callsUsual is how many questions Memory asks without [Calls].
	callsUsual = 2000
	// maxGrowth is by how many bytes the process may grow from the first tenth of the
	// questions to the last.
	maxGrowth = 16 << 20
)

// Option changes what [Test] does.
type Option func(*options)

type options struct{ calls int }

// Calls sets how many questions the part Memory asks, at least 100; the default is 2,000, which
// finds a plugin that loses 9 KiB with each. With 100,000 it finds one that loses 200 bytes.
func Calls(n int) Option { return func(o *options) { o.calls = max(n, 100) } }

// answersManyAtOnce has several callers ask the plugin at the same time.
func answersManyAtOnce(tb testing.TB, c plugins.Config) {
	tb.Helper()
	p := open(tb, c)
	first, err := ask(tb.Context(), tb, p)
	if err != nil {
		tb.Fatalf("no answer: %v", err)
	}
	var asking sync.WaitGroup
	faults := make(chan string, callers)
	for range callers {
		asking.Go(func() { // Ends with its questions, each of which has a limit.
			for range callsEach {
				answer, err := ask(tb.Context(), tb, p)
				if err != nil {
					faults <- fmt.Sprintf("no answer: %v", err)
					return
				}
				if p.Manifest().Class.Pure && !reflect.DeepEqual(first, answer) {
					faults <- fmt.Sprintf("it is pure, but answered %v alone, and %v beside others", first, answer)
					return
				}
			}
		})
	}
	asking.Wait()
	close(faults)
	for fault := range faults {
		tb.Error(fault)
	}
}

// keepsItsMemory asks the plugin often, and compares the memory of its process. Where the platform
// has no /proc, it only requires that the same process answers them all.
func keepsItsMemory(tb testing.TB, c plugins.Config, calls int) {
	tb.Helper()
	p := open(tb, c)
	pid := p.Status().PID
	before := int64(0)
	for n := range calls {
		if n == calls/10 {
			before = resident(pid)
		}
		if _, err := ask(tb.Context(), tb, p); err != nil {
			tb.Fatalf("question %d of %d: %v", n+1, calls, err)
		}
	}
	after := resident(pid)
	if now := p.Status().PID; now != pid {
		tb.Fatalf("process %d has ended during %d questions, now there is %d", pid, calls, now)
	}
	tb.Logf("%d KiB after %d questions, %d KiB after %d", before>>10, calls/10, after>>10, calls)
	if grown := after - before; grown > maxGrowth {
		tb.Fatalf("the process has grown by %d KiB with %d questions, from %d KiB", grown>>10, calls-calls/10, before>>10)
	}
}

// resident returns the bytes of a process that are in memory, zero where that is not known.
func resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
