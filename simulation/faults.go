// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// More lists of faults: pauses of several nodes, losses of certain messages, bad
// links, slow disks and wrong wall clocks, failing disks; then the faults themselves.
// These lists are apart from [Faults], so that seeds of scenarios that draw from that
// list keep their meaning.

// PauseFaults returns pauses of several nodes at once: of all, of a random group, of
// all but one. In one case of two a node crashes meanwhile.
func PauseFaults() []Fault {
	return []Fault{
		{"pause-all", 2, func(w *World, r *rand.Rand) { pauseFault(w, r, w.Nodes()) }},
		{"pause-rack", 3, func(w *World, r *rand.Rand) { pauseFault(w, r, randomGroup(w, r)) }},
		{"pause-all-but-one", 3, func(w *World, r *rand.Rand) {
			if nodes := w.Nodes(); len(nodes) > 0 {
				spared := r.IntN(len(nodes))
				pauseFault(w, r, slices.Delete(nodes, spared, spared+1))
			}
		}},
	}
}

// Traffic says which messages the nodes of a world send each other, for faults that
// affect some messages and spare others.
type Traffic struct {
	// Types holds a value of each message type that may be lost by itself.
	Types []any

	// News reports whether a message spreads what the nodes must agree on. Nodes crash
	// while they send such messages, so that some nodes have the news and others do
	// not.
	News func(message any) bool

	// Heartbeat reports whether a message says only that its sender is alive.
	Heartbeat func(message any) bool

	// Service is the service whose messages are lost when no node is alive of which a
	// component could be drawn.
	Service machine.Service
}

// LossFaults returns losses of messages of one type or one service, everywhere, to one
// node or from one node, and crashes in the middle of a step.
func LossFaults(t Traffic) []Fault {
	return []Fault{
		LoseTypes("lose-type", 5, t.Types),
		{"lose-gossip", 4, func(w *World, r *rand.Rand) { loseFault(w, r, lossFilter{what: "gossip", is: t.News}) }},
		{"lose-heartbeats", 2, func(w *World, r *rand.Rand) { loseFault(w, r, lossFilter{what: "heartbeats", is: t.Heartbeat}) }},
		{"lose-service", 1, func(w *World, r *rand.Rand) { loseFault(w, r, oneService(w, r, t.Service)) }},
		{"crash-midway", 4, func(w *World, r *rand.Rand) {
			withNode(w, r, func(n *Node) { w.CrashWithin(n.place.address, 1+r.IntN(30), nil) })
		}},
		{"crash-in-push", 4, func(w *World, r *rand.Rand) {
			withNode(w, r, func(n *Node) { w.CrashWithin(n.place.address, 1+r.IntN(6), t.News) })
		}},
	}
}

// LoseTypes returns a fault that loses the messages of one type, drawn from the types
// of some values, everywhere, to one node or from one node.
func LoseTypes(name string, weight int, types []any) Fault {
	return Fault{name, weight, func(w *World, r *rand.Rand) { loseFault(w, r, oneType(r, types)) }}
}

// LinkFaults returns links that are bad rather than cut: slow in one direction, lossy,
// broken for a long time; and nodes that are clogged one after the other and unclogged
// in another order.
func LinkFaults() []Fault {
	return []Fault{
		{"swizzle", 3, clogFault},
		{"slow-link", 2, func(w *World, r *rand.Rand) {
			someLinks(w, r, func(from, to gossip.Address) {
				least := between(r, 0, 2*time.Second)
				w.network.SetLink(from, to, Link{Min: least, Max: least + between(r, time.Millisecond, time.Second)})
			})
		}},
		{"lossy-link", 2, func(w *World, r *rand.Rand) {
			someLinks(w, r, func(from, to gossip.Address) { w.network.SetLink(from, to, Link{Loss: r.Float64()}) })
		}},
		{"broken-link", 2, func(w *World, r *rand.Rand) {
			w.Log("a broken pair")
			from, to := twoPlaces(w, r)
			w.network.Cut(from, to)
			w.network.Cut(to, from)
		}},
		{"long-loss", 1, func(w *World, r *rand.Rand) {
			lossy := w.network.delivery
			lossy.Loss = 0.3 * r.Float64()
			w.network.SetDelivery(lossy)
			w.After(between(r, time.Minute, 3*time.Minute), func() { w.network.SetDelivery(w.network.normal) })
		}},
	}
}

// OutsideFaults returns faults around nodes that lose nothing that a node has written:
// slow disks, and wall clocks that are days ahead or behind.
func OutsideFaults() []Fault {
	return []Fault{
		{"slow-disk", 2, func(w *World, r *rand.Rand) {
			withNode(w, r, func(n *Node) {
				w.disks.SetAt(n.place.address, Writes{Max: between(r, time.Millisecond, 2*time.Second)})
			})
		}},
		{"wall-days", 2, func(w *World, r *rand.Rand) {
			const days = 10 * 24 * time.Hour
			withNode(w, r, func(n *Node) { w.SetWall(n.place.address, between(r, 0, 2*days)-days) })
		}},
	}
}

// DiskFaults returns disks that hang, fail and tear. By each of these faults a node
// may lose what it has stored.
func DiskFaults() []Fault {
	return []Fault{
		{"disk", 4, func(w *World, r *rand.Rand) {
			withNode(w, r, func(n *Node) {
				w.disks.SetAt(n.place.address, Writes{Hang: r.Float64() / 2, Fail: r.Float64() / 2, Tear: r.Float64() / 2, Max: between(r, time.Millisecond, 2*time.Second)})
			})
		}},
		{"disks-well", 1, func(w *World, _ *rand.Rand) { w.disks.Set(Writes{}) }},
	}
}

// pauseFault freezes nodes for about the same time. In one case of two some node,
// possibly a frozen one, crashes meanwhile.
func pauseFault(w *World, r *rand.Rand, nodes []*Node) {
	d := between(r, 500*time.Millisecond, 15*time.Second)
	for _, n := range nodes {
		w.Freeze(n.place.address, d+between(r, 0, 50*time.Millisecond))
	}
	if r.IntN(2) == 0 {
		w.After(between(r, 0, d), func() { withNode(w, r, func(n *Node) { w.Crash(n.place.address) }) })
	}
}

// randomGroup returns a random group of nodes, at least one if any node is alive.
func randomGroup(w *World, r *rand.Rand) []*Node {
	nodes := w.Nodes()
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes[:min(1+r.IntN(max(len(nodes), 1)), len(nodes))]
}

// lossFilter selects the messages that a fault loses.
type lossFilter struct {
	what    string                 // The messages in words, for the trace.
	service machine.Service        // If not zero, all messages of this service are lost.
	is      func(message any) bool // Whether a message is lost; used when service is zero.
}

// oneType selects the messages of one type.
func oneType(r *rand.Rand, types []any) lossFilter {
	of := reflect.TypeOf(types[r.IntN(len(types))])
	return lossFilter{what: of.String(), is: func(message any) bool { return reflect.TypeOf(message) == of }}
}

// oneService selects all messages of one service, as when its lane stands still.
func oneService(w *World, r *rand.Rand, fallback machine.Service) lossFilter {
	s := lossFilter{service: fallback, is: func(any) bool { return true }}
	withNode(w, r, func(n *Node) {
		components := n.group.Components()
		s.service = components[r.IntN(len(components))].Service
	})
	return s
}

// loseFault loses the selected messages for one to fifteen seconds: all of them, those
// to one node or those from one node.
func loseFault(w *World, r *rand.Rand, s lossFilter) {
	where, what := w.places[r.IntN(len(w.places))].address, s.what
	lose := func(_, _ gossip.Address, message any) bool { return s.is(message) }
	switch r.IntN(3) {
	case 0:
		what, lose = fmt.Sprintf("%s to %v", what, where), func(_, to gossip.Address, message any) bool { return to == where && s.is(message) }
	case 1:
		what, lose = fmt.Sprintf("%s from %v", what, where), func(from, _ gossip.Address, message any) bool { return from == where && s.is(message) }
	}
	length := between(r, time.Second, 15*time.Second)
	if s.service != 0 {
		w.After(length, w.network.LoseService(s.service, lose))
		return
	}
	w.After(length, w.network.Lose(what, lose))
}

// clogFault clogs some nodes one after the other, and unclogs them in another
// order.
func clogFault(w *World, r *rand.Rand) {
	nodes := randomGroup(w, r)
	at := time.Duration(0)
	for _, n := range nodes {
		at += between(r, 0, 2*time.Second)
		w.After(at, func() { w.network.Clog(n.place.address) })
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	for _, n := range nodes {
		at += between(r, 0, 2*time.Second)
		w.After(at, func() { w.network.Unclog(n.place.address) })
	}
}

// someLinks calls f for one to three directions between addresses.
func someLinks(w *World, r *rand.Rand, f func(from, to gossip.Address)) {
	for range 1 + r.IntN(3) {
		f(twoPlaces(w, r))
	}
}

// twoPlaces draws two addresses, twice the same one in a world with one address.
func twoPlaces(w *World, r *rand.Rand) (from, to gossip.Address) {
	i := r.IntN(len(w.places))
	j := (i + 1 + r.IntN(max(len(w.places)-1, 1))) % len(w.places)
	return w.places[i].address, w.places[j].address
}
