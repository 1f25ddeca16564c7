// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package patience

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The process has one watch. It runs while at least one test uses this package: the first one starts its
// goroutine, the last one ends it, so that tests that look for goroutines left behind find none.

// tick is how often the watch looks.
const tick = 10 * time.Millisecond

// NotJudged begins the line of a failed test that lost much of its time. What runs the tests of the repository
// looks for it.
const NotJudged = "not judged: "

// A watch measures how long the process did not run.
type watch struct {
	lost atomic.Int64 // nanoseconds, grows only

	mu    sync.Mutex // guards what follows
	tests map[testing.TB]time.Duration
	stop  chan struct{}
	done  chan struct{}
}

//nolint:gochecknoglobals // A process has one time that it lost.
var process = watch{tests: map[testing.TB]time.Duration{}}

// virtual says whether the caller is in a bubble of testing/synctest, whose clock begins with
// the year 2000.
func virtual() bool { return time.Now().Year() < 2020 }

// of makes tb a test that is watched, and returns what tells the time that was lost so far.
func of(tb testing.TB) func() time.Duration {
	if virtual() {
		return func() time.Duration { return 0 }
	}
	if process.enter(tb) {
		began := time.Now()
		tb.Cleanup(func() { process.leave(tb, began) })
	}
	return process.total
}

func (w *watch) total() time.Duration { return time.Duration(w.lost.Load()) }

// enter registers a test, and returns false for one that is registered. The first one starts the
// goroutine, which leave ends and waits for.
func (w *watch) enter(tb testing.TB) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.tests[tb]; known {
		return false
	}
	if len(w.tests) == 0 {
		w.stop, w.done = make(chan struct{}), make(chan struct{})
		go w.run(openThreads(), w.stop, w.done) // The file is open when enter returns, for tests that count such.
	}
	w.tests[tb] = w.total()
	return true
}

// leave takes a test back when it has ended, and says of a failed one whether it can be judged.
func (w *watch) leave(tb testing.TB, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := time.Since(began)
	lost := min(w.total()-w.tests[tb], took) // What was lost before the first tick is counted with it.
	delete(w.tests, tb)
	if len(w.tests) == 0 {
		close(w.stop)
		<-w.done
	}
	if tb.Failed() && !judged(lost, took) {
		tb.Log(verdict(lost, took))
	}
}

// judged says whether a failure after a time of which so much was lost tells of the code.
func judged(lost, took time.Duration) bool { return lost <= max(250*time.Millisecond, took/10) }

func verdict(lost, took time.Duration) string {
	return fmt.Sprintf("%sthe process did not run for %.1f s of %.1f s", NotJudged, lost.Seconds(), took.Seconds())
}

// run adds up what is lost, from one tick to the next.
func (w *watch) run(threads threads, stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	defer threads.close()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		now := time.Now()
		w.lost.Add(int64(lostIn(now.Sub(last), threads.runnable(), runtime.NumCPU())))
		last = now
	}
}

// lostIn returns how much of the time since the last tick was lost: all that came after the tick
// was due, and of the rest the share that one of so many runnable threads does not get.
func lostIn(passed time.Duration, runnable, processors int) time.Duration {
	late := max(0, passed-2*tick) // A ticker that is late by less is not late.
	rest := passed - late
	if runnable > processors {
		late += rest - rest*time.Duration(processors)/time.Duration(runnable)
	}
	return late
}

// threads tells how many threads of the machine want to run. Where the system does not say, it
// tells of none.
type threads struct{ file *os.File }

func openThreads() threads {
	file, err := os.Open("/proc/loadavg")
	if err != nil {
		return threads{}
	}
	return threads{file}
}

func (t threads) close() {
	if t.file != nil {
		_ = t.file.Close() // It was only read.
	}
}

// runnable returns the number at this moment, the caller's own thread included.
func (t threads) runnable() int {
	if t.file == nil {
		return 0
	}
	var text [64]byte
	n, _ := t.file.ReadAt(text[:], 0) // It ends before the buffer does.
	return parseRunnable(string(text[:n]))
}

// parseRunnable reads a line such as "2.22 1.97 1.60 4/104 2489": 4 of 104 threads can run. It returns 0 for
// any other text.
func parseRunnable(line string) int {
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return 0
	}
	number, _, _ := strings.Cut(fields[3], "/")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
