// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine/meter"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// The whole table first ([table]), then each part of it, from the cluster to the driver.

// table declares the metrics of a node, each by a row that reads it. Durations are not in
// it: [newMetrics] declares their histograms.
func table() []meter.Row[*collected] {
	return slices.Concat(viewTable(), machineTable(), bootstrapTable(), messageTable(), driverTable())
}

// viewTable declares the metrics of the cluster, as the node sees it.
func viewTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.Gauge("quorate.membership.members", "{member}", "Members of the cluster by status, as this node knows them.",
			func(c *collected, observe meter.Observer) {
				var count [gossip.Removed]int64
				for _, member := range c.view.State.Members() {
					count[member.Status]++
				}
				for status := gossip.Joining; status < gossip.Removed; status++ {
					observe(count[status], attrStatus.String(status.String()))
				}
			}),
		meter.Gauge("quorate.membership.unreachable", "{member}", "Members that somebody who monitors them does not reach, as this node knows it.",
			func(c *collected, observe meter.Observer) { observe(int64(len(c.view.State.Unreachable()))) }),
		meter.Gauge("quorate.membership.converged", "{node}", "1 when everybody who counts has seen what this node knows, else 0.",
			func(c *collected, observe meter.Observer) { observe(truth(c.view.Converged)) }),
		meter.Gauge("quorate.membership.standing", "{node}", "1 while this node may host, else 0.",
			func(c *collected, observe meter.Observer) { observe(truth(c.held)) }),
		meter.Total("quorate.membership.standing.lost", "{loss}", "Times that this node lost its standing, except by leaving in order.",
			func(c *collected) uint64 { return c.lost }),
	}
}

// machineTable declares the metrics of the membership machine.
func machineTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.Counter("quorate.membership.marks", "{mark}", "Verdicts of this node about members that it monitors.",
			func(c *collected, observe meter.Observer) {
				observe(int64(c.Marks), attrVerdict.String("unreachable"))
				observe(int64(c.Clears), attrVerdict.String("reachable"))
			}),
		meter.FloatGauge("quorate.membership.phi", "{phi}", "Suspicion of each monitored node: the failure detector accuses it at the configured threshold. 0 with a detector that knows no degrees.",
			func(c *collected, observe func(float64, ...attribute.KeyValue)) {
				for _, s := range c.monitored {
					observe(s.Phi, attrPeer.String(s.Node.Address.String()))
				}
			}),
		meter.Counter("quorate.membership.gossip.rounds", "{round}", "Rounds of gossip that this node began.",
			func(c *collected, observe meter.Observer) {
				observe(int64(c.Rounds), attrRound.String("repair"))
				observe(int64(c.Pushes), attrRound.String("push"))
			}),
		meter.Counter("quorate.membership.refused", "{message}", "Messages, commands and nodes that membership refused.",
			func(c *collected, observe meter.Observer) {
				for r := protocol.RefusedNotReady; r <= protocol.RefusalLast; r++ {
					if n := c.refused[r]; n > 0 { // Most reasons never occur.
						observe(int64(n), meter.Fault.String(r.String()))
					}
				}
			}),
	}
}

// bootstrapTable declares what is measured of how contact points are looked up. There is
// nothing to show where seed nodes are listed.
func bootstrapTable() []meter.Row[*collected] {
	found := func(c *collected) *search { return &c.metrics.node.search }
	return []meter.Row[*collected]{
		meter.Counter("quorate.bootstrap.lookups", "{lookup}", "Lookups of contact points that have ended, by how. None where seed nodes are listed.",
			func(c *collected, observe meter.Observer) {
				if s := found(c); s.found != nil {
					observe(s.answered.Load(), attrLookup.String("found"))
					observe(s.empty.Load(), attrLookup.String("empty"))
					observe(s.failed.Load(), attrLookup.String("failed"))
				}
			}),
		meter.Gauge("quorate.bootstrap.contacts", "{contact point}", "Contact points that the last lookup with an answer has found. None where seed nodes are listed.",
			func(c *collected, observe meter.Observer) {
				if s := found(c); s.found != nil {
					observe(s.size.Load())
				}
			}),
		meter.FloatGauge("quorate.bootstrap.age", "s", "Time since a lookup has answered last. None where seed nodes are listed, and before the first answer.",
			func(c *collected, observe func(float64, ...attribute.KeyValue)) {
				if b := found(c).told.Load(); b != nil && !b.LookedUp.IsZero() {
					observe(c.metrics.node.clock.Now().Wall.Sub(b.LookedUp).Seconds())
				}
			}),
	}
}

// messageTable declares the metrics of messages between components, and of the
// components' decisions.
func messageTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.Counter("quorate.node.messages", "{message}", "Messages between the components of the nodes: gossip, heartbeats, coordination. Messages to entities are not among them.",
			traffic(func(t *tally) uint64 { return t.messages.Load() })),
		meter.Counter("quorate.node.io", "By", "Encoded bytes of these messages.",
			traffic(func(t *tally) uint64 { return t.bytes.Load() })),
		meter.Total("quorate.node.messages.unsent", "{message}", "Messages of components that no lane took; the protocols repeat what matters.",
			func(c *collected) uint64 { return c.Unsent }),
		meter.Total("quorate.node.messages.undecodable", "{message}", "Messages received for components that meant nothing.",
			func(c *collected) uint64 { return c.Undecodable }),
		meter.Total("quorate.node.messages.strangers", "{message}", "Messages dropped since who sent them is no member of the cluster. A few are usual while nodes join and leave.",
			func(c *collected) uint64 { return c.Strangers }),
		meter.Total("quorate.node.messages.oversize", "{message}", "Messages received that were larger than who sent them may send.",
			func(c *collected) uint64 { return c.Oversize }),
		meter.Gauge("quorate.membership.strangers", "{node}", "Nodes of this cluster's name that answer and have nothing to do with it, by lists and lineage.",
			func(c *collected, observe meter.Observer) { observe(int64(c.strangers)) }),
		meter.Counter("quorate.node.decisions", "{decision}", "Decisions that this node took.",
			func(c *collected, observe meter.Observer) {
				for _, t := range c.metrics.node.decisions.totals() {
					observe(int64(t.n), attrComponent.String(t.component), attrDecision.String(t.topic))
				}
			}),
	}
}

// driverTable declares the metrics of the driver of the node's components.
func driverTable() []meter.Row[*collected] {
	return []meter.Row[*collected]{
		meter.Total("quorate.node.steps", "{step}", "Inputs that the components of this node were fed.",
			func(c *collected) uint64 { return c.Driver.Steps }),
		meter.UpDown("quorate.node.inbox", "{input}", "Inputs that wait for the components of this node.",
			func(c *collected, observe meter.Observer) { observe(int64(c.Driver.Waiting)) }),
		meter.Total("quorate.node.inbox.refused", "{input}", "Inputs refused because too many waited.",
			func(c *collected) uint64 { return c.Driver.Refused }),
		meter.Total("quorate.strategy.calls.busy", "{call}", "Calls not tried because an earlier one had not returned.",
			func(c *collected) uint64 { return c.Driver.Busy }),
		meter.Total("quorate.strategy.calls.abandoned", "{call}", "Calls that ignored the end of their time and were left behind.",
			func(c *collected) uint64 { return c.Driver.Abandoned }),
	}
}

// traffic is a row that observes the same figure of each type of message.
func traffic(of func(*tally) uint64) func(*collected, meter.Observer) {
	return func(c *collected, observe meter.Observer) {
		c.metrics.traffic.Range(func(key, value any) bool {
			k, t := key.(tallyKey), value.(*tally)
			observe(int64(of(t)), attrComponent.String(k.component), attrMessage.String(t.name), meter.Direction.String(k.direction))
			return true
		})
	}
}
