// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// One write and one later read in every order of events while replicas crash that have
// acknowledged the write and lose it: tails.explore goes through the orders, and the rules are
// those of the machine, or those with one defect. Random runs find few of these orders: what a
// crash has cost is taken in again before anybody reads.
//
// The set does not change. The writer is no replica, so that nothing but what is acknowledged
// keeps the write. Nobody hears of an unclean start unless an event says so.

// tailRules are the rules on which a read depends when replicas crash.
type tailRules struct {
	enough func(s Set, self ReplicaID, taken func(ReplicaID) bool) bool
	counts func(given, known int8) bool // Whether an acknowledgement counts, by numbers of unclean starts.
	raises bool                         // An unclean start has a number of its own,
	keeps  bool                         // which is still known after another crash,
	tells  bool                         // and which is told to whoever is asked for its copy.
	source func(sure bool) bool         // Whose copies are taken in.
	answer func(sure bool) bool         // Who answers, and acknowledges.
}

func machineTailRules() tailRules {
	same := func(sure bool) bool { return sure }
	return tailRules{
		enough: Set.restores, counts: func(given, known int8) bool { return given >= known },
		raises: true, keeps: true, tells: true, source: same, answer: same,
	}
}

// tail is a state of such a run.
type tail struct {
	sure, holds group8
	taken       [nodesInTails]group8 // By an unsure replica: of which sure ones.
	known       [nodesInTails]int8   // The number of unclean starts that a replica knows of.
	given       [nodesInTails]int8   // The number with an acknowledgement on its way, -1 for none.
	writer      int8                 // The number that the writer knows of.
	acks        group8
	crashes     int8
	acked       bool
	answers     group8 // To the read, which begins when the write is acknowledged.
}

// nodesInTails is the highest number of replicas.
const nodesInTails = 5

// tails goes through the orders of events of some replicas, of which some may crash.
type tails struct {
	rules   tailRules
	nodes   int
	crashes int8
	set     Set
	seen    map[tail]struct{}
	todo    []tail
	lost    string
}

func (x *tails) push(m tail) {
	if _, known := x.seen[m]; !known {
		x.seen[m] = struct{}{}
		x.todo = append(x.todo, m)
	}
}

// explore returns how many states there are, and one in which the read misses the write.
func (x *tails) explore() (int, string) {
	x.seen, x.set = map[tail]struct{}{}, nil
	all := group8(1<<x.nodes - 1)
	for i := range x.nodes {
		x.set = append(x.set, Replica{ID: idOf(i)})
	}
	begin := tail{sure: all, given: [nodesInTails]int8{-1, -1, -1, -1, -1}}
	for x.push(begin); len(x.todo) > 0 && x.lost == ""; {
		m := x.todo[len(x.todo)-1]
		x.todo = x.todo[:len(x.todo)-1]
		for i := range x.nodes {
			if m.acked {
				x.read(m, i)
			} else {
				x.write(m, i)
				x.acknowledge(m, i)
			}
			x.crash(m, i)
			x.take(m, i)
		}
	}
	return len(x.seen), x.lost
}

// write has the writer reach a replica.
func (x *tails) write(m tail, i int) {
	m.known[i] = max(m.known[i], m.writer)
	if has(m.acks, i) || m.given[i] >= 0 || !x.rules.answer(has(m.sure, i)) {
		return
	}
	m.holds |= 1 << i
	m.given[i] = m.known[i]
	x.push(m)
}

// acknowledge has an acknowledgement arrive.
func (x *tails) acknowledge(m tail, i int) {
	given := m.given[i]
	if m.given[i] = -1; given < 0 {
		return
	}
	if given > m.writer {
		m.writer = given
		if !x.rules.counts(given-1, given) {
			m.acks = 0
		}
	}
	if x.rules.counts(given, m.writer) {
		m.acks |= 1 << i
	}
	if x.set.Majority(in(m.acks)) {
		m = tail{sure: m.sure, holds: m.holds, taken: m.taken, known: m.known, crashes: m.crashes, acked: true}
	}
	x.push(m)
}

// read has the reader reach a replica. A read that returns without what was written is what this
// search is for.
func (x *tails) read(m tail, i int) {
	if has(m.answers, i) || has(m.holds, i) || !x.rules.answer(has(m.sure, i)) {
		return // With one that holds it the read returns what was written.
	}
	if m.answers |= 1 << i; x.set.Wins(in(m.answers)) {
		x.lost = fmt.Sprintf("%d replicas: read from %05b, held by %05b, sure %05b", x.nodes, m.answers, m.holds, m.sure)
	}
	x.push(m)
}

// crash has a replica lose the write. Of the others a winning part stays sure.
func (x *tails) crash(m tail, i int) {
	if m.crashes == x.crashes || !x.set.Wins(in(m.sure&^(1<<i))) {
		return
	}
	m.crashes++
	m.sure, m.holds, m.taken[i] = m.sure&^(1<<i), m.holds&^(1<<i), 0
	if !x.rules.keeps {
		m.known[i] = 0
	}
	if x.rules.raises {
		m.known[i]++
	}
	x.push(m)
}

// take has an unsure replica take in what another one holds.
func (x *tails) take(m tail, i int) {
	if has(m.sure, i) {
		return
	}
	for of := range x.nodes {
		t := m
		if of == i || has(m.taken[i], of) || !x.rules.source(has(m.sure, of)) {
			continue
		}
		if t.known[i] = max(m.known[i], m.known[of]); x.rules.tells {
			t.known[of] = t.known[i]
		}
		t.holds |= m.holds >> of & 1 << i
		if t.taken[i] |= 1 << of; x.rules.enough(x.set, idOf(i), in(t.taken[i])) {
			t.sure, t.taken[i] = t.sure|1<<i, 0
		}
		x.push(t)
	}
}

// No order of events loses a write that was acknowledged, whichever minority crashes and loses
// what it has acknowledged.
// covers I16, I17.
func TestNoCrashOfAMinorityLosesAWrite(t *testing.T) {
	crashes := []int8{2: 2, 3: 2, 4: 2, nodesInTails: 1} // Two of five are 5 million states.
	for nodes := 2; nodes <= nodesInTails; nodes++ {
		x := &tails{rules: machineTailRules(), nodes: nodes, crashes: crashes[nodes]}
		states, lost := x.explore()
		t.Logf("%d replicas: %d states", nodes, states)
		require.Empty(t, lost)
	}
}

// Each of these defects of the rules loses a write in some order of events.
func TestOrdersOfCrashesFindDefects(t *testing.T) {
	for name, put := range map[string]func(*tailRules){
		"sure one copy too early": func(r *tailRules) {
			r.enough = func(s Set, _ ReplicaID, taken func(ReplicaID) bool) bool {
				return 2*(s.count(taken)+1) > len(s)-1
			}
		},
		"copies of unsure ones count":                  func(r *tailRules) { r.source = func(bool) bool { return true } },
		"unsure ones answer":                           func(r *tailRules) { r.answer = func(bool) bool { return true } },
		"acknowledgements of former lives count":       func(r *tailRules) { r.counts = func(int8, int8) bool { return true } },
		"an unclean start has no number":               func(r *tailRules) { r.raises = false },
		"who is asked for a copy takes no number over": func(r *tailRules) { r.tells = false },
		"the number is forgotten with a crash":         func(r *tailRules) { r.keeps = false },
	} {
		t.Run(name, func(t *testing.T) {
			r := machineTailRules()
			put(&r)
			lost := ""
			for nodes := 2; nodes <= nodesInTails && lost == ""; nodes++ {
				_, lost = (&tails{rules: r, nodes: nodes, crashes: 2}).explore()
			}
			t.Log(lost)
			require.NotEmpty(t, lost, "no order of events finds the defect")
		})
	}
}
