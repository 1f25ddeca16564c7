// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outcomes

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// The cases of each family. Nodes have numbers from 0, in the order in which they joined, so
// that node 0 is the oldest and leads. A set of nodes is a bit mask of their numbers.

// Case is one fault, on a cluster of a given number of nodes.
type Case struct {
	// Number is the place of the case in the list of all cases of that many nodes, from 1.
	Number int

	// Family is the name of the family.
	Family string

	// Text says what happens, in one line.
	Text string

	nodes  int
	sides  []set         // Who can talk to each other after the fault; nil: nobody is cut off from all others.
	dead   set           // Who crashes.
	edited set           // The members after the edit that is under way; 0: there is none.
	lead   time.Duration // How long before the fault that edit began.
	strike func(c *cluster)
	acts   time.Duration // How long after the first fault the last one ends, if that is long.
}

// could reports whether somebody could go on: a side that wins among the members of before the
// edit, or among those of after it.
func (c *Case) could() bool {
	before := set(1)<<c.nodes - 1
	if c.sides == nil {
		return wins(before, before&^c.dead) || wins(c.edited, (before|c.edited)&^c.dead)
	}
	return slices.ContainsFunc(c.sides, func(side set) bool {
		return wins(before, side&^c.dead) || wins(c.edited, side&^c.dead)
	})
}

// wins reports whether some of the members are a majority of them: more than half, or half
// with the lowest.
func wins(members, some set) bool {
	all, have := bits.OnesCount(uint(members)), bits.OnesCount(uint(members&some))
	return 2*have > all || all > 0 && 2*have == all && some.has(bits.TrailingZeros(uint(members)))
}

// set is a set of nodes.
type set uint

func (s set) has(i int) bool { return s&(1<<i) != 0 }

// String lists the nodes: "0+2+3".
func (s set) String() string {
	var all []string
	for i := range bits.UintSize {
		if s.has(i) {
			all = append(all, fmt.Sprint(i))
		}
	}
	return strings.Join(all, "+")
}

// family makes the cases of one sort for n nodes.
type family struct {
	name  string
	about string
	cases func(n int) []Case
}

func families() []family {
	return []family{
		{"split-2", "every split into two sides", func(n int) []Case { return splits(n, 2) }},
		{"split-3", "every split into three sides", func(n int) []Case { return splits(n, 3) }},
		{"leader-crash", "every split into two, and the oldest of a side crashes", leaderCrashes},
		{"leaving", "every split while a member leaves", leaving},
		{"downing", "every split while a member is downed by command", commands},
		{"joining", "every split while a node joins", joining},
		{"one-way", "messages pass between two sides in one direction only", oneWay},
		{"links", "one or two links are broken, in one direction or both", links},
		{"crash", "every set of nodes crashes at once", func(n int) []Case { return crashes(n, false) }},
		{"crash-joining", "the same while a node joins", func(n int) []Case { return crashes(n, true) }},
		{"commanded", "every split into two; one side downs the other by command", commanded},
	}
}

// Families returns the names of the families, in their order, and what each is about. The last
// ones are run with a lease only.
func Families() (names []string, about map[string]string) {
	about = map[string]string{}
	all := slices.Concat(families(), leaseFamilies())
	for _, f := range all {
		about[f.name] = f.about
	}
	return familyNames(all), about
}

func familyNames(all []family) []string {
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.name
	}
	return names
}

// Cases returns all cases of n nodes, which must be from 2 to [MaxNodes].
func Cases(n int) []Case { return numbered(families(), n, 0) }

// LeaseCases returns the cases of n nodes that concern leases. Their numbers follow those of
// [Cases].
func LeaseCases(n int) []Case { return numbered(leaseFamilies(), n, len(Cases(n))) }

// numbered returns the cases of families, with numbers from one above the given one.
func numbered(families []family, n, above int) []Case {
	var all []Case
	for _, f := range families {
		for _, c := range f.cases(n) {
			c.Family, c.nodes, c.Number = f.name, n, above+len(all)+1
			all = append(all, c)
		}
	}
	return all
}

// partitions returns every way to deal n nodes out to a number of sides, none of them empty.
// Sides have no names: each way is there once.
func partitions(n, sides int) [][]set {
	var all [][]set
	var deal func(i int, dealt []set)
	deal = func(i int, dealt []set) {
		if i == n {
			if len(dealt) == sides {
				all = append(all, slices.Clone(dealt))
			}
			return
		}
		for s := range dealt {
			dealt[s] |= 1 << i
			deal(i+1, dealt)
			dealt[s] &^= 1 << i
		}
		if len(dealt) < sides {
			deal(i+1, append(dealt, 1<<i))
		}
	}
	deal(0, nil)
	return all
}

// each returns every way to split n nodes, into two sides and into three.
func each(n int) [][]set { return slices.Concat(partitions(n, 2), partitions(n, 3)) }

// text describes sides: "0+1 | 2".
func text(sides []set) string {
	var parts []string
	for _, s := range sides {
		parts = append(parts, s.String())
	}
	return strings.Join(parts, " | ")
}

func splits(n, sides int) []Case {
	var all []Case
	for _, p := range partitions(n, sides) {
		all = append(all, Case{Text: text(p), sides: p, strike: func(c *cluster) { c.split(p) }})
	}
	return all
}

// crashMoments are how long after a split the oldest node of a side crashes: before the split
// is noticed, while it is, about when the side decides, and after that.
func crashMoments() []time.Duration {
	return []time.Duration{time.Second, 4 * time.Second, 7500 * time.Millisecond, 8200 * time.Millisecond, 10 * time.Second}
}

func leaderCrashes(n int) []Case {
	var all []Case
	for _, p := range partitions(n, 2) {
		for _, side := range p {
			oldest := bits.TrailingZeros(uint(side))
			for _, after := range crashMoments() {
				all = append(all, Case{
					Text:  fmt.Sprintf("%s, and %d crashes %v later", text(p), oldest, after),
					sides: p, dead: 1 << oldest,
					strike: func(c *cluster) {
						c.split(p)
						c.world.After(after, func() { c.crash(1 << oldest) })
					},
				})
			}
		}
	}
	return all
}

// Leads returns by how much an edit of the members begins before the fault, in the families with
// one. A step of the leader takes some 20 ms to reach all, and as long again until all know that.
func Leads() []time.Duration {
	return []time.Duration{
		0, 3 * time.Millisecond, 12 * time.Millisecond, 24 * time.Millisecond, 40 * time.Millisecond,
		70 * time.Millisecond, 130 * time.Millisecond, 260 * time.Millisecond,
	}
}

// edited returns every split at every moment of an edit that concerns each of n members.
func edited(n int, what string, begin func(c *cluster, of int)) []Case {
	var all []Case
	for _, p := range each(n) {
		for of := range n {
			for _, lead := range Leads() {
				all = append(all, Case{
					Text:  fmt.Sprintf("%s, %v after %d %s", text(p), lead, of, what),
					sides: p, edited: set(1)<<n - 1&^(1<<of), lead: lead,
					strike: func(c *cluster) {
						begin(c, of)
						c.world.After(lead, func() { c.split(p) })
					},
				})
			}
		}
	}
	return all
}

func leaving(n int) []Case { return edited(n, "begins to leave", (*cluster).leave) }

func commands(n int) []Case { return edited(n, "is downed by command", (*cluster).down) }

// joining has the newcomer on each of the sides.
func joining(n int) []Case {
	var all []Case
	for _, p := range each(n) {
		for side := range p {
			with := slices.Clone(p)
			with[side] |= 1 << n
			for _, lead := range Leads() {
				all = append(all, Case{
					Text:  fmt.Sprintf("%s, %v after %d begins to join", text(with), lead, n),
					sides: with, edited: set(1)<<(n+1) - 1, lead: lead,
					strike: func(c *cluster) {
						c.join()
						c.world.After(lead, func() { c.split(with) })
					},
				})
			}
		}
	}
	return all
}

func oneWay(n int) []Case {
	var all []Case
	for _, p := range partitions(n, 2) {
		for way := range 2 {
			from, to := p[way], p[1-way]
			all = append(all, Case{
				Text:   fmt.Sprintf("nothing from %s reaches %s", from, to),
				sides:  p,
				strike: func(c *cluster) { c.cut(from, to) },
			})
		}
	}
	return all
}

// link is a way between two nodes.
type link struct {
	from, to int
	both     bool
}

func (l link) String() string {
	if l.both {
		return fmt.Sprintf("%d-%d", l.from, l.to)
	}
	return fmt.Sprintf("%d>%d", l.from, l.to)
}

func (l link) strike(c *cluster) {
	c.cut(1<<l.from, 1<<l.to)
	if l.both {
		c.cut(1<<l.to, 1<<l.from)
	}
}

func links(n int) []Case {
	var all []link
	for from := range n {
		for to := range n {
			if from != to {
				all = append(all, link{from: from, to: to})
			}
			if from < to {
				all = append(all, link{from, to, true})
			}
		}
	}
	var cases []Case
	for i, first := range all {
		cases = append(cases, Case{Text: "broken: " + first.String(), strike: first.strike})
		for _, second := range all[i+1:] {
			cases = append(cases, Case{
				Text:   "broken: " + first.String() + ", " + second.String(),
				strike: func(c *cluster) { first.strike(c); second.strike(c) },
			})
		}
	}
	return cases
}

// crashes has every set of nodes but the whole crash, by itself or at each moment of a join.
func crashes(n int, joins bool) []Case {
	var all []Case
	for dead := set(1); dead < 1<<n-1; dead++ {
		if !joins {
			all = append(all, Case{Text: dead.String() + " crash", dead: dead, strike: func(c *cluster) { c.crash(dead) }})
			continue
		}
		for _, lead := range Leads() {
			all = append(all, Case{
				Text: fmt.Sprintf("%s crash, %v after %d begins to join", dead, lead, n),
				dead: dead, edited: set(1)<<(n+1) - 1, lead: lead,
				strike: func(c *cluster) {
					c.join()
					c.world.After(lead, func() { c.crash(dead) })
				},
			})
		}
	}
	return all
}

// commandMoments are how long after a split an operator takes the other side for dead: before
// the split is noticed, and shortly before a side decides.
func commandMoments() []time.Duration { return []time.Duration{time.Second, 6 * time.Second} }

// commanded has each side of each split down all members of the other side by command, one of
// the two sides alone.
func commanded(n int) []Case {
	var all []Case
	for _, p := range partitions(n, 2) {
		for by := range p {
			from, of := p[by], p[1-by]
			for _, after := range commandMoments() {
				all = append(all, Case{
					Text:  fmt.Sprintf("%s, and %v later all of %s are downed by command at %d", text(p), after, of, bits.TrailingZeros(uint(from))),
					sides: p,
					strike: func(c *cluster) {
						c.split(p)
						c.world.After(after, func() { c.downAll(bits.TrailingZeros(uint(from)), of) })
					},
				})
			}
		}
	}
	return all
}
