// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package fdtest checks that a detector keeps the contract of [fd.Detector].
//
// Call [TestDetector] from a test of the implementation:
//
//	func TestMyDetectorKeepsTheContract(t *testing.T) {
//		fdtest.TestDetector(t, func(testing.TB) fd.Detector { return mine.New() })
//	}
//
// The suite runs each of its parts on some random traces of answers, until a trace fails.
// The checks need no clock and take milliseconds. They start no goroutine.
package fdtest

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorate/quorate/fd"
)

const (
	interval = time.Second
	traces   = 20
	answers  = 40
)

// TestDetector runs the conformance suite against detectors that newDetector makes,
// two for each trace. They must be configured for heartbeats each second, and must
// hold a node available for at least that long without an answer. If a detector is an
// [fd.Accrual], phi is checked too.
func TestDetector(t *testing.T, newDetector func(testing.TB) fd.Detector) {
	t.Helper()
	for _, part := range parts() {
		t.Run(part.name, func(t *testing.T) { part.run(t, newDetector) })
	}
}

type part struct {
	name  string
	check func(testing.TB, *trace)
}

func parts() []part {
	return []part{
		{"a node that was never heard is available", checkUnheard},
		{"an answer makes it monitored and available", checkAnswers},
		{"in silence the verdict turns at most once", checkSilence},
		{"questions change nothing", checkQuestions},
		{"an answer older than the latest is ignored", checkOldAnswer},
		{"the origin of time does not matter", checkOrigin},
	}
}

// trace is a detector under test, with a second one that is given the same answers.
type trace struct {
	detector, twin fd.Detector
	random         *rand.Rand
	now            time.Time
}

// run checks random traces until one fails.
func (p part) run(t testing.TB, newDetector func(testing.TB) fd.Detector) {
	t.Helper()
	for seed := range uint64(traces) {
		p.check(t, &trace{
			detector: newDetector(t),
			twin:     newDetector(t),
			random:   rand.New(rand.NewPCG(seed, 11)),
			now:      origin(),
		})
		if t.Failed() {
			t.Logf("trace %d of %d", seed, traces)
			return
		}
	}
}

// advance moves to the time of the next answer: mostly regular, sometimes late, and
// now and then after an outage.
func (tr *trace) advance() {
	gap := interval/2 + time.Duration(tr.random.Int64N(int64(interval)))
	if tr.random.IntN(20) == 0 {
		gap += time.Duration(tr.random.Int64N(int64(30 * interval)))
	}
	tr.now = tr.now.Add(gap)
}

func (tr *trace) feed() {
	for range answers {
		tr.advance()
		tr.detector.Heartbeat(tr.now)
		tr.twin.Heartbeat(tr.now)
	}
}

func checkUnheard(t testing.TB, tr *trace) {
	t.Helper()
	later := origin().Add(time.Hour)
	if tr.detector.Monitoring() || !tr.detector.Available(later) {
		t.Errorf("monitoring=%t available=%t before the first answer, want false and true",
			tr.detector.Monitoring(), tr.detector.Available(later))
	}
}

func checkAnswers(t testing.TB, tr *trace) {
	t.Helper()
	for range answers {
		tr.advance()
		tr.detector.Heartbeat(tr.now)
		if !tr.detector.Monitoring() {
			t.Errorf("not monitoring after an answer")
		}
		for _, silence := range []time.Duration{-time.Hour, -1, 0, interval} {
			if !tr.detector.Available(tr.now.Add(silence)) {
				t.Errorf("unavailable %v after an answer", silence)
			}
		}
	}
}

func checkSilence(t testing.TB, tr *trace) {
	t.Helper()
	tr.feed()
	accrual, _ := tr.detector.(fd.Accrual)
	available, suspicion := true, 0.0
	for silence := time.Duration(0); silence < time.Minute; silence += 10 * time.Millisecond {
		at := tr.now.Add(silence)
		next := tr.detector.Available(at)
		if next && !available {
			t.Errorf("available again after %v of silence", silence)
		}
		available = next
		if accrual == nil {
			continue
		}
		phi := accrual.Phi(at)
		if math.IsNaN(phi) || math.IsInf(phi, 0) || phi < suspicion {
			t.Errorf("phi is %v after %v of silence, and was %v before", phi, silence, suspicion)
		}
		suspicion = phi
	}
}

func checkQuestions(t testing.TB, tr *trace) {
	t.Helper()
	for range answers {
		tr.advance()
		tr.detector.Available(tr.now.Add(time.Hour))
		tr.detector.Available(tr.now.Add(-time.Hour))
		tr.detector.Heartbeat(tr.now)
		tr.twin.Heartbeat(tr.now)
	}
	tr.compare(t, 0)
}

func checkOldAnswer(t testing.TB, tr *trace) {
	t.Helper()
	tr.feed()
	tr.detector.Heartbeat(tr.now.Add(-time.Duration(tr.random.Int64N(int64(time.Minute))) - 1))
	tr.compare(t, 0)
}

func checkOrigin(t testing.TB, tr *trace) {
	t.Helper()
	const shift = 1_234_567 * time.Second // Not a multiple of any interval in use.
	for range answers {
		tr.advance()
		tr.detector.Heartbeat(tr.now)
		tr.twin.Heartbeat(tr.now.Add(shift))
	}
	tr.compare(t, shift)
}

// compare checks that the second detector, whose clock is ahead by shift, gives the
// same verdicts.
func (tr *trace) compare(t testing.TB, shift time.Duration) {
	t.Helper()
	for silence := time.Duration(0); silence < time.Minute; silence += 10 * time.Millisecond {
		at := tr.now.Add(silence)
		got, want := tr.detector.Available(at), tr.twin.Available(at.Add(shift))
		if got != want {
			t.Errorf("available=%t and %t after %v of silence, want the same", got, want, silence)
			return
		}
	}
}

// origin is the moment at which traces begin, an arbitrary one.
func origin() time.Time { return time.Unix(0, 0) }
