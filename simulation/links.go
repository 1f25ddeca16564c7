// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Links between addresses: cut and mended, split and healed, slow or lossy, clogged;
// and losses of selected messages. At the end, what the network asks about a message:
// whether its link is blocked, whether it is lost, how long it takes.

// Link is the quality of one direction between two addresses, where it differs from
// the network.
type Link struct {
	// Min and Max bound the latency, drawn evenly between them. Both zero: the latency
	// of the network.
	Min, Max time.Duration

	// Loss is the chance that a message is lost, in addition to that of the network.
	Loss float64
}

// link is one direction between two places.
type link struct{ from, to int32 }

// Cut blocks one direction between two addresses: messages that from sends no longer
// reach to. Messages that are under way still arrive.
func (net *Network) Cut(from, to gossip.Address) {
	if net.cut == nil {
		net.cut = make(map[link]bool)
	}
	if from != to {
		net.cut[link{net.world.place(from).index, net.world.place(to).index}] = true
		net.world.changes()
	}
}

// Mend opens one direction between two addresses.
func (net *Network) Mend(from, to gossip.Address) {
	delete(net.cut, link{net.world.place(from).index, net.world.place(to).index})
	net.improves()
	net.world.Log("mend %v -> %v", from, to)
}

// Split cuts every link, in both directions, between addresses of different sides.
// Addresses in no side keep all their links.
func (net *Network) Split(sides ...[]gossip.Address) {
	net.world.Log("split %v", sides)
	for i, side := range sides {
		for j, other := range sides {
			if i == j {
				continue
			}
			for _, a := range side {
				for _, b := range other {
					net.Cut(a, b)
				}
			}
		}
	}
}

// Heal repairs every link: the cut, clogged, slow and lossy ones. It also ends every
// loss of selected messages.
func (net *Network) Heal() {
	net.world.Log("healed")
	clear(net.cut)
	clear(net.clogged)
	clear(net.links)
	net.losses = nil
	net.improves()
}

// Connected reports whether messages that from sends reach to.
func (net *Network) Connected(from, to gossip.Address) bool {
	return !net.isBlocked(net.world.place(from).index, net.world.place(to).index)
}

// DirectedLink is the link in one direction between two addresses.
type DirectedLink struct{ From, To gossip.Address }

// Blocked returns the directions in which no message passes at present, those of clogged
// addresses included, in the order in which the addresses were first used.
func (net *Network) Blocked() []DirectedLink {
	if len(net.cut) == 0 && len(net.clogged) == 0 {
		return nil
	}
	var blocked []DirectedLink
	for _, from := range net.world.places {
		for _, to := range net.world.places {
			if from != to && net.isBlocked(from.index, to.index) {
				blocked = append(blocked, DirectedLink{From: from.address, To: to.address})
			}
		}
	}
	return blocked
}

// SetLink gives one direction between two addresses a quality of its own, until
// [Network.Heal]. The zero Link restores the network's.
func (net *Network) SetLink(from, to gossip.Address, l Link) {
	if from == to {
		return
	}
	if net.links == nil {
		net.links = make(map[link]Link)
	}
	key := link{net.world.place(from).index, net.world.place(to).index}
	if l == (Link{}) {
		delete(net.links, key)
	} else {
		net.links[key] = l
		net.latest = max(net.latest, int64(l.Max))
	}
	net.world.changes()
	net.world.Log("link %v -> %v %+v", from, to, l)
}

// Clog blocks all messages to and from an address, whatever the state of its single
// links, until [Network.Unclog] or [Network.Heal].
func (net *Network) Clog(a gossip.Address) {
	if net.clogged == nil {
		net.clogged = make(map[int32]bool)
	}
	net.clogged[net.world.place(a).index] = true
	net.world.changes()
	net.world.Log("clog %v", a)
}

// Unclog ends [Network.Clog].
func (net *Network) Unclog(a gossip.Address) {
	delete(net.clogged, net.world.place(a).index)
	net.improves()
	net.world.Log("unclog %v", a)
}

// loss is one call of [Network.Lose] or [Network.LoseService] that has not ended.
type loss struct {
	what    string
	service machine.Service // If not zero, only messages of this service are lost.
	lose    func(from, to gossip.Address, message any) bool
}

// Lose drops the messages for which lose returns true, while other messages pass:
// those of one type, say. Several calls add up. It ends with the returned function or
// with [Network.Heal]. Lose must depend on its arguments alone. What describes the
// messages in the trace.
func (net *Network) Lose(what string, lose func(from, to gossip.Address, message any) bool) (end func()) {
	return net.loses(&loss{what: what, lose: lose})
}

// LoseService drops messages of one service like [Network.Lose], as when its lane
// stands still.
func (net *Network) LoseService(s machine.Service, lose func(from, to gossip.Address, message any) bool) (end func()) {
	return net.loses(&loss{what: fmt.Sprintf("service %d", s), service: s, lose: lose})
}

func (net *Network) loses(l *loss) (end func()) {
	net.losses = append(net.losses, l)
	net.world.changes()
	net.world.Log("loses %s", l.what)
	return func() {
		if i := slices.Index(net.losses, l); i >= 0 {
			net.losses = slices.Delete(net.losses, i, i+1)
			net.world.changes()
			net.world.Log("no longer loses %s", l.what)
		}
	}
}

// improves records a change after which messages may pass that could not before.
func (net *Network) improves() {
	net.world.changes()
	net.healed = net.world.now
}

// isBlocked reports whether no message passes from one place to another.
func (net *Network) isBlocked(from, to int32) bool {
	return len(net.cut) > 0 && net.cut[link{from, to}] ||
		len(net.clogged) > 0 && from != to && (net.clogged[from] || net.clogged[to])
}

// isLost reports whether a message is lost although its link is open: by a loss of
// selected messages, or by the chance of its link.
func (net *Network) isLost(p *packet, to *place) bool {
	for _, l := range net.losses {
		if (l.service == 0 || l.service == p.service) && l.lose(p.from.place.address, to.address, p.message) {
			return true
		}
	}
	if len(net.links) > 0 {
		if l := net.links[link{p.from.place.index, to.index}]; l.Loss > 0 {
			return net.source.Float64() < l.Loss
		}
	}
	return false
}

// linkLatency draws how long a message takes from one place to another.
func (net *Network) linkLatency(from, to int32) int64 {
	if len(net.links) > 0 {
		if l := net.links[link{from, to}]; l.Max > 0 {
			return int64(l.Min) + net.source.Int64N(max(int64(l.Max-l.Min), 1))
		}
	}
	return net.latency()
}

// Impaired reports whether messages may take longer than usual, or be lost, although
// no link is cut: a link has a quality of its own, selected messages are lost, or the
// network is worse than the initial one.
func (net *Network) Impaired() bool {
	return len(net.links) > 0 || len(net.losses) > 0 || net.delivery.worse(net.normal)
}

// Healed returns the last world time at which messages may have begun to pass that
// could not before.
func (net *Network) Healed() time.Duration { return time.Duration(net.healed) }

// Slowest returns the longest time that a message may have taken in this world so far:
// a message that was sent longer ago has arrived, or never will.
func (net *Network) Slowest() time.Duration { return time.Duration(net.latest) }
