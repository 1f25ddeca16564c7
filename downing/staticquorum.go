// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// StaticQuorumName is the name of [StaticQuorum] in a configuration.
const StaticQuorumName = "static-quorum"

// StaticQuorum keeps the side that has a fixed number of members, and downs all other
// members. Members that are up or leaving count, and of these only members with the
// role.
//
// Without a role the side needs a majority of the voters as well, as for [KeepMajority].
// So it is majority-only, and goes on in a cluster of whatever size: a quorum that is too
// small for the cluster decides nothing then, and the majority decides alone.
//
// With a role the voters are not asked, so that the side with the quorum goes on however
// few of all members it has. Two sides cannot both have a quorum that is more than half of
// the members with the role. If there are too many of these members for that, more than
// twice the quorum less one, the side gives up. Members that are up, leaving, exiting, and
// down but not removed yet are counted for this: another side may know less about them.
//
// Of each broken link within the side one end is downed, in the order of [KeepMajority],
// if some remaining member still reaches a quorum.
type StaticQuorum struct {
	// Quorum is the number of members that a side needs, at least 1.
	Quorum int
	// Role is the role of the members that count; empty: all members count.
	Role string
}

var _ Immediate = StaticQuorum{}

// Class says that the provider is pure, and majority-only if it has no role.
func (s StaticQuorum) Class() Class { return Class{Pure: true, MajorityOnly: s.Role == ""} }

// Decide is [StaticQuorum.DecideNow]; it never blocks.
func (s StaticQuorum) Decide(_ context.Context, v View) (Decision, error) { return s.DecideNow(v) }

// DecideNow decides for the view. The error is that of [View.Validate], or says that the
// quorum is below 1. It takes as long as that of [KeepMajority].
func (s StaticQuorum) DecideNow(v View) (Decision, error) {
	if s.Quorum < 1 {
		return Decision{}, broken(gossip.NodeID{}, "the quorum is %d, which is below 1", s.Quorum)
	}
	return v.decideBy(StaticQuorumName, func() *rule { return s.rule(&v) })
}

// rule returns the rule of the strategy for a view.
func (s StaticQuorum) rule(v *View) *rule {
	r := &rule{votes: make([]bool, len(v.Members)), need: "quorum"}
	total := 0
	n := r.count(v, func(i int) bool {
		m := v.Members[i]
		counts := m.HasRole(s.Role) && votes(m)
		r.votes[i] = counts
		if m.HasRole(s.Role) && m.Status >= gossip.Up {
			total++
		}
		return counts
	})
	r.conditions = append(r.conditions, func(k *kept, i int) bool { return k.count(n, i) >= s.Quorum })
	most := 2*s.Quorum - 1
	switch {
	case s.Role == "":
		r.needMajority(v)
	case total > most:
		r.conditions = append(r.conditions, func(*kept, int) bool { return false })
	}
	r.tally = func(set []bool) string {
		count := 0
		for i, in := range set {
			if in && r.ballots[n].counts[i] {
				count++
			}
		}
		text := fmt.Sprintf("%d of the %d%s members that a side needs", count, s.Quorum, named(s.Role))
		switch {
		case s.Role == "":
			text += ", and " + v.tally(set)
		case total > most:
			text += fmt.Sprintf(", which is too few to decide: there are %d, and two sides could have as many", total)
		}
		return text
	}
	return r
}

// named returns a role as a word before "members"; nothing for no role.
func named(role string) string {
	if role == "" {
		return ""
	}
	return " " + role
}
