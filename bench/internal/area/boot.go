// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/membership"
)

// measureBoot starts many real nodes in this process in one moment, over real
// sockets, and says how long it takes until all are up everywhere and what that
// cost: processor time, messages by kind, bytes, connections, refusals.
func measureBoot(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	addresses, err := addressesFor(ctx, s)
	if err != nil {
		return figure.Outcome{}, err
	}
	var seen kinds
	used, began := rig.CPUTime(), time.Now()
	nodes, err := startNodes(ctx, addresses, membership.WithTransport(seen.transport))
	defer closeNodes(nodes)
	if err != nil {
		return figure.Outcome{}, err
	}
	up, err := until(ctx, began, nodes, "all members are up everywhere", func() bool { return allUp(nodes) })
	if err != nil {
		return figure.Outcome{}, err
	}
	each := float64(len(nodes))
	values := map[string]float64{"up": up.Seconds(), "cpu": rig.Microseconds(rig.CPUTime()-used) / 1000 / each}
	for _, n := range nodes {
		stats := n.Stats()
		values["messages"] += float64(stats.Transport.Sent) / each
		values["bytes"] += float64(stats.Transport.BytesSent) / 1000 / each
		values["connects"] += float64(stats.Transport.Connects) / each
		for _, refused := range stats.Transport.RefusedInbound {
			values["refused"] += float64(refused)
		}
	}
	return figure.Outcome{Values: values, CPU: 1000 * values["cpu"], Note: fmt.Sprintf("%d nodes: %s", len(nodes), seen.String())}, nil
}
