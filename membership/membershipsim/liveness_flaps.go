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

// flapWindow and flapsMost say when a member flaps: it was marked so often by one node within that
// time, in which that node did not stand still.
const (
	flapWindow = time.Minute
	flapsMost  = 3
)

// said is a node, and another one of which it says something in its decisions.
type said struct{ by, of string }

// flapping checks that a record about a member that flaps stays for as long as a decision takes.
func (l *Liveness) flapping(n *simulation.Node, d machine.Decide) error {
	if d.Topic != "reachability" {
		return nil
	}
	now, by := l.world.Now(), n.ID().String()
	key := said{by, d.Subject}
	switch d.Verdict {
	case "paused":
		maps.DeleteFunc(l.marked, func(s said, _ []time.Duration) bool { return s.by == by })
	case "unreachable":
		old := func(at time.Duration) bool { return rateSlack(now-at) >= flapWindow }
		l.marked[key] = append(slices.DeleteFunc(l.marked[key], old), now)
	case "reachable":
		all := l.marked[key]
		if len(all) < flapsMost {
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
