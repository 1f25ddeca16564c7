// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membershipsim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/simulation"
)

// A member flaps when one node has marked it maxFlaps times within flapWindow, and that node itself
// did not stand still meanwhile.
const (
	flapWindow = time.Minute
	maxFlaps   = 3
)

// nodePair is a node, and the node that its decisions are about, both as texts.
type nodePair struct{ by, of string }

// checkFlapping checks that a record about a member that flaps stays for as long as a decision takes.
func (l *Liveness) checkFlapping(n *simulation.Node, d machine.Decide) error {
	if d.Topic != "reachability" {
		return nil
	}
	now, by := l.world.Now(), n.ID().String()
	key := nodePair{by, d.Subject}
	switch d.Verdict {
	case "paused":
		maps.DeleteFunc(l.marked, func(p nodePair, _ []time.Duration) bool { return p.by == by })
	case "unreachable":
		old := func(at time.Duration) bool { return rateSlack(now-at) >= flapWindow }
		l.marked[key] = append(slices.DeleteFunc(l.marked[key], old), now)
	case "reachable":
		all := l.marked[key]
		if len(all) < maxFlaps {
			return nil
		}
		l.Flaps++
		if after := now - all[len(all)-1]; rateSlack(after) < l.Bounds.Decide {
			return fmt.Errorf("flapping: %v marked %s %d times within %v, and took that back after %v, when nobody could have decided about it, which takes %v",
				n.ID(), d.Subject, len(all), flapWindow, after, l.Bounds.Decide)
		}
	}
	return nil
}
