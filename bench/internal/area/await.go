// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

const (
	pollInterval = 10 * time.Millisecond
	awaitLimit   = 2 * time.Minute // For all nodes to know all others, and for a crash to be known.
)

// until waits until a condition holds, and returns the time since began.
func until(ctx context.Context, began time.Time, nodes []*membership.Node, what string, holds func() bool) (time.Duration, error) {
	for !holds() {
		if time.Since(began) > awaitLimit {
			return 0, fmt.Errorf("bench: after %v it is not so that %s: %s", awaitLimit, what, standOf(nodes))
		}
		for _, n := range nodes {
			if err := n.Err(); err != nil {
				return 0, fmt.Errorf("bench: before %s, %v ended: %w", what, n.Self(), err)
			}
		}
		if err := rig.Pause(ctx, pollInterval); err != nil {
			return 0, err
		}
	}
	return time.Since(began), nil
}

// standOf says for people how far nodes have come: how many nodes see how many members of
// each status.
func standOf(nodes []*membership.Node) string {
	views := map[string]int{}
	for _, n := range nodes {
		statuses := map[gossip.Status]int{}
		for _, m := range n.View().State.Members() {
			statuses[m.Status]++
		}
		views[fmt.Sprint(statuses)]++
	}
	return fmt.Sprint(views)
}
