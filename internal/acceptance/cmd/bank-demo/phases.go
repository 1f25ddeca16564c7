// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// The waits of requests become gaps of accounts ([gaps]); each gap and each failed ask is
// counted in the phase that it belongs to ([phases]); phases that broke a promise are
// listed ([promises], [missed]).

// The promises of the toolkit with default settings.
const (
	gapAfterKill   = 10 * time.Second
	gapByWitness   = 20 * time.Second // The limit where a minority might survive: the decision itself is waited for.
	gapInRestart   = 500 * time.Millisecond
	noAnswer       = time.Duration(math.MaxInt64) // The end of a request that was never answered.
	worthRecording = 300 * time.Millisecond       // A gap of this length is written to the list of gaps.
)

// Moments are durations since the load began.

// span is one request to one account: when it was sent, by a client that repeated it
// until it was answered, and when it was answered.
type span struct {
	account  string
	from, to time.Duration
}

// gap is a time in which an account was asked and answered no request.
type gap struct {
	account  string
	from, to time.Duration
}

// length is the length of the gap.
func (g gap) length() time.Duration { return g.to - g.from }

// window is the time of one phase.
type window struct {
	name     string
	from, to time.Duration
}

// overlap is how much of g lies in w.
func (w window) overlap(g gap) time.Duration {
	return max(0, min(w.to, g.to)-max(w.from, g.from))
}

// phase is what the clients saw in one phase.
type phase struct {
	Seconds    float64 `json:"seconds"`
	Answered   int     `json:"answered"`
	LongestGap int64   `json:"longest_gap_ms"`
	FailedAsks int     `json:"failed_asks"` // Requests that a node answered with an error.
	Retried    int     `json:"retried"`     // Requests answered at a second or later try, for whatever reason.
}

// gaps returns the gaps of all accounts: for each account the times between two
// successive answers, as far as a request waited. A request that was never answered waits
// until end.
func gaps(spans []span, end time.Duration) []gap {
	byAccount := map[string][]span{}
	for _, s := range spans {
		s.to = min(s.to, end)
		byAccount[s.account] = append(byAccount[s.account], s)
	}
	var all []gap
	for _, id := range slices.Sorted(maps.Keys(byAccount)) {
		all = append(all, gapsOf(byAccount[id])...)
	}
	return all
}

// gapsOf returns the gaps of one account. It goes backwards through the answers: a
// request that ended at an answer or after it, and began before it, was waiting for it.
func gapsOf(spans []span) []gap {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.to, b.to) })
	out := make([]gap, len(spans))
	waiting := noAnswer
	for i, s := range slices.Backward(spans) {
		waiting = min(waiting, s.from)
		since := waiting
		if i > 0 {
			since = max(since, spans[i-1].to)
		}
		out[i] = gap{s.account, min(since, s.to), s.to}
	}
	return out
}

// windowOf returns the index of the phase to which a gap belongs: the phase with most of
// it, the earlier one of two.
func windowOf(windows []window, g gap) int {
	best := 0
	for i, w := range windows {
		if w.overlap(g) > windows[best].overlap(g) {
			best = i
		}
	}
	return best
}

// at returns the index of the phase at a moment.
func at(windows []window, moment time.Duration) int {
	for i, w := range windows {
		if moment < w.to {
			return i
		}
	}
	return len(windows) - 1
}

// phases counts what happened in each window.
func phases(windows []window, spans []span, failed, retried []time.Duration) map[string]*phase {
	out := make([]*phase, len(windows))
	named := map[string]*phase{}
	for i, w := range windows {
		out[i] = &phase{Seconds: math.Round((w.to-w.from).Seconds()*10) / 10}
		named[w.name] = out[i]
	}
	if len(windows) == 0 {
		return named
	}
	for _, s := range spans {
		if s.to != noAnswer {
			out[at(windows, s.to)].Answered++
		}
	}
	for _, moment := range failed {
		out[at(windows, moment)].FailedAsks++
	}
	for _, moment := range retried {
		out[at(windows, moment)].Retried++
	}
	for _, g := range gaps(spans, windows[len(windows)-1].to) {
		p := out[windowOf(windows, g)]
		p.LongestGap = max(p.LongestGap, g.length().Milliseconds())
	}
	return named
}

// phases counts what the clients saw in each window.
func (l *load) phases(windows []window) map[string]*phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := make([]time.Duration, len(l.failed))
	for i, f := range l.failed {
		failed[i] = f.at
	}
	return phases(windows, l.spans, failed, l.retried)
}

// writeGaps writes the long gaps and the failed asks to a file, each with its
// time of day, so that they can be found in the logs of the nodes.
func (d *demo) writeGaps(path string) error {
	d.load.mu.Lock()
	defer d.load.mu.Unlock()
	var text strings.Builder
	clock := func(moment time.Duration) string { return d.load.begun.Add(moment).Format("15:04:05.000") }
	for _, w := range d.windows {
		fmt.Fprintf(&text, "%s phase %s\n", clock(w.from), w.name)
	}
	for _, g := range gaps(d.load.spans, d.load.since()) {
		if g.length() >= worthRecording {
			fmt.Fprintf(&text, "%s gap of %s: %d ms\n", clock(g.from), g.account, g.length().Milliseconds())
		}
	}
	for _, f := range d.load.failed {
		fmt.Fprintf(&text, "%s failed ask, says %s: %s\n", clock(f.at), f.node, f.what)
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// promise is what a phase allows.
type promise struct {
	gap    time.Duration // The longest gap of an account; 0 for no limit.
	failed bool          // Whether asks may fail.
}

// promises returns what each phase allows.
func promises(plugins bool) map[string]promise {
	afterKill := promise{gapAfterKill, true}
	if plugins {
		afterKill.gap = gapByWitness
	}
	quiet := promise{gapInRestart, false}
	return map[string]promise{
		steady:             {0, false},
		string(killPlain):  afterKill,
		string(killOldest): afterKill,
		string(reshardOne): afterKill,
		string(freezeOne):  {afterKill.gap + noticedAfter, true}, // Clients ask the frozen node for so long.
		string(restartAll): quiet,
		string(drainOne):   quiet,
		string(reshardAll): quiet,
	}
}

// missed returns the promises that were not kept in the phases of a run. They do not
// change the verdict on the books: a machine that is busy with other work misses them
// too.
func missed(named map[string]*phase, plugins bool) []string {
	var out []string
	limits := promises(plugins)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		p, limit := named[name], limits[name]
		if limit.gap > 0 && p.LongestGap >= limit.gap.Milliseconds() {
			out = append(out, fmt.Sprintf("%s: longest gap %d ms, not below %d", name, p.LongestGap, limit.gap.Milliseconds()))
		}
		if _, known := limits[name]; known && !limit.failed && p.FailedAsks > 0 {
			out = append(out, fmt.Sprintf("%s: %d failed asks", name, p.FailedAsks))
		}
	}
	return out
}
