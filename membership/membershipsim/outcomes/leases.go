// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package outcomes

import (
	"fmt"
	"time"

	"github.com/quorate/quorate/membership/membershipsim"
)

// The cases that concern leases: each is a split into two sides, and a fault of the store, of
// the way there, or of the node that holds the lease.

func leaseFamilies() []family {
	return []family{
		{"store-down", "every split, and the lease store is down for a while", func(n int) []Case {
			return withStore(n, "the store is down", func(c *cluster) { c.leases.Set(membershipsim.LeaseFaults{Down: true}) })
		}},
		{"store-slow", "every split, and the lease store is slow for a while", func(n int) []Case {
			return withStore(n, "the store is slow", func(c *cluster) {
				c.leases.Set(membershipsim.LeaseFaults{Min: time.Second, Max: 3 * time.Second})
			})
		}},
		{"answers-lost", "every split, and answers of the lease store are lost", func(n int) []Case {
			return withStore(n, "no answer arrives", func(c *cluster) { c.leases.Set(membershipsim.LeaseFaults{LoseAnswer: 1}) })
		}},
		{"store-cut", "every split, and a side does not reach the lease store", storeCut},
		{"holder-frozen", "every split, and who holds the lease stands still", func(n int) []Case {
			return withHolder(n, "stands still", func(c *cluster, i int, d time.Duration) { c.world.Freeze(address(i), d) })
		}},
		{"holder-cut", "every split, and who holds the lease loses all others", func(n int) []Case {
			return withHolder(n, "is cut off", func(c *cluster, i int, d time.Duration) {
				c.leases.Cut(address(i), true)
				c.cut(1<<i, set(1)<<c.n-1&^(1<<i))
				c.cut(set(1)<<c.n-1&^(1<<i), 1<<i)
				c.world.After(d, func() { c.leases.Cut(address(i), false) })
			})
		}},
		{"side-frozen", "every split, and one side stands still for a minute", sideFrozen},
		{"split-again", "every split, and later the holder loses those of its side", splitsAgain},
	}
}

// asks is how long after a split a side has asked for the lease.
const asks = 12 * time.Second

// sideFrozen has a side stand still from before it notices the split, while it waits for a stable
// view, or about when it asks.
func sideFrozen(n int) []Case {
	const lasts = time.Minute
	var all []Case
	for _, p := range partitions(n, 2) {
		for way, side := range p {
			for _, after := range []time.Duration{time.Second, 6 * time.Second, 8300 * time.Millisecond} {
				all = append(all, Case{
					Text: fmt.Sprintf("%s, and %v later %s stands still for %v", text(p), after, side, lasts), sides: p, acts: after + lasts,
					strike: func(c *cluster) {
						c.split(p)
						c.world.After(after, func() {
							for _, a := range c.addresses(p[way]) {
								c.world.Freeze(a, lasts)
							}
						})
					},
				})
			}
		}
	}
	return all
}

// storeTimes are how long the store has a fault from the split on: until after the sides have
// asked for the first time, somewhat longer, and longer than a side waits.
func storeTimes() []time.Duration {
	return []time.Duration{12 * time.Second, 25 * time.Second, time.Hour}
}

func withStore(n int, what string, begin func(c *cluster)) []Case {
	var all []Case
	for _, p := range each(n) {
		for _, lasts := range storeTimes() {
			all = append(all, Case{
				Text: fmt.Sprintf("%s, and %s for %v", text(p), what, lasts), sides: p,
				strike: func(c *cluster) {
					c.split(p)
					begin(c)
					c.world.After(lasts, func() { c.leases.Set(membershipsim.LeaseFaults{}) })
				},
			})
		}
	}
	return all
}

func storeCut(n int) []Case {
	var all []Case
	for _, p := range partitions(n, 2) {
		for way, side := range p {
			for _, lasts := range storeTimes() {
				all = append(all, Case{
					Text: fmt.Sprintf("%s, and %s does not reach the store for %v", text(p), side, lasts), sides: p,
					strike: func(c *cluster) {
						c.split(p)
						for _, a := range c.addresses(p[way]) {
							c.leases.Cut(a, true)
							c.world.After(lasts, func() { c.leases.Cut(a, false) })
						}
					},
				})
			}
		}
	}
	return all
}

// holderMoments are how long after it got the lease something happens to its holder: with the
// answer on its way to the others, with the lost being removed, and while the lease rests.
func holderMoments() []time.Duration {
	return []time.Duration{time.Millisecond, 15 * time.Millisecond, 60 * time.Millisecond, 3 * time.Second, 12 * time.Second}
}

// holderTimes are how long it lasts: shorter than the lease and longer.
func holderTimes() []time.Duration { return []time.Duration{20 * time.Second, 55 * time.Second} }

func withHolder(n int, what string, begin func(c *cluster, i int, d time.Duration)) []Case {
	var all []Case
	for _, p := range partitions(n, 2) {
		for _, after := range holderMoments() {
			for _, lasts := range holderTimes() {
				all = append(all, Case{
					Text: fmt.Sprintf("%s, and %v after it got the lease the holder %s for %v", text(p), after, what, lasts), sides: p,
					acts: asks + after + lasts,
					strike: func(c *cluster) {
						c.split(p)
						c.whenHeld(func(i int) {
							c.world.After(after, func() { begin(c, i, lasts) })
						})
					},
				})
			}
		}
	}
	return all
}

// againMoments are how long after it got the lease the holder loses those with whom it went on.
func againMoments() []time.Duration {
	return []time.Duration{2 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute}
}

// splitsAgain has the holder not reach the store soon after it got the lease, or reach it
// throughout.
func splitsAgain(n int) []Case {
	var all []Case
	alone := make([]set, n)
	for i := range alone {
		alone[i] = 1 << i
	}
	for _, p := range partitions(n, 2) {
		for _, after := range againMoments() {
			for _, cut := range []bool{false, true} {
				what := "reaches the store"
				if cut {
					what = "does not reach the store"
				}
				all = append(all, Case{
					Text: fmt.Sprintf("%s, and %v after it got the lease the holder is alone and %s", text(p), after, what), sides: alone,
					acts: asks + after,
					strike: func(c *cluster) {
						c.split(p)
						c.whenHeld(func(i int) {
							c.world.After(min(after, time.Second), func() { c.leases.Cut(address(i), cut) })
							c.world.After(after, func() {
								c.cut(1<<i, set(1)<<c.n-1&^(1<<i))
								c.cut(set(1)<<c.n-1&^(1<<i), 1<<i)
							})
						})
					},
				})
			}
		}
	}
	return all
}

// heldLook is how often it is looked whether somebody holds the lease.
const heldLook = time.Millisecond

// whenHeld calls a function when a node has got the lease for the first time.
func (c *cluster) whenHeld(do func(i int)) {
	if holder, held := c.leases.Holds(); held {
		for i := range c.n {
			if address(i) == holder.Address {
				do(i)
			}
		}
		return
	}
	c.world.After(heldLook, func() { c.whenHeld(do) })
}
