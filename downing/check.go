// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"slices"

	"github.com/quorate/quorate/gossip"
)

// MaxReason is the greatest length of a reason in bytes. It bounds how much a provider
// can write into the decision log at a time.
const MaxReason = 1024

// Check returns nil if the decision keeps the contract for the view, otherwise a
// [*ContractError] that names the first fault:
//
//	C1  every node named is a member that can be downed, sorted, each once;
//	C2  the nodes named are those that the verdict demands, see the verdicts;
//	C3  the reason is not longer than MaxReason;
//	C4  class MajorityOnly: with KeepSide, the members of the side that are not
//	    named have a majority in every set of the base.
//
// It trusts nothing in d, and may be called from any goroutine. A caller of a provider
// calls it before it uses the decision, wherever the provider lives.
func Check(v View, class Class, d Decision) error {
	if err := v.Validate(); err != nil {
		return err
	}
	if len(d.Reason) > MaxReason {
		return broken(gossip.NodeID{}, "reason has %d bytes, the limit is %d", len(d.Reason), MaxReason)
	}
	named, err := v.named(d.Down)
	if err != nil {
		return err
	}
	side := v.Side()
	switch d.Verdict {
	case None:
		if len(d.Down) > 0 {
			return broken(d.Down[0], "is named with the verdict none")
		}
		return nil
	case KeepSide:
		return v.checkKeep(side, class, named)
	case DownSide:
		return v.checkNamed(named, func(i int) bool { return side.on[i] })
	case DownAll:
		return v.checkNamed(named, func(int) bool { return true })
	default:
		return broken(gossip.NodeID{}, "verdict %d does not exist", d.Verdict)
	}
}

// named checks C1 and returns, for each member, whether it is named.
func (v *View) named(down []gossip.NodeID) ([]bool, error) {
	named := make([]bool, len(v.Members))
	for n, id := range down {
		i := v.indexOf(id)
		switch {
		case i < 0:
			return nil, broken(id, "is named, but is no member")
		case !CanBeDowned(v.Members[i]):
			return nil, broken(id, "is named, but is %s", v.Members[i].Status)
		case n > 0 && down[n-1].Compare(id) >= 0:
			return nil, broken(id, "is named twice or out of order")
		}
		named[i] = true
	}
	return named, nil
}

// checkKeep checks that at least one member stays, and C4.
func (v *View) checkKeep(side *Side, class Class, named []bool) error {
	keep := slices.Clone(side.on)
	stays := false
	for i := range keep {
		keep[i] = keep[i] && !named[i]
		stays = stays || keep[i] && CanBeDowned(v.Members[i])
	}
	switch {
	case !stays:
		return broken(gossip.NodeID{}, "the side is kept, but all of it is named")
	case class.MajorityOnly && !v.wins(keep):
		return broken(gossip.NodeID{}, "a majority-only provider keeps a side without a majority: %s", v.tally(keep))
	}
	return nil
}

// checkNamed checks that the named members are exactly those that can be downed and
// for which want returns true.
func (v *View) checkNamed(named []bool, want func(i int) bool) error {
	for i, m := range v.Members {
		if !CanBeDowned(m) || named[i] == want(i) {
			continue
		}
		if named[i] {
			return broken(m.Node, "is named, but is not on the side that gives up")
		}
		return broken(m.Node, "gives up, but is not named")
	}
	return nil
}
