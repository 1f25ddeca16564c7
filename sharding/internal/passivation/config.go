// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package passivation

import (
	"fmt"
	"slices"
	"strings"
)

// Policy says by which rule entities give way.
type Policy uint8

// The policies; the package comment says what they do.
const (
	WTinyLFU Policy = iota
	LeastRecentlyUsed
	MostRecentlyUsed
	Segmented
	LeastFrequentlyUsed
	Composite

	policies
)

var names = [policies]string{ //nolint:gochecknoglobals // A table.
	"w-tinylfu", "least-recently-used", "most-recently-used", "segmented", "least-frequently-used", "composite",
}

// Policies returns all policies.
func Policies() []Policy {
	all := make([]Policy, policies)
	for i := range all {
		all[i] = Policy(i)
	}
	return all
}

// String returns the name of the policy.
func (p Policy) String() string {
	if p >= policies {
		return fmt.Sprintf("policy %d", uint8(p))
	}
	return names[p]
}

// Parse returns the policy with a name.
func Parse(name string) (Policy, error) {
	if i := slices.Index(names[:], name); i >= 0 {
		return Policy(i), nil
	}
	return 0, fmt.Errorf("%q is not a policy: write one of %s", name, strings.Join(names[:], ", "))
}

// Config says how an [Order] decides.
type Config struct {
	// Limit is how many entities there may be before victims are named, at least 1.
	Limit int
	// Policy is the rule.
	Policy Policy
	// Main is the rule of the main part of [Composite], any but the two with a window.
	Main Policy
	// Protected is the share of the limit that [Segmented] protects, above 0 and below 1.
	Protected float64
	// Window is the share of the limit that is for what has just come, from 0 to 1: of
	// [Composite], and of [WTinyLFU] at first.
	Window float64
	// Aging has [LeastFrequentlyUsed] forget what was used often long ago.
	Aging bool
}

// settled returns the configuration with its preset filled in.
func (c Config) settled() Config {
	c.Limit = max(c.Limit, 1)
	if c.Policy == WTinyLFU {
		c.Main = Segmented
	}
	return c
}

// Windowed reports whether the policy has a window and a sketch.
func (p Policy) Windowed() bool { return p == WTinyLFU || p == Composite }

// share returns a share of a limit, at least 1.
func share(limit int, of float64) int { return max(1, int(float64(limit)*of+0.5)) }
