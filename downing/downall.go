// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"context"
	"fmt"
)

// DownAllName is the name of [All] in a configuration.
const DownAllName = "down-all"

// All downs every member as soon as one is unreachable, for clusters that would rather
// start anew than decide wrongly. It has no state; the zero value is ready for use.
// Since no member survives, it is majority-only.
type All struct{}

var _ Immediate = All{}

// Class says that the provider is pure and majority-only.
func (All) Class() Class { return Class{Pure: true, MajorityOnly: true} }

// Decide is [All.DecideNow]; it never blocks.
func (a All) Decide(_ context.Context, v View) (Decision, error) { return a.DecideNow(v) }

// DecideNow decides for the view; the error is that of [View.Validate].
func (All) DecideNow(v View) (Decision, error) {
	if err := v.Validate(); err != nil {
		return Decision{}, err
	}
	side := v.Side()
	lost, broken := len(side.Lost()), len(side.links)
	if lost == 0 && broken == 0 {
		return Decision{Reason: "down-all: everybody is reachable"}, nil
	}
	return Decision{
		Verdict: DownAll,
		Down:    v.downable(func(int) bool { return true }),
		Reason:  fmt.Sprintf("down-all: %d members are lost, %d links within this side are broken", lost, broken),
	}, nil
}
