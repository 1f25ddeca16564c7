// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
)

// The part of lease-majority that decides: which side asks for the lease first, and what
// follows from the answer. Whoever drives it takes the lease: LeaseMajority.Plan says
// whether and when to ask, LeasePlan.After what the answer means.

// LeaseMajorityName is the name of a strategy that decides by [LeaseMajority].
const LeaseMajorityName = "lease-majority"

// LeaseMajority keeps the side that gets a lease, which a store outside of the cluster
// gives to one holder at a time. The side with the majority asks at once, any other
// [LeaseMajority.MinorityDelay] later, so that the majority goes on where there is one,
// and somebody goes on where there is none.
//
// It is a pure function of the view and the answer, and no [Provider] itself: a provider
// that asks the store is neither pure nor majority-only.
type LeaseMajority struct {
	// MinorityDelay is how long a side without a majority waits before it asks. Longer
	// than sides differ in the moment of their decisions, and shorter than a provider
	// may take for an answer.
	MinorityDelay time.Duration
	// Role is the role of the members that count for the majority; empty: all members.
	Role string
}

// LeaseAnswer is what asking for the lease led to.
type LeaseAnswer uint8

// The answers. The zero value is Unknown.
const (
	// LeaseUnknown: the store did not answer in time, or its answer makes no sense. This
	// side may hold the lease, or another may.
	LeaseUnknown LeaseAnswer = iota
	// LeaseGranted: this side holds the lease.
	LeaseGranted
	// LeaseRefused: another side holds the lease.
	LeaseRefused
)

// LeasePlan is what a side has to do.
type LeasePlan struct {
	// Ask says that the lease must be asked for. If it is false, there is nothing to
	// decide, and the answer is the same whatever the lease: [LeasePlan.Now].
	Ask bool
	// Delay is how long to wait before asking. If this side holds the lease already it
	// need not wait.
	Delay time.Duration
	// Now is the decision if the lease must not be asked for.
	Now Decision

	granted, refused Decision
}

// After returns the decision that follows from an answer. What follows from an unknown
// answer is None: the side neither goes on nor gives up, stops its work meanwhile, and
// asks again; a side that got no answer for too long downs itself.
func (p *LeasePlan) After(a LeaseAnswer) Decision {
	switch {
	case !p.Ask:
		return p.Now
	case a == LeaseGranted:
		return p.granted
	case a == LeaseRefused:
		return p.refused
	default:
		return Decision{Reason: LeaseMajorityName + ": the lease store gave no answer that can be relied on; waiting for one"}
	}
}

// Plan returns the plan of the side of a view; the error is that of [View.Validate]. The
// plans of all nodes with equal views are equal, but for who they are asked by.
//
// Of each broken link within the side one end is downed if the lease is granted, in the
// order of [KeepMajority], until one member is left.
func (l LeaseMajority) Plan(v View) (LeasePlan, error) {
	prefers, preference := false, ""
	granted, err := v.decideBy(LeaseMajorityName, func() *rule {
		prefers, preference = l.prefers(&v)
		r := &rule{votes: make([]bool, len(v.Members)), need: "member that is up"}
		n := r.count(&v, func(i int) bool {
			r.votes[i] = votes(v.Members[i]) && v.Members[i].HasRole(l.Role)
			return votes(v.Members[i])
		})
		r.conditions = append(r.conditions, func(k *kept, _ int) bool { return k.counts[n] > 0 })
		r.tally = func([]bool) string { return "the lease, " + preference }
		return r
	})
	switch {
	case err != nil:
		return LeasePlan{}, err
	case granted.Verdict != KeepSide:
		return LeasePlan{Now: granted}, nil
	}
	p := LeasePlan{Ask: true, granted: granted, Delay: l.MinorityDelay}
	if prefers {
		p.Delay = 0
	}
	p.refused = v.downSide(v.Side(), LeaseMajorityName+": another side has the lease; this side has "+preference)
	return p, nil
}

// prefers reports whether the side has more members than are lost, or as many with the
// lowest among them, and says so in words.
func (l LeaseMajority) prefers(v *View) (prefers bool, words string) {
	side := v.Side()
	var all, here []gossip.NodeID
	for i, m := range v.Members {
		if !votes(m) || !m.HasRole(l.Role) {
			continue
		}
		all = append(all, m.Node)
		if side.on[i] {
			here = append(here, m.Node)
		}
	}
	prefers = gossip.Wins(all, func(n gossip.NodeID) bool {
		_, found := slices.BinarySearchFunc(here, n, gossip.NodeID.Compare)
		return found
	})
	words = fmt.Sprintf("%d of %d%s members", len(here), len(all), named(l.Role))
	if prefers {
		return true, words + ", so it asks first"
	}
	return false, words + fmt.Sprintf(", so it asks after %v", l.MinorityDelay)
}
