// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/gossip"
)

// KeepOldestName is the name of [KeepOldest] in a configuration.
const KeepOldestName = "keep-oldest"

// KeepOldest keeps the side that has the oldest member, which may be a minority, and downs
// all other members. Only members with the role count, here and below.
//
//   - The oldest is the one that has been up for longest and is not leaving. A side needs,
//     besides, all members older than it that are leaving, or down and not removed yet:
//     to another side one of these may still be the oldest.
//   - With DownIfAlone, a side that has the oldest and no other member that is up or
//     leaving is not kept, unless there is at most one more member; and a side of two
//     or more that lacks one member alone, the oldest, is kept. So the oldest does not
//     take the whole cluster with it when it dies. For both questions members in every
//     state are looked at, since another side may know more or less about them.
//   - Of each broken link within the side one end is downed, in the order of
//     [KeepMajority], if the rest may still go on.
//
// Two sides never both go on: both would have the oldest, or one of them would be the
// oldest alone in the eyes of the other, and gives up. See DESIGN.md.
type KeepOldest struct {
	// DownIfAlone says that the oldest member gives up when it is alone.
	DownIfAlone bool
	// Role is the role of the members that count; empty: all members count.
	Role string
}

var _ Immediate = KeepOldest{}

// Class says that the provider is pure. It may keep a minority.
func (KeepOldest) Class() Class { return Class{Pure: true} }

// Decide is [KeepOldest.DecideNow]; it never blocks.
func (o KeepOldest) Decide(_ context.Context, v View) (Decision, error) { return o.DecideNow(v) }

// DecideNow decides for the view; the error is that of [View.Validate]. It takes as long
// as that of [KeepMajority].
func (o KeepOldest) DecideNow(v View) (Decision, error) {
	return v.decideBy(KeepOldestName, func() *rule { return o.rule(&v) })
}

// rule returns the rule of the strategy for a view.
func (o KeepOldest) rule(v *View) *rule {
	r := &rule{votes: make([]bool, len(v.Members)), need: "right to go on"}
	oldest := o.oldest(v)
	counted := r.count(v, func(i int) bool {
		r.votes[i] = v.Members[i].HasRole(o.Role) && votes(v.Members[i])
		return r.votes[i]
	})
	needed := r.count(v, func(i int) bool { return oldest >= 0 && o.needs(v, i, oldest) })
	all := r.count(v, func(i int) bool { return v.Members[i].HasRole(o.Role) })
	r.conditions = append(r.conditions, func(k *kept, _ int) bool {
		several := k.counts[counted] > 1
		others := r.ballots[all].size - k.counts[all]
		has := oldest >= 0 && k.counts[needed] == r.ballots[needed].size
		if !o.DownIfAlone {
			return has
		}
		return has && (several || others <= 1) || others == 1 && several
	})
	r.tally = func(set []bool) string { return o.tally(v, r, set, oldest, needed) }
	return r
}

// oldest returns the oldest member that is up and not leaving, or -1.
func (o KeepOldest) oldest(v *View) int {
	oldest := -1
	for i, m := range v.Members {
		if m.HasRole(o.Role) && m.Status.IsUp() && (oldest < 0 || m.OlderThan(v.Members[oldest])) {
			oldest = i
		}
	}
	return oldest
}

// needs reports whether a side needs a member: the oldest, or one older that is leaving,
// or down.
func (o KeepOldest) needs(v *View, i, oldest int) bool {
	m := v.Members[i]
	return i == oldest || m.HasRole(o.Role) && m.OlderThan(v.Members[oldest]) && (m.Status == gossip.Leaving || m.Status == gossip.Down)
}

// tally says in words whether a set of members has those who are needed, and how many
// members it has.
func (o KeepOldest) tally(v *View, r *rule, set []bool, oldest, needed int) string {
	count, total, others := 0, 0, 0
	var missing string
	for i, m := range v.Members {
		if r.votes[i] {
			total++
		}
		if r.votes[i] && set[i] {
			count++
		}
		if m.HasRole(o.Role) && !set[i] {
			others++
		}
		if r.ballots[needed].counts[i] && !set[i] && missing == "" {
			missing = m.Node.String()
		}
	}
	members := fmt.Sprintf("%d of %d%s members", count, total, named(o.Role))
	switch {
	case o.DownIfAlone && others == 1 && count > 1 && missing != "":
		return members + ", all but the oldest, " + missing + ", which is alone"
	case oldest < 0:
		return members + ", and no member is the oldest: each is leaving or not up"
	case missing != "":
		return members + " and not the oldest, or one that may be the oldest to others, " + missing
	case o.DownIfAlone && count < 2:
		return members + " and the oldest, " + v.Members[oldest].Node.String() + ", which is alone"
	default:
		return members + " and the oldest, " + v.Members[oldest].Node.String()
	}
}
