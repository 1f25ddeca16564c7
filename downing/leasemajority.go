// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/downing/lease"
	"github.com/quorate/quorate/gossip"
)

// The section of the configuration, and the part of lease-majority that decides: which side
// asks for the lease first, and what follows from the answer. Whoever drives it takes the
// lease: LeaseMajority.Plan says whether and when to ask, LeasePlan.After what the answer
// means. Package downing/lease/majority does that.

// LeaseMajorityName is the name of a strategy that decides by [LeaseMajority].
const LeaseMajorityName = "lease-majority"

// LeaseMajorityConfig configures the strategy lease-majority.
type LeaseMajorityConfig struct {
	// Store is the kind of the store that gives the lease: "file" for the nodes of one
	// machine, "etcd" or "kubernetes", or the name of another one that the program adds. It
	// must be set if the strategy is lease-majority. The settings of the store are the
	// section "lease-NAME" of the file.
	Store string `koanf:"store" known:"file|etcd|kubernetes"`
	// Lease is the name of the lease, which no other cluster that has the same store uses. It
	// must be set: at most 63 letters in lower case, digits and hyphens.
	Lease string `koanf:"lease-name"`
	// Role is the role of the members that count for the majority; empty: all members
	// count.
	Role string `koanf:"role"`
	// MinorityDelay is how long a side without a majority waits before it asks for the
	// lease, from 0 to 3 s. It should be longer than sides differ in the moment of their
	// decisions.
	MinorityDelay time.Duration `koanf:"minority-delay" range:"0s..3s"`
	// ReleaseAfter is how long the lease is kept after the lost members have been removed, and
	// how long the store keeps it for a holder that does not answer: from 30 s to 5
	// minutes, in whole seconds. A side that has not got the lease within some three quarters of
	// that after it lost the others gives up.
	ReleaseAfter time.Duration `koanf:"release-after" range:"30s..5m"`
}

// Validate returns all faults of the section of a node that uses the strategy, joined, each a
// [field.Error]. Which stores there are is not known here.
func (c LeaseMajorityConfig) Validate() error { return c.validate(LeaseMajorityName) }

// validate does not ask for what must be set if another strategy is used.
func (c LeaseMajorityConfig) validate(strategy string) error {
	var faults field.Faults
	if strategy == LeaseMajorityName {
		faults.Refuse(c.Store == "", "store", "must be set for %s: file, etcd or kubernetes", LeaseMajorityName)
		faults.Add(c.checkName())
	}
	faults.Add(field.Ranges(c))
	faults.Relate(c.ReleaseAfter%time.Second != 0, "release-after", "release-after", "%v is not in whole seconds", c.ReleaseAfter)
	return faults.Err()
}

// checkName refuses a name that no store takes.
func (c LeaseMajorityConfig) checkName() error {
	if c.Lease == "" {
		return field.Errorf("lease-name", "must be set for %s: the same on all nodes, and another one for each cluster, such as bank-downing", LeaseMajorityName)
	}
	return lease.CheckName("lease-name", c.Lease)
}

// Parameters returns the canonical text of the section: nodes that differ in it could be
// given two leases, or the same one at the same time.
func (c LeaseMajorityConfig) Parameters() string {
	return fmt.Sprintf("store=%q lease-name=%q role=%q minority-delay=%v release-after=%v", c.Store, c.Lease, c.Role, c.MinorityDelay, c.ReleaseAfter)
}

// Holder is a [Provider] that keeps a side by the right to be the only one. It keeps that
// right for a while, and then gives it back. So whoever asks must have heard the others
// not long before: a side that asks late could get the right when the side that had it has
// gone on and given it back.
type Holder interface {
	Provider

	// Keeps returns for how long after the beginning of a question by which a side was kept
	// no other side is kept, whatever becomes of who asked.
	Keeps() time.Duration

	// Settled says that the members that were lost have been removed, or have come back. It
	// does not block.
	Settled()
}

// HeardWithin returns how old the news of the other voters may be by which a side is kept, for
// the time that a [Holder] keeps and a limit on the time from the beginning of a question to
// the use of its answer: nine tenths of what is kept, less the limit.
//
// Let side A be kept by a question of the node a, which began at s. A member b that A has
// lost was last answered by a before a heard of its own decision, so at s and the limit at
// the latest, and counts from there or from before. If b's side were kept too, it would
// have been given the right after A's was given back, which is s and 91.5 % of the time kept
// at the earliest, by clocks that run at rates within 1 %; and until then b's news is too
// old.
func HeardWithin(keeps, limit time.Duration) time.Duration { return keeps*9/10 - limit }

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
