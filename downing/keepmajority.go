// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// Keep-majority: its class, its rule (rule.go decides by it), and below the questions
// about votes, which other strategies and Check share.

// KeepMajorityName is the name of [KeepMajority] in a configuration.
const KeepMajorityName = "keep-majority"

// KeepMajority keeps the side that holds a majority of the voters in every set of the
// base, and downs all other members. It has no state; the zero value is ready for use.
//
// Members that are up or leaving vote, and members that exit if they have seen the view:
// where it counts the voters of before their exit as well.
//
//  1. No member is lost and all links of the side work: None.
//  2. The side has no majority: DownSide. Members that are joining or weakly up
//     go with it.
//  3. Otherwise the side is kept, and lost members are downed. Of each broken link
//     within the side one end is downed as well, one end after the other: members
//     that do not vote before voters, then the member with more broken links to
//     those still there, then the younger; each only if some remaining member
//     still reaches a majority of the voters.
//  4. A link of which neither end can be spared is kept for now. When the downed
//     members are no longer voters, a majority is smaller, and the link is decided
//     on again. If there is no member to down until then: None.
//  5. If no member of the side reaches a majority by itself: DownSide, since no
//     member could lead or work.
type KeepMajority struct{}

var _ Immediate = KeepMajority{}

// Class says that the provider is pure and majority-only.
func (KeepMajority) Class() Class { return Class{Pure: true, MajorityOnly: true} }

// Decide is [KeepMajority.DecideNow]; it never blocks.
func (k KeepMajority) Decide(_ context.Context, v View) (Decision, error) { return k.DecideNow(v) }

// DecideNow decides for the view; the error is that of [View.Validate]. With n
// members, r complaints and k members that have a broken link it takes O((n + r) log
// (n + r) + k n).
func (KeepMajority) DecideNow(v View) (Decision, error) {
	return v.decideBy(KeepMajorityName, func() *rule {
		r := &rule{votes: make([]bool, len(v.Members)), tally: v.tally, need: "majority"}
		r.needMajority(&v)
		return r
	})
}

// wins reports whether the members in set win in every set of voters of the base.
func (v *View) wins(set []bool) bool {
	return v.Base.Wins(v.votersIn(set))
}

// votersIn returns a function that reports whether a voter is in the set and its vote
// counts. The function is fastest when it is called for voters in their order.
func (v *View) votersIn(set []bool) func(gossip.NodeID) bool {
	at, counted := finder{view: v}, v.counted()
	return func(id gossip.NodeID) bool {
		i := at.index(id)
		return i >= 0 && set[i] && counted[i]
	}
}

// downable returns the sorted ids of the members that can be downed and for whose
// index choose returns true.
func (v *View) downable(choose func(i int) bool) []gossip.NodeID {
	var ids []gossip.NodeID
	for i, m := range v.Members {
		if CanBeDowned(m) && choose(i) {
			ids = append(ids, m.Node)
		}
	}
	return ids
}

// downSide returns the decision to give up the side.
func (v *View) downSide(s *Side, reason string) Decision {
	return Decision{Verdict: DownSide, Down: v.downable(func(i int) bool { return s.on[i] }), Reason: reason}
}

// hasVoters reports whether a set of the base has a voter.
func hasVoters(b gossip.Base) bool {
	return slices.ContainsFunc(b, func(voters []gossip.NodeID) bool { return len(voters) > 0 })
}

// lowestOf returns the lowest of the voters, whose vote decides between halves.
func lowestOf(voters []gossip.NodeID) gossip.NodeID {
	return slices.MinFunc(voters, gossip.NodeID.Compare)
}

// tally describes how many votes the set has in each set of voters and, for exactly
// half, whether the lowest node id is among them.
func (v *View) tally(set []bool) string {
	var parts []string
	in := v.votersIn(set)
	for n, voters := range v.Base {
		if len(voters) == 0 {
			continue
		}
		count := 0
		for _, id := range voters {
			if in(id) {
				count++
			}
		}
		part := fmt.Sprintf("%d of %d voters", count, len(voters))
		if n > 0 {
			part = fmt.Sprintf("%d of %d voters of before the change under way", count, len(voters))
		}
		if 2*count == len(voters) {
			lowest := lowestOf(voters)
			with := "without"
			if in(lowest) {
				with = "with"
			}
			part += ", exactly half, " + with + " the lowest, " + lowest.String()
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; and ")
}
