// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package counter counts up to a bound.
package counter

// Counter counts up to a bound.
type Counter struct{ n, most int }

// Add counts by one, unless the bound is reached.
func (c *Counter) Add() bool {
	if c.n >= c.most {
		return false
	}
	c.n++
	return true
}
