// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"fmt"
	"slices"
)

// How the strategies decide that keep one side. decideBy asks the rule of a strategy
// about the side, and has part choose which ends of broken links within the side go. A
// kept counts the votes of those who are kept meanwhile, so that each question to the
// rule takes little.

// rule says which members of a view may go on without all others.
type rule struct {
	// votes says of each member, by index, whether its vote counts. Of a broken link
	// the end without a vote goes first.
	votes []bool

	// ballots are what is counted among the kept members.
	ballots []ballot

	// conditions must all hold for members to go on. Each is about the kept members that
	// member i reaches, i included, or about all kept members if i is everybody.
	conditions []func(k *kept, i int) bool

	// tally says in words what a set of members has of what it needs.
	tally func(set []bool) string

	// need is what a side must have, for reasons: "majority".
	need string
}

// everybody stands for all kept members in a condition.
const everybody = -1

// ballot is a set of members that are counted.
type ballot struct {
	counts []bool // Whether each member is counted.
	size   int    // How many votes there are, those of nobody included.
	lowest int    // The member whose vote decides between halves, or -1.
}

// needMajority adds the condition that a majority is needed in every set of voters.
func (r *rule) needMajority(v *View) {
	counted := v.counted()
	for _, voters := range v.Base {
		if len(voters) == 0 {
			continue
		}
		b, at := ballot{counts: make([]bool, len(v.Members)), size: len(voters), lowest: -1}, finder{view: v}
		for _, id := range voters {
			if i := at.index(id); i >= 0 && counted[i] {
				b.counts[i], r.votes[i] = true, true
			}
		}
		if i := v.indexOf(lowestOf(voters)); i >= 0 && b.counts[i] {
			b.lowest = i
		}
		n := len(r.ballots)
		r.ballots = append(r.ballots, b)
		r.conditions = append(r.conditions, func(k *kept, i int) bool {
			count := k.count(n, i)
			return 2*count > b.size || 2*count == b.size && k.reaches(i, b.lowest)
		})
	}
}

// count adds a ballot of the members for which counts returns true, and returns its
// number.
func (r *rule) count(v *View, counts func(i int) bool) (n int) {
	b := ballot{counts: make([]bool, len(v.Members)), lowest: -1}
	for i := range v.Members {
		if b.counts[i] = counts(i); b.counts[i] {
			b.size++
		}
	}
	r.ballots = append(r.ballots, b)
	return len(r.ballots) - 1
}

// decideBy decides by a rule, which is made only if there is something to decide.
func (v *View) decideBy(name string, makeRule func() *rule) (Decision, error) {
	if err := v.Validate(); err != nil {
		return Decision{}, err
	}
	side := v.Side()
	lost := len(side.Lost())
	if lost == 0 && len(side.links) == 0 {
		return Decision{Reason: name + ": everybody is reachable"}, nil
	}
	if !hasVoters(v.Base) {
		return Decision{Reason: name + ": there are no voters yet, so no side can win"}, nil
	}
	r := makeRule()
	k := newKept(side, r)
	if !k.wins(everybody) {
		return v.downSide(side, fmt.Sprintf("%s: this side has no %s: %s", name, r.need, r.tally(side.on))), nil
	}
	left, ok := k.part(side)
	if !ok {
		why := "nobody on this side stays"
		if len(side.links) > 0 {
			why = "too many links within this side are broken"
		}
		return v.downSide(side, fmt.Sprintf("%s: %s: it has %s, but nobody on it who is up or leaving reaches a %s",
			name, why, r.tally(side.on), r.need)), nil
	}
	down := v.downable(func(i int) bool { return !k.in[i] })
	reason := name + ": this side has " + r.tally(k.in)
	if left > 0 {
		reason += fmt.Sprintf(", and no %s without either end of %d broken links, which are kept until those who are down do not count any more", r.need, left)
	}
	if len(down) == 0 {
		return Decision{Reason: reason}, nil
	}
	reason += fmt.Sprintf("; downed are %d lost and %d indirectly connected", lost, len(down)-lost)
	return Decision{Verdict: KeepSide, Down: down, Reason: reason}, nil
}

// kept counts the votes of members, and the broken links between them, while some are
// removed from it. Members are given by their index in the view.
type kept struct {
	view *View
	rule *rule

	in     []bool  // Who is kept.
	of     [][]int // The members to which each member has a broken link.
	broken []int   // How many of those are kept.

	counts []int   // How many members of each ballot are kept.
	cut    [][]int // For each ballot, how many of its kept members each member does not reach.
	winner int     // The member that reached enough when somebody was looked for last.
}

// newKept returns the members of a side, all of them kept.
func newKept(s *Side, r *rule) *kept {
	n := len(s.on)
	k := &kept{
		view: s.view, rule: r, in: slices.Clone(s.on), of: s.linked(), broken: make([]int, n),
		counts: make([]int, len(r.ballots)), cut: make([][]int, len(r.ballots)),
	}
	for b := range k.cut {
		k.cut[b] = make([]int, n)
	}
	for i, in := range k.in {
		if in {
			k.change(i, 1)
		}
	}
	return k
}

// linked returns, for each member, the members to which it has a broken link within the
// side. All lists share one array.
func (s *Side) linked() [][]int {
	degree := make([]int, len(s.on))
	for _, pair := range s.links {
		degree[pair[0]]++
		degree[pair[1]]++
	}
	of, all := make([][]int, len(s.on)), make([]int, 2*len(s.links))
	for i, d := range degree {
		of[i], all = all[:0:d], all[d:]
	}
	for _, pair := range s.links {
		of[pair[0]] = append(of[pair[0]], pair[1])
		of[pair[1]] = append(of[pair[1]], pair[0])
	}
	return of
}

func (k *kept) drop(i int) {
	k.in[i] = false
	k.change(i, -1)
}

func (k *kept) restore(i int) {
	k.in[i] = true
	k.change(i, 1)
}

// change adjusts the counts when a member is kept (by 1) or dropped (by -1).
func (k *kept) change(i, by int) {
	for _, j := range k.of[i] {
		k.broken[j] += by
	}
	for n := range k.rule.ballots {
		if !k.rule.ballots[n].counts[i] {
			continue
		}
		k.counts[n] += by
		for _, j := range k.of[i] {
			k.cut[n][j] += by
		}
	}
}

// count returns how many members of a ballot are kept and reached by member i.
func (k *kept) count(ballot, i int) int {
	if i == everybody {
		return k.counts[ballot]
	}
	return k.counts[ballot] - k.cut[ballot][i]
}

// reaches reports whether member j is kept and reached by member i. A j of -1 is nobody.
func (k *kept) reaches(i, j int) bool {
	return j >= 0 && k.in[j] && (i == everybody || !slices.Contains(k.of[i], j))
}

// wins reports whether the kept members that member i reaches may go on.
func (k *kept) wins(i int) bool {
	for _, holds := range k.rule.conditions {
		if !holds(k, i) {
			return false
		}
	}
	return true
}

// someoneWins reports whether the kept members may go on, and some of them that is up or
// leaving reaches enough of them by itself. Without such a member none could prove that
// the side goes on, to work or to take the downed members out of the voters.
func (k *kept) someoneWins() bool {
	if !k.wins(everybody) {
		return false
	}
	if k.winsAlone(k.winner) {
		return true
	}
	for i := range k.in {
		if k.winsAlone(i) {
			k.winner = i
			return true
		}
	}
	return false
}

func (k *kept) winsAlone(i int) bool { return k.in[i] && votes(k.view.Members[i]) && k.wins(i) }

// part drops one end of each broken link where it can be spared, and returns the number
// of remaining broken links. It returns false, and drops no member, if no member of the
// side reaches enough. It looks only one step ahead for the fewest members to drop, since
// looking at all steps would take exponential time, but it does the same on every node.
func (k *kept) part(s *Side) (left int, ok bool) {
	if !k.someoneWins() {
		return 0, false
	}
	ends := &ends{kept: k}
	for i := range k.in {
		if k.broken[i] > 0 {
			ends.list = append(ends.list, end{i, k.broken[i]})
		}
	}
	for i := len(ends.list) / 2; i >= 0; i-- {
		ends.sink(i)
	}
	for len(ends.list) > 0 {
		worst := ends.list[0]
		now := k.broken[worst.member]
		if 0 < now && now < worst.broken { // Another end of its links has gone since.
			ends.list[0].broken = now
			ends.sink(0)
			continue
		}
		if now > 0 {
			k.drop(worst.member)
			if !k.someoneWins() {
				// A member that cannot be spared now cannot be later, when there are fewer.
				k.restore(worst.member)
			}
		}
		ends.removeFirst()
	}
	for _, pair := range s.links {
		if k.in[pair[0]] && k.in[pair[1]] {
			left++
		}
	}
	return left, true
}

// end is a member that has a broken link and is not known to be needed.
type end struct{ member, broken int }

// ends is a heap of ends, with the one that goes first at its top: members without a vote
// before others, then those with more broken links, then the younger.
type ends struct {
	kept *kept
	list []end
}

// before tells whether one end goes before another.
func (e *ends) before(a, b end) bool {
	if va := e.kept.rule.votes[a.member]; va != e.kept.rule.votes[b.member] {
		return !va
	}
	if a.broken != b.broken {
		return a.broken > b.broken
	}
	members := e.kept.view.Members
	return members[b.member].OlderThan(members[a.member])
}

// sink moves the end at place i down to where it belongs.
func (e *ends) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(e.list); child++ {
			if e.before(e.list[child], e.list[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		e.list[i], e.list[least] = e.list[least], e.list[i]
		i = least
	}
}

func (e *ends) removeFirst() {
	last := len(e.list) - 1
	e.list[0] = e.list[last]
	e.list = e.list[:last]
	e.sink(0)
}
