// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package downing

import (
	"context"
	"fmt"
	"strings"

	"github.com/quorate/quorate/gossip"
)

// ManualName is the name of [Manual] in a configuration.
const ManualName = "manual"

// Manual downs no member: it says in its reason what waits for an operator. It has no
// state; the zero value is ready for use. Since no side survives by its word, it is
// majority-only, and a side without a majority stops its work as with [KeepMajority].
type Manual struct{}

var _ Immediate = Manual{}

// Class says that the provider is pure and majority-only.
func (Manual) Class() Class { return Class{Pure: true, MajorityOnly: true} }

// Decide is [Manual.DecideNow]; it never blocks.
func (m Manual) Decide(_ context.Context, v View) (Decision, error) { return m.DecideNow(v) }

// DecideNow returns the verdict None, with the members that wait for a command; the error
// is that of [View.Validate].
func (Manual) DecideNow(v View) (Decision, error) {
	if err := v.Validate(); err != nil {
		return Decision{}, err
	}
	side := v.Side()
	lost, indirect := side.Lost(), side.IndirectlyConnected()
	if len(lost) == 0 && len(indirect) == 0 {
		return Decision{Reason: "manual: everybody is reachable"}, nil
	}
	return Decision{Reason: fmt.Sprintf("manual: waiting for a command to down members: %d are lost%s, %d have broken links within this side%s",
		len(lost), listed(lost), len(indirect), listed(indirect))}, nil
}

// listedBytes is how long a list of members in a reason may get.
const listedBytes = 350

// listed lists members for a reason, as many as find room.
func listed(members []*gossip.Member) string {
	var names []string
	length := 0
	for _, m := range members {
		name := m.Node.String()
		if length += len(name) + len(", "); length > listedBytes {
			break
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	text := " (" + strings.Join(names, ", ")
	if more := len(members) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ")"
}
