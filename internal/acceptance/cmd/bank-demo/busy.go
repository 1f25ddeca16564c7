// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// How busy the machine was while the bank ran: a limit that was passed on a machine that stood still says nothing of
// the bank.
const (
	busyTick    = 10 * time.Millisecond
	busyStill   = 500 * time.Millisecond // So long a standstill passes limits by itself.
	busyPercent = 50                     // So much of the time some program may wait for a processor.
)

// machine watches how busy the machine is, from [watchMachine] until close.
type machine struct {
	still      atomic.Int64 // nanoseconds by which ticks were late
	begun      time.Time
	waited     time.Duration // as the system counts it, at the beginning
	stop, done chan struct{}
}

func watchMachine() *machine {
	m := &machine{begun: time.Now(), waited: waitedForProcessors(), stop: make(chan struct{}), done: make(chan struct{})}
	go m.run() // Owned by the demo, which closes it.
	return m
}

// run adds up by how much each tick is late.
func (m *machine) run() {
	defer close(m.done)
	ticker := time.NewTicker(busyTick)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-m.stop:
			return
		case <-ticker.C:
		}
		now := time.Now()
		if late := now.Sub(last) - 5*busyTick; late > 0 {
			m.still.Add(int64(late))
		}
		last = now
	}
}

// close ends the watch and returns for how many milliseconds the machine stood still, and how many percent of
// the time some program waited for a processor, 0 where the system does not say. A nil machine was not watched.
func (m *machine) close() (stillMS int64, waitedPercent int) {
	if m == nil {
		return 0, 0
	}
	close(m.stop)
	<-m.done
	waited := waitedForProcessors() - m.waited
	return time.Duration(m.still.Load()).Milliseconds(), int(100 * waited / max(time.Since(m.begun), time.Millisecond))
}

// isBusy says whether limits of time tell nothing on such a machine.
func isBusy(stillMS int64, waitedPercent int) bool {
	return stillMS > busyStill.Milliseconds() || waitedPercent > busyPercent
}

// waitedForProcessors returns the time in which some program of the machine waited for a processor, since the
// machine was started: the pressure stall information of Linux.
func waitedForProcessors() time.Duration {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	return parsePressure(string(text))
}

// parsePressure reads the total of a text such as "some avg10=0.06 avg60=19.70 avg300=40.80 total=359929450", in
// microseconds; 0 for any other text.
func parsePressure(text string) time.Duration {
	line, _, _ := strings.Cut(text, "\n")
	_, total, _ := strings.Cut(line, "total=")
	var micros int64
	if _, err := fmt.Sscan(total, &micros); err != nil {
		return 0
	}
	return time.Duration(micros) * time.Microsecond
}
