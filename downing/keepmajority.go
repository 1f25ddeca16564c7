// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// KeepMajorityName is the name of [KeepMajority] in a configuration.
const KeepMajorityName = "keep-majority"

// KeepMajority keeps those who hold a majority of the voters in every set of
// the base, and downs everybody else. It has no state; the zero value is ready
// for use.
//
//  1. Nobody is lost and all links of the side work: None.
//  2. The side has no majority: DownSide. Members that are joining or weakly up
//     go with it.
//  3. The members that can reach everybody on the side have a majority: they
//     are kept, all others are downed.
//  4. Otherwise those who cannot are added back where they fit: voters before
//     others, those with the fewest broken links first, then the lowest node
//     id, each if it has no broken link to anyone who is kept.
//  5. If that is no majority either: DownSide.
type KeepMajority struct{}

var _ Immediate = KeepMajority{}

// Class says that the provider is pure and majority-only.
func (KeepMajority) Class() Class { return Class{Pure: true, MajorityOnly: true} }

// Decide is [KeepMajority.DecideNow]; it never blocks.
func (k KeepMajority) Decide(_ context.Context, v View) (Decision, error) { return k.DecideNow(v) }

// DecideNow decides for the view; the error is that of [View.Validate]. With n
// members and r complaints it takes O((n + r) log (n + r)).
func (KeepMajority) DecideNow(v View) (Decision, error) {
	if err := v.Validate(); err != nil {
		return Decision{}, err
	}
	side := v.Side()
	lost := len(side.Lost())
	if lost == 0 && len(side.links) == 0 {
		return Decision{Reason: "keep-majority: everybody is reachable"}, nil
	}
	if !hasVoters(v.Base) {
		return Decision{Reason: "keep-majority: there are no voters yet, so no side can win"}, nil
	}
	keep := slices.Clone(side.on)
	if !v.wins(keep) {
		return v.downSide(side, "keep-majority: this side has no majority: "+v.tally(keep)), nil
	}
	connected := "this side has"
	if len(side.links) > 0 {
		keep, connected = side.fullyConnected(), "the members of this side that reach all others of it have"
		if !v.wins(keep) {
			side.addBack(keep)
			connected = "as many of this side as reach each other have"
			if !v.wins(keep) {
				return v.downSide(side, "keep-majority: too many links within this side are broken: "+connected+" "+v.tally(keep)), nil
			}
		}
	}
	down := v.downable(func(i int) bool { return !keep[i] })
	reason := fmt.Sprintf("keep-majority: %s %s; downed are %d lost and %d indirectly connected",
		connected, v.tally(keep), lost, len(down)-lost)
	return Decision{Verdict: KeepSide, Down: down, Reason: reason}, nil
}

// fullyConnected returns the members of the side without a broken link in it.
func (s *Side) fullyConnected() []bool {
	keep := s.indirect()
	for i := range keep {
		keep[i] = s.on[i] && !keep[i]
	}
	return keep
}

// addBack adds to keep those members of the side that have no broken link to
// anyone in it, one after the other. That is not always the greatest possible
// set, which would take exponential time to find, but the same on every node.
func (s *Side) addBack(keep []bool) {
	broken := make(map[int][]int)
	for _, l := range s.links {
		broken[l[0]] = append(broken[l[0]], l[1])
		broken[l[1]] = append(broken[l[1]], l[0])
	}
	var order []int
	for i := range s.on {
		if len(broken[i]) > 0 {
			order = append(order, i)
		}
	}
	// The sort is stable and the indices are in the order of node ids.
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.rank(a), s.rank(b)), cmp.Compare(len(broken[a]), len(broken[b])))
	})
	for _, i := range order {
		if !slices.ContainsFunc(broken[i], func(j int) bool { return keep[j] }) {
			keep[i] = true
		}
	}
}

// rank is 0 for members whose vote may count and 1 for others.
func (s *Side) rank(i int) int {
	if votes(s.view.Members[i]) {
		return 0
	}
	return 1
}

// wins reports whether the members for which set holds true win in every set of
// the base.
func (v *View) wins(set []bool) bool {
	return v.Base.Wins(v.votersIn(set))
}

// votersIn returns what reports whether a voter is in the set and its vote counts. It
// is fastest for voters in their order.
func (v *View) votersIn(set []bool) func(gossip.NodeID) bool {
	at := finder{view: v}
	return func(id gossip.NodeID) bool {
		i := at.index(id)
		return i >= 0 && set[i] && votes(v.Members[i])
	}
}

// downable returns the ids of the members that can be downed and for which
// choose, which is given their index, returns true; sorted.
func (v *View) downable(choose func(i int) bool) []gossip.NodeID {
	var ids []gossip.NodeID
	for i, m := range v.Members {
		if CanBeDowned(m) && choose(i) {
			ids = append(ids, m.Node)
		}
	}
	return ids
}

// downSide gives the side up.
func (v *View) downSide(s *Side, reason string) Decision {
	return Decision{Verdict: DownSide, Down: v.downable(func(i int) bool { return s.on[i] }), Reason: reason}
}

// hasVoters reports whether a set of the base has a voter.
func hasVoters(b gossip.Base) bool {
	return slices.ContainsFunc(b, func(voters []gossip.NodeID) bool { return len(voters) > 0 })
}

// tally tells how many votes the set has in each set of voters, and what the
// rule of the lowest node id made of exactly half.
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
			lowest := slices.MinFunc(voters, gossip.NodeID.Compare)
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
