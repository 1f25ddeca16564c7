// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import "math"

// climber seeks the share of the window with the highest hit rate by climbing: it goes on in a
// direction while the rate rises and turns when it falls, with steps that become smaller, and large
// again when the rate has changed a lot. Einziger, Eytan, Friedman and Manes, "Adaptive software cache
// management", 2018.
//
// Two things are not theirs. The first half of a sample is not looked at: a window that has just become smaller
// loses for a moment whom it had, which says nothing about the smaller share, and with such samples the
// window of a loop grew and grew. And a rise within what chance does to a sample does not count for a larger
// window, nor a fall against a smaller one: without that the share of a steady use wandered by chance.
type climber struct {
	share, least float64
	step         float64 // What is added next; below 0 the window shrinks.
	rate         float64 // The hit rate of the last sample; below 0 before the first.
	hits, uses   int     // Of the present sample.
}

const (
	climbSample  = 10     // A sample has ten uses for each entity that there may be,
	climbSettle  = 5      // of which so many are not looked at: they say more about the change than about the share.
	climbStep    = 0.0625 // The first step, a part of the limit.
	climbDecay   = 0.98   // What is left of a step the next time.
	climbRestart = 0.05   // The change of the hit rate with which the steps begin anew.
	maxWindow    = 0.8    // The largest window.
)

func newClimber(share float64) *climber {
	return &climber{share: share, least: share, step: climbStep, rate: -1}
}

// begin begins a sample that is compared with none before: with another limit the hit rate is another, whatever
// the share.
func (c *climber) begin() { c.hits, c.uses, c.rate = 0, 0, -1 }

// observe counts a use, and reports whether the share has changed.
func (c *climber) observe(hit bool, limit int) bool {
	c.uses++
	if hit && c.uses > climbSettle*limit {
		c.hits++
	}
	if c.uses < climbSample*limit {
		return false
	}
	rate := float64(c.hits) / float64(c.uses-climbSettle*limit)
	change := rate - c.rate
	first := c.rate < 0
	c.hits, c.uses, c.rate = 0, 0, rate
	if first {
		return false
	}
	// The standard error of a rate that so many uses have.
	noise := math.Sqrt(rate * (1 - rate) / float64(climbSample-climbSettle) / float64(limit))
	if c.step > 0 && change < noise || c.step < 0 && change < -noise {
		c.step = -c.step
	}
	if change = max(change, -change); change >= climbRestart {
		c.step = climbStep * sign(c.step)
	}
	before := c.share
	c.share = min(max(c.share+c.step, c.least), max(maxWindow, c.least))
	c.step *= climbDecay
	return c.share != before
}

func sign(x float64) float64 {
	if x < 0 {
		return -1
	}
	return 1
}
