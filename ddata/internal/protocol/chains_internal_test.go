// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/simulation/simulationtest"
)

// One write and one later read in every order of events while a short chain of sets is gone
// through: chains makes the registers, chain.explore goes through the orders, and the rules
// are those of the machine, or those with one defect. Random runs find few of these
// orders: gossip and repair heal what a defect breaks before anybody reads.
//
// Nobody gossips here unless an order says so. A replica that is dead, or has lost its
// state, is one that is never chosen.

// rules are the rules of the machine on which a read depends.
type rules struct {
	reads  func(*view, func(ReplicaID) bool) bool
	writes func(*view, Phase, bool, func(ReplicaID) bool) bool
	agreed func(*view, Phase, bool, func(ReplicaID) bool) bool
	stays  func(*Register, ReplicaID) bool
	fence  func(given, present uint64) bool // Which answers count for catching up.
	counts func(given, present uint64) bool // Which answers count for a read.
	enough func(v *views, self ReplicaID, taken, whole func(ReplicaID) bool) bool
	ready  func(*views, func(ReplicaID) bool) bool
	sealed func(*Register, *views, func(ReplicaID) bool) bool
	asked  func(*view, *Register, placement, int) view // Who counts for the bucket of the key.
	freed  func(*view, func(ReplicaID) bool) bool      // Whether former homes of a bucket that is held back count no more.
	// confirms says whether an acknowledgement counts on when who asked goes by a later
	// generation: by whether its replica is a home there, and whether that is the next one.
	confirms func(home, next bool) bool
	// whole says whether a copy is a whole one: by whether its replica had caught up when it
	// was asked, and whether it has when everything is taken in.
	whole func(asked, taken bool) bool
}

// machineRules are the rules by which the machine goes.
func machineRules() rules {
	level := Level{Name: Majority}
	return rules{
		reads: level.reads, writes: level.writes, agreed: level.agreed,
		stays:    func(r *Register, _ ReplicaID) bool { return r.stays(true) },
		fence:    counts,
		counts:   counts,
		enough:   (*views).enough,
		ready:    (*views).ready,
		sealed:   func(r *Register, v *views, knows func(ReplicaID) bool) bool { return v.sealed(r.Phase, knows) },
		asked:    func(v *view, _ *Register, _ placement, _ int) view { return *v },
		freed:    (*view).freed,
		confirms: confirms,
		whole:    func(asked, _ bool) bool { return asked },
	}
}

// maxNodes is the highest number of replicas in a chain. Sets of them are bits here.
const maxNodes = 4

// group8 are some of the replicas of a chain, a bit for each.
type group8 = uint8

func idOf(i int) ReplicaID { return ReplicaID(i + 1) }

func in(of group8) func(ReplicaID) bool {
	return func(id ReplicaID) bool { return of>>(id-1)&1 == 1 }
}

func has(of group8, i int) bool { return of>>i&1 == 1 }

// setOf returns the set of some replicas.
func setOf(of group8) Set {
	var all Set
	for i := range maxNodes {
		if has(of, i) {
			all = append(all, Replica{ID: idOf(i)})
		}
	}
	return all
}

// link is a generation of a chain, with what the rules say of each group of replicas.
type link struct {
	reg     Register
	members group8 // Those that hold the key, or are to.
	in      group8 // Those that are in any set.
	current group8 // The homes of the key that reads ask.

	held bool // The bucket of the key is held back.
	pair bool // It has former homes then.

	reads, ready, sealed [1 << maxNodes]bool
	freed                [1 << maxNodes]bool
	writes, agreed       [1 << maxNodes][2]bool
	enough               [maxNodes][1 << maxNodes][1 << maxNodes]bool // By taken and whole.
	least                [maxNodes][]copies8                          // The fewest that are enough.
	stays                group8
	awaited              group8 // Those that have to catch up before the change ends.
}

// chain is a sequence of generations and the rules to go by.
type chain struct {
	rules rules
	nodes int
	links []link
	// steps says to begin and to end each comparison of catching up by itself, instead of
	// all that a replica needs at once.
	steps bool
	// unsure says that the write is never acknowledged: a first read that has returned it
	// stands in its place.
	unsure bool
}

// newChain prepares a chain for the key of a bucket.
func newChain(rules rules, nodes int, registers []Register, copies, bucket int) *chain {
	c := &chain{rules: rules, nodes: nodes}
	for _, r := range registers {
		c.links = append(c.links, c.link(r, copies, bucket))
	}
	return c
}

// bucketsInChains is the number of buckets of a chain in which not all replicas hold all.
const bucketsInChains = 6

func (c *chain) link(r Register, copies, bucket int) link {
	vs := newViews(&r, placement{copies}, bucketsInChains)
	asked := c.rules.asked(vs.bucket(bucket), &r, placement{copies}, bucket)
	v := &asked
	l := link{reg: r, held: vs.bucket(bucket).held, pair: len(v.old) > 0}
	for i := range c.nodes {
		id := idOf(i)
		l.members |= bit(v.has(id), i)
		l.in |= bit(r.In(id), i)
		l.current |= bit(v.current.Has(id), i)
		l.stays |= bit(c.rules.stays(&r, id), i)
		l.awaited |= bit(r.Phase == PhaseJoint && r.counted(id), i)
	}
	for of := range group8(1 << c.nodes) {
		l.reads[of] = c.rules.reads(v, in(of))
		l.ready[of] = c.rules.ready(vs, in(of))
		l.sealed[of] = c.rules.sealed(&r, vs, in(of))
		l.freed[of] = c.rules.freed(v, in(of))
		for i, sealed := range []bool{false, true} {
			l.writes[of][i] = c.rules.writes(v, r.Phase, sealed, in(of))
			l.agreed[of][i] = c.rules.agreed(v, r.Phase, sealed, in(of))
		}
		for i := range c.nodes {
			for whole := range group8(1 << c.nodes) {
				l.enough[i][of][whole] = c.rules.enough(vs, idOf(i), in(of), in(whole))
			}
		}
	}
	for i := range c.nodes {
		l.least[i] = l.fewest(i, c.nodes)
	}
	return l
}

// copies8 are copies with which a replica catches up: taken from some, and whole from some.
type copies8 struct{ taken, whole group8 }

func bit(yes bool, i int) group8 {
	if yes {
		return 1 << i
	}
	return 0
}

// fewest returns the copies that are enough for a replica, and of which none can be left
// out.
func (l *link) fewest(self, nodes int) []copies8 {
	var all []copies8
	for taken := range group8(1 << nodes) {
		for whole := range group8(1 << nodes) {
			least := l.enough[self][taken][whole]
			for i := range nodes {
				least = least && (!has(taken, i) || !l.enough[self][taken&^(1<<i)][whole]) &&
					(!has(whole, i) || !l.enough[self][taken][whole&^(1<<i)])
			}
			if least {
				all = append(all, copies8{taken, whole})
			}
		}
	}
	return all
}

// moment is a state of a chain. It says of each replica which generation it goes by.
type moment struct {
	gen     int8 // The generation that was decided last.
	writer  int8 // That by which the writer goes.
	reader  int8 // That by which the reader goes, -1 before it begins.
	first   int8 // The same for the first reader.
	knows   [maxNodes]int8
	holds   group8 // Who holds what was written.
	caught  group8
	acks    group8 // Who has acknowledged it to the writer, or the first reader.
	answers group8 // Who has answered the read that is under way.
	acked   bool   // The write is acknowledged, or was returned by the first read.
	seen    bool   // An answer had what was written.
	storing bool   // The first reader writes back.

	got    [maxNodes]copies8 // Whose copies were taken in.
	source [maxNodes]int8    // With whom a comparison is under way, plus one.
	brings group8            // By which comparisons comes what was written.
	whole  group8            // Which comparisons were begun with one that had caught up.
}

// explorer goes through the moments of a chain.
type explorer struct {
	*chain
	seen map[moment]struct{}
	todo []moment
	lost string // An order in which the read misses the write, empty for none.
}

// explore returns how many moments there are, and one in which the write is lost.
func (c *chain) explore() (moments int, lost string) {
	x := &explorer{chain: c, seen: map[moment]struct{}{}}
	begin := moment{reader: -1, first: -1, caught: c.links[0].in}
	for x.push(begin); len(x.todo) > 0 && x.lost == ""; {
		m := x.todo[len(x.todo)-1]
		x.todo = x.todo[:len(x.todo)-1]
		x.operate(m)
		if x.steps {
			x.compare(m)
		} else {
			x.catchUp(m)
		}
		x.next(m)
		x.hear(m)
	}
	return len(x.seen), x.lost
}

func (x *explorer) push(m moment) {
	known := len(x.seen)
	if x.seen[m] = struct{}{}; len(x.seen) > known {
		x.todo = append(x.todo, m)
	}
}

// operate goes on with the operation that is under way.
func (x *explorer) operate(m moment) {
	switch {
	case m.acked:
		x.read(m)
	case x.unsure:
		x.write(m)
		x.readFirst(m)
	default:
		x.write(m)
	}
}

// write has the writer hear of a generation, or reach a replica.
func (x *explorer) write(m moment) {
	for g := m.writer + 1; g <= m.gen; g++ {
		t := m
		x.goBy(&t, &t.writer, g)
		x.acknowledge(t)
	}
	for i := range x.nodes {
		if !has(x.links[m.writer].members&^m.acks, i) || x.unsure && has(m.holds, i) {
			continue
		}
		t := m
		x.meet(&t, i, &t.writer)
		if has(x.links[t.writer].members, i) { // No other takes it in.
			t.holds |= 1 << i
			if !x.unsure {
				t.acks |= 1 << i
			}
		}
		x.acknowledge(t)
	}
}

// meet has a replica and the one who asks it tell each other of the later generation.
func (x *explorer) meet(m *moment, i int, by *int8) {
	x.learn(m, i, *by)
	x.goBy(m, by, m.knows[i])
}

// goBy has who asks go by a generation from now on.
func (x *explorer) goBy(m *moment, by *int8, gen int8) {
	for i := range x.nodes {
		if gen != *by && !x.rules.confirms(has(x.links[gen].members, i), gen == *by+1) {
			m.acks &^= 1 << i
		}
	}
	*by = gen
}

// learn has a replica hear of a generation. Who is no home of the key any more drops what it
// holds of it.
func (x *explorer) learn(m *moment, i int, gen int8) {
	if gen > m.knows[i] {
		m.knows[i] = gen
		m.holds &^= bit(!has(x.links[gen].members, i), i)
	}
}

// acknowledge notes whether the write is acknowledged.
func (x *explorer) acknowledge(t moment) {
	if !x.unsure && x.links[t.writer].writes[t.acks][x.sealed(t, t.writer)] {
		t.acked, t.acks, t.writer = true, 0, 0
	}
	x.push(t)
}

// sealed returns 1 if the end of a generation's change may be known to be sealed, else 0.
func (x *explorer) sealed(m moment, gen int8) int {
	if x.links[gen].sealed[m.know(gen)] {
		return 1
	}
	return 0
}

// know returns who knows of a generation.
func (m *moment) know(gen int8) (all group8) {
	for i, known := range m.knows {
		all |= bit(known >= gen, i)
	}
	return all
}

// readFirst has the first reader begin, reach a replica, write back and return.
func (x *explorer) readFirst(m moment) {
	if m.first < 0 {
		for g := range m.gen + 1 {
			t := m
			t.first = g
			x.push(t)
		}
		return
	}
	for i := range x.nodes {
		if !has(x.links[m.first].members, i) || has(m.acks|m.answers, i) {
			continue
		}
		t := m
		x.meet(&t, i, &t.first)
		if !m.storing && t.first != m.first {
			t.answers, t.acks = 0, 0 // Who had answered is asked again.
		}
		switch {
		case m.storing && !has(x.links[t.first].members, i):
		case m.storing:
			t.holds, t.acks = t.holds|1<<i, t.acks|1<<i
		default:
			t.answers |= 1 << i
			t.acks |= m.holds & (1 << i)
		}
		x.goOn(t)
	}
}

// goOn has the first reader return, if it may.
func (x *explorer) goOn(t moment) {
	l := &x.links[t.first]
	if !t.storing && l.reads[t.answers] {
		t.storing, t.answers = true, 0
	}
	sealed := x.sealed(t, t.first)
	switch {
	case t.storing && t.acks == 0:
		return // Nothing was read: nothing follows.
	case t.storing && (l.agreed[t.acks][sealed] || l.writes[t.acks][sealed]):
		t.acked, t.acks, t.writer, t.first, t.storing = true, 0, 0, 0, false
	}
	x.push(t)
}

// read has the reader begin, or reach a replica. A read that returns without what was
// written is what this search is for.
func (x *explorer) read(m moment) {
	if m.reader < 0 {
		for g := range m.gen + 1 {
			t := m
			t.reader = g
			x.push(t)
		}
		return
	}
	for i := range x.nodes {
		if !has(x.links[m.reader].members&^m.answers, i) {
			continue
		}
		t := m
		x.meet(&t, i, &t.reader)
		if !x.rules.counts(x.number(m.reader), x.number(t.reader)) {
			t.answers, t.seen = 0, false
		}
		t.answers |= 1 << i
		t.seen = t.seen || has(t.holds, i)
		switch {
		case !x.links[t.reader].reads[t.answers]:
			x.push(t)
		case !t.seen:
			x.lost = fmt.Sprintf("%v: at generation %d of %d, read from %04b, held by %04b, known %v", x, t.reader+1, t.gen+1, t.answers, t.holds, t.knows)
			return
		}
	}
}

// number is the number of a generation in messages.
func (x *explorer) number(gen int8) uint64 { return x.links[gen].reg.Gen }

// behind returns the replicas that have to catch up.
func (x *explorer) behind(m moment) group8 { return x.links[m.gen].awaited &^ m.caught }

// ask has a replica that catches up ask another: it answers at the present generation, or
// at its own, if that counts.
func (x *explorer) ask(m *moment, i, of int) {
	x.learn(m, i, m.gen)
	if !x.rules.fence(x.number(m.knows[of]), x.number(m.gen)) {
		x.learn(m, of, m.gen)
	}
}

// catchUp has a replica catch up at once.
func (x *explorer) catchUp(m moment) {
	for i := range x.nodes {
		if !has(x.behind(m), i) {
			continue
		}
		for _, least := range x.links[m.gen].least[i] {
			if least.whole&^m.caught == 0 {
				x.takeIn(m, i, least.taken|least.whole)
			}
		}
	}
}

// takeIn has a replica catch up with some copies.
func (x *explorer) takeIn(m moment, i int, from group8) {
	for of := range x.nodes {
		if has(from, of) {
			x.ask(&m, i, of)
			m.holds |= m.holds >> of & 1 << i & x.links[m.gen].members
		}
	}
	m.caught |= 1 << i
	x.push(m)
}

// compare has a replica that catches up begin a comparison, or end one. What another holds
// is taken in when the comparison ends, as it was when it began.
func (x *explorer) compare(m moment) {
	r := &x.links[m.gen].reg
	for i := range x.nodes {
		if !has(x.behind(m), i) {
			continue
		}
		if m.source[i] != 0 {
			x.endComparison(m, i)
			continue
		}
		for of := range x.nodes {
			if of == i || has(m.got[i].taken, of) && (has(m.got[i].whole, of) || !has(m.caught, of)) || !r.source(idOf(of), has(m.caught, of)) {
				continue
			}
			t := m
			x.ask(&t, i, of)
			t.source[i] = int8(of + 1)
			t.brings = t.brings&^(1<<i) | t.holds>>of&1<<i&x.links[m.gen].members
			t.whole = t.whole&^(1<<i) | t.caught>>of&1<<i
			x.push(t)
		}
	}
}

func (x *explorer) endComparison(m moment, i int) {
	of := int(m.source[i] - 1)
	l := &x.links[m.gen]
	m.holds |= m.brings & (1 << i)
	got := &m.got[i]
	got.taken |= 1<<of | bit(l.reg.source(idOf(i), false), i)
	got.whole |= bit(x.rules.whole(has(m.whole, i), has(m.caught, of)), of)
	if l.enough[i][got.taken][got.whole] {
		m.caught |= 1 << i
		*got = copies8{}
	}
	m.source[i], m.brings, m.whole = 0, m.brings&^(1<<i), m.whole&^(1<<i)
	x.push(m)
}

// next has the next generation decided.
func (x *explorer) next(m moment) {
	if int(m.gen)+1 == len(x.links) {
		return
	}
	present, next := &x.links[m.gen], &x.links[m.gen+1]
	switch {
	case present.reg.Phase == PhaseJoint && next.reg.Phase == PhaseEnded && !present.ready[m.caught]:
		return
	case present.reg.Phase == PhaseEnded && next.reg.Phase != PhaseEnded && !present.sealed[m.know(m.gen)]:
		return
	case present.held && present.pair && !next.held && !present.freed[m.know(m.gen)]:
		return
	}
	m.gen++
	m.caught &= next.stays
	m.got, m.source, m.brings, m.whole = [maxNodes]copies8{}, [maxNodes]int8{}, 0, 0
	x.push(m)
}

// hear has a replica hear of the last generation.
func (x *explorer) hear(m moment) {
	for i := range x.nodes {
		if m.knows[i] < m.gen {
			t := m
			x.learn(&t, i, m.gen)
			x.push(t)
		}
	}
}

// String says which sets the chain goes through.
func (c *chain) String() string {
	text := ""
	for i := range c.links {
		r := &c.links[i].reg
		text += fmt.Sprintf("%v %v>%v ", r.Phase, idsOf(r.Current), idsOf(r.Next))
	}
	return text
}

func idsOf(s Set) (all []ReplicaID) {
	for _, r := range s {
		all = append(all, r.ID)
	}
	return all
}

// chains returns all chains that go through a number of sets of some nodes, with the
// generations that the leader proposes for them.
func chains(nodes, sets int) [][]Register {
	var all [][]Register
	var extend func(so []Register)
	extend = func(so []Register) {
		last := &so[len(so)-1]
		if gens := 2*sets - 1; len(so) == gens {
			all = append(all, so)
			return
		}
		for of := range group8(1 << nodes) {
			if next := setOf(of); of != 0 && !next.Same(last.Current) {
				joint := last.joint(next)
				extend(append(slices.Clip(so), joint, joint.ended()))
			}
		}
	}
	for of := range group8(1 << nodes) {
		if of != 0 {
			extend([]Register{{Lineage: Lineage{1, 1}, Gen: 1, Phase: PhaseStable, Current: setOf(of)}})
		}
	}
	return all
}

// detours returns the chains of two sets before whose change another change was begun and
// taken back.
func detours(nodes int) [][]Register {
	var all [][]Register
	for _, of := range chains(nodes, 2) {
		for aside := range group8(1 << nodes) {
			if aside == 0 || setOf(aside).Same(of[0].Current) {
				continue
			}
			begun := of[0].joint(setOf(aside))
			back := begun.stable()
			joint := back.joint(of[1].Next)
			all = append(all, []Register{of[0], begun, back, joint, joint.ended()})
		}
	}
	return all
}

// search is a way to go through some chains.
type search struct {
	name          string
	nodes         int
	chains        [][]Register
	copies        int // See placement.
	steps, unsure bool
	buckets       int // How many buckets the key is put into, one after the other.
	expected      int
}

// run explores all chains, and returns in how many of them a write is lost.
func (s search) run(rules rules) (moments, losing int, first string) {
	for _, registers := range s.chains {
		for bucket := range max(s.buckets, 1) {
			c := newChain(rules, s.nodes, registers, s.copies, bucket)
			c.steps, c.unsure = s.steps, s.unsure
			n, lost := c.explore()
			moments += n
			if lost != "" {
				losing++
				if first == "" {
					first = lost
				}
				break
			}
		}
	}
	return moments, losing, first
}

// searches are the searches of a run of the tests; those through millions of moments more are done with the build
// tag seeds.
func searches() []search {
	all := append(slices.Concat(smallSearches(), smallHeldSearches(), heldSearches()),
		search{name: "three sets of three", nodes: 3, chains: chains(3, 3), expected: 252},
	)
	if simulationtest.Times > 1 {
		all = append(all,
			search{name: "two sets of four", nodes: 4, chains: chains(4, 2), expected: 210},
			search{name: "a change taken back", nodes: 3, chains: detours(3), expected: 252},
			search{name: "two sets of four, two copies", nodes: 4, chains: chains(4, 2), copies: 2, buckets: bucketsInChains, expected: 210},
		)
	}
	return all
}

// No order of events loses a write that was acknowledged, or returned by a read.
// covers I16, I17.
func TestNoOrderOfEventsLosesAWrite(t *testing.T) {
	for _, s := range searches() {
		t.Run(s.name, func(t *testing.T) {
			require.Len(t, s.chains, s.expected)
			moments, losing, first := s.run(machineRules())
			t.Logf("%d chains, %d moments", len(s.chains), moments)
			require.Zero(t, losing, first)
		})
	}
}

// smallSearches are those that are fast enough to look for defects with.
func smallSearches() []search {
	return []search{
		{name: "two sets of three", nodes: 3, chains: chains(3, 2), expected: 42},
		{name: "two sets of three, step by step", nodes: 3, chains: chains(3, 2), steps: true, expected: 42},
		{name: "two sets of three, after a read", nodes: 3, chains: chains(3, 2), unsure: true, expected: 42},
		{name: "one chain of four, step by step", nodes: 4, chains: oneChain(0b1110, 0b0011), steps: true, expected: 1},
		{name: "one chain of four, two copies", nodes: 4, chains: oneChain(0b0001, 0b1110), copies: 2, buckets: bucketsInChains, expected: 1},
		{name: "four to one, two copies", nodes: 4, chains: oneChain(0b1111, 0b0001), copies: 2, buckets: bucketsInChains, expected: 1},
		{name: "one to four, two copies", nodes: 4, chains: oneChain(0b0001, 0b1111), copies: 2, buckets: bucketsInChains, expected: 1},
		{name: "a change of two taken back", nodes: 2, chains: detours(2), expected: 12},
	}
}

// oneChain returns the chain from one set to another.
func oneChain(from, to group8) [][]Register {
	first := Register{Lineage: Lineage{1, 1}, Gen: 1, Phase: PhaseStable, Current: setOf(from)}
	joint := first.joint(setOf(to))
	return [][]Register{{first, joint, joint.ended()}}
}

// Each of these defects of the rules loses a write in some order of events.
func TestOrdersOfEventsFindDefects(t *testing.T) {
	for _, d := range defects() {
		t.Run(d.name, func(t *testing.T) {
			r := machineRules()
			d.put(&r)
			s := smallSearches()[d.search]
			_, losing, first := s.run(r)
			t.Logf("%d of %d chains lose: %s", losing, len(s.chains), first)
			require.NotZero(t, losing, "no order of events finds the defect")
		})
	}
}

// defect is a defect of the rules, and which of the small searches finds it.
type defect struct {
	name   string
	put    func(*rules)
	search int
}

func defects() []defect {
	level := Level{Name: Majority}
	return []defect{
		{name: "in a joint phase only the old set is asked", put: func(r *rules) {
			r.writes = func(v *view, p Phase, sealed bool, in func(ReplicaID) bool) bool {
				if p == PhaseJoint {
					p = PhaseStable
				}
				return level.writes(v, p, sealed, in)
			}
		}},
		{name: "in a joint phase only the new set is asked", put: func(r *rules) {
			r.writes = func(v *view, p Phase, sealed bool, in func(ReplicaID) bool) bool {
				if p == PhaseJoint {
					return v.next.Majority(in)
				}
				return level.writes(v, p, sealed, in)
			}
		}},
		{name: "no seal", put: func(r *rules) {
			r.sealed = func(*Register, *views, func(ReplicaID) bool) bool { return true }
		}},
		{name: "the end is sealed by any one replica", put: func(r *rules) {
			r.sealed = func(_ *Register, _ *views, knows func(ReplicaID) bool) bool {
				return knows(idOf(0)) || knows(idOf(1)) || knows(idOf(2))
			}
		}},
		{name: "no fence", put: func(r *rules) { r.fence = func(uint64, uint64) bool { return true } }},
		{name: "end before a majority has caught up", put: func(r *rules) {
			r.ready = func(*views, func(ReplicaID) bool) bool { return true }
		}},
		{name: "end when one has caught up", put: func(r *rules) {
			r.ready = func(v *views, caught func(ReplicaID) bool) bool { return v.all[0].next.count(caught) > 0 }
		}},
		{name: "only new replicas catch up", put: func(r *rules) {
			r.stays = func(r *Register, id ReplicaID) bool { return r.stays(true) || r.Current.Has(id) }
		}},
		{name: "caught up with one copy", put: func(r *rules) {
			r.enough = func(v *views, _ ReplicaID, taken, _ func(ReplicaID) bool) bool {
				return v.all[0].current.count(taken) > 0
			}
		}},
		{name: "answers of an older generation count", put: func(r *rules) {
			r.counts = func(uint64, uint64) bool { return true }
		}},
		{name: "a copy counts as whole by what its replica is afterwards", search: 3, put: func(r *rules) {
			r.whole = func(_, taken bool) bool { return taken }
		}},
		{name: "an acknowledgement counts on when its replica has dropped its copy", search: 7, put: func(r *rules) {
			r.confirms = func(bool, bool) bool { return true }
		}},
		{name: "an acknowledgement counts on over a generation of which nothing is known", search: 7, put: func(r *rules) {
			r.confirms = func(home, _ bool) bool { return home }
		}},
		{name: "any copy counts as whole", search: 3, put: func(r *rules) {
			r.whole = func(bool, bool) bool { return true }
		}},
		{name: "a whole copy counts for buckets of which it has nothing", search: 4, put: func(r *rules) {
			r.enough = func(v *views, self ReplicaID, taken, whole func(ReplicaID) bool) bool {
				return v.enough(self, taken, whole) || whole(idOf(0)) || whole(idOf(1)) || whole(idOf(2)) || whole(idOf(3))
			}
		}},
		{name: "the end is sealed by a winning part of all, not of the homes", search: 5, put: func(r *rules) {
			r.sealed = func(r *Register, _ *views, knows func(ReplicaID) bool) bool {
				return r.Phase != PhaseEnded || r.Old.Wins(knows)
			}
		}},
		{name: "a joint phase ends with a majority of all, not of the homes", search: 6, put: func(r *rules) {
			r.ready = func(_ *views, caught func(ReplicaID) bool) bool { return setOf(0b1111).Majority(caught) }
		}},
		{name: "a read returns before it has written back", search: 2, put: func(r *rules) {
			r.agreed = func(*view, Phase, bool, func(ReplicaID) bool) bool { return true }
		}},
		{name: "a read returns what one set agrees upon while another is asked", search: 2, put: func(r *rules) {
			r.agreed = func(v *view, _ Phase, _ bool, in func(ReplicaID) bool) bool { return level.reads(v, in) }
		}},
	}
}
