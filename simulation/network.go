// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Network says how messages travel. Messages are not kept in order unless
// Ordered: a connection that breaks and is dialled anew does not keep it
// either.
type Network struct {
	// Min and Max bound the latency, drawn evenly between them. Both zero:
	// 200 microseconds to 2 milliseconds.
	Min, Max time.Duration

	// Late is the chance that a message takes up to LateMax instead, like a
	// message that waits in a buffer of a connection that stands still.
	Late    float64
	LateMax time.Duration

	// Loss is the chance that a message is lost.
	Loss float64

	// Double is the chance that a message arrives twice.
	Double float64

	// Ordered keeps the messages from one node to another in order.
	Ordered bool
}

func (c *Network) latencies() (least, spread int64) {
	if c.Max == 0 {
		return int64(200 * time.Microsecond), int64(1800 * time.Microsecond)
	}
	return int64(c.Min), max(int64(c.Max-c.Min), 0)
}

// packet is a message on its way.
type packet struct {
	from    *Node
	to      gossip.NodeID
	service machine.Service
	message any
}

// link is one direction between two places.
type link struct{ from, to int32 }

// links is the state of the network.
type links struct {
	cut  map[link]bool
	last map[link]int64 // When the last message arrives, if ordered.
}

// SetNetwork changes how messages travel from now on.
func (w *World) SetNetwork(c Network) {
	w.opt.Network = c
	w.weather.latest = max(w.weather.latest, int64(c.LateMax), int64(c.Max))
	w.changes(false)
	w.Log("network %+v", c)
}

// Network returns how messages travel.
func (w *World) Network() Network { return w.opt.Network }

// send puts a message on its way.
func (w *World) send(n *Node, from machine.ID, s machine.Send) {
	w.stats.Sent++
	to := w.place(s.To.Address)
	c := &n.group.Components()[from]
	w.trace.add(line{at: w.now, place: n.place.index, peer: to.index, verb: verbSent, note: s.Message})
	message := s.Message
	if every := w.opt.CodecEvery; every > 0 && w.stats.Sent%uint64(every) == 0 {
		var err error
		if message, err = w.recode(c, message); err != nil {
			w.Fail(err)
			return
		}
	}
	p := packet{from: n, to: s.To, service: c.Service, message: message}
	if to == n.place {
		w.depart(p, to, 0)
		return
	}
	net := &w.opt.Network
	if w.blockedWay(n.place.index, to.index) || net.Loss > 0 && w.network.Float64() < net.Loss || w.strays(&p, to) {
		w.drop(n, to)
		return
	}
	w.depart(p, to, w.way(n.place.index, to.index))
	if net.Double > 0 && w.network.Float64() < net.Double {
		w.depart(p, to, w.way(n.place.index, to.index))
	}
}

// Latency draws how long a message takes at present.
func (w *World) Latency() time.Duration { return time.Duration(w.latency()) }

func (w *World) latency() int64 {
	net := &w.opt.Network
	if net.Late > 0 && w.network.Float64() < net.Late {
		return w.network.Int64N(max(int64(net.LateMax), 1))
	}
	least, spread := net.latencies()
	if spread == 0 {
		return least
	}
	return least + w.network.Int64N(spread)
}

func (w *World) depart(p packet, to *place, latency int64) {
	at := w.now + latency
	if w.opt.Network.Ordered {
		if w.links.last == nil {
			w.links.last = make(map[link]int64)
		}
		l := link{p.from.place.index, to.index}
		at = max(at, w.links.last[l])
		w.links.last[l] = at
	}
	w.push(event{at: at, kind: kindPacket, place: to.index, ref: w.packets.put(p)})
}

func (w *World) drop(n *Node, to *place) {
	w.stats.Lost++
	w.trace.add(line{at: w.now, place: n.place.index, peer: to.index, verb: verbDropped, note: "lost"})
}

// arrive hands a packet to whoever lives at its address, if it is meant.
func (w *World) arrive(e event) {
	n := w.places[e.place].node
	p := &w.packets.values[e.ref]
	if n == nil || p.to.UID != 0 && p.to.UID != n.id.UID || n.blocked[p.from.id] {
		w.stats.Refused++
		refused := w.packets.take(e.ref)
		if n != nil && n.blocked[refused.from.id] {
			w.refuse(n, refused.from)
		}
		return
	}
	if n.frozen {
		e.incarnation = n.incarnation
		n.waiting = append(n.waiting, e)
		return
	}
	w.happen(n, e)
}

// Block makes a node refuse a peer from now on, as a transport does with an
// incarnation that was removed. The peer is told by the functions given to
// [World.OnRefused], each time that a message of it is refused.
func (w *World) Block(n *Node, peer gossip.NodeID) {
	if n.blocked == nil {
		n.blocked = make(map[gossip.NodeID]bool)
	}
	n.blocked[peer] = true
}

// OnRefused adds a function that is called when the refusal by a node has
// reached the peer that it blocks.
func (w *World) OnRefused(f func(peer *Node, by gossip.NodeID)) { w.refusals = append(w.refusals, f) }

// refuse tells a peer that it is refused, if the link back works.
func (w *World) refuse(by, peer *Node) {
	if len(w.refusals) == 0 || !w.Connected(by.place.address, peer.place.address) {
		return
	}
	w.After(time.Duration(w.latency()), func() {
		for _, f := range w.refusals {
			if peer.Alive() {
				f(peer, by.id)
			}
		}
	})
}

func (w *World) deliver(n *Node, p packet) {
	to, ok := n.component(p.service)
	if !ok {
		w.stats.Refused++
		return
	}
	w.trace.add(line{at: w.now, place: n.place.index, peer: p.from.place.index, verb: verbReceived, note: p.message})
	n.step(to, machine.Received{From: p.from.id, Message: p.message})
}

// Cut cuts the direction between two addresses: what from sends no longer
// reaches to. Messages that are on their way arrive.
func (w *World) Cut(from, to gossip.Address) {
	if w.links.cut == nil {
		w.links.cut = make(map[link]bool)
	}
	if from != to {
		way := link{w.place(from).index, w.place(to).index}
		if !w.links.cut[way] {
			w.linked(way.from, way.to)
		}
		w.links.cut[way] = true
		w.changes(false)
	}
}

// Split cuts every link, in both directions, between addresses of different
// sides. Addresses in no side keep all their links.
func (w *World) Split(sides ...[]gossip.Address) {
	w.Log("split %v", sides)
	for i, side := range sides {
		for j, other := range sides {
			if i == j {
				continue
			}
			for _, a := range side {
				for _, b := range other {
					w.Cut(a, b)
				}
			}
		}
	}
}

// Heal repairs every link: what was cut, clogged, slow, or lost messages.
func (w *World) Heal() {
	w.Log("healed")
	for way := range w.links.cut { //quorate:unordered each is noted by itself
		w.linked(way.from, way.to)
	}
	for of := range w.weather.clogged { //quorate:unordered the same
		w.linksOf(of)
	}
	clear(w.links.cut)
	clear(w.weather.clogged)
	clear(w.weather.links)
	w.weather.losses = nil
	w.changes(true)
}

// Connected reports whether what from sends reaches to.
func (w *World) Connected(from, to gossip.Address) bool {
	return !w.blockedWay(w.place(from).index, w.place(to).index)
}

// Freeze lets the node at an address run nothing for d, as a process that was
// stopped by a signal: what comes waits, and its clocks go on.
func (w *World) Freeze(a gossip.Address, d time.Duration) {
	n := w.Node(a)
	if n == nil || n.frozen {
		return
	}
	n.frozen = true
	w.changes(false)
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "frozen for " + d.String()})
	w.push(event{at: w.now + int64(d), kind: kindThaw, place: n.place.index, incarnation: n.incarnation})
}

// Thaw lets a frozen node run on at once.
func (w *World) Thaw(a gossip.Address) {
	if n := w.Node(a); n != nil && n.frozen {
		w.thaw(n)
	}
}

// thaw feeds what waited. A process that is continued finds its timers due
// and its sockets readable at the same time; the seed says which it sees
// first.
func (w *World) thaw(n *Node) {
	if !n.frozen {
		return
	}
	n.frozen = false
	n.thaws++
	n.thawed = w.now
	w.changes(false)
	waiting := n.waiting
	n.waiting = nil
	w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "thawed"})
	if w.faults.Uint64()&1 == 0 {
		slices.SortStableFunc(waiting, func(a, b event) int {
			return cmp.Compare(a.kind, b.kind) // Timers have the lowest kind.
		})
	}
	for _, e := range waiting {
		if n.ended {
			w.discard(e)
			continue
		}
		w.happen(n, e)
	}
}

// SetWall moves the wall clock of the node at an address.
func (w *World) SetWall(a gossip.Address, ahead time.Duration) {
	if n := w.Node(a); n != nil {
		n.clock.wall = ahead
		w.changes(false)
		w.trace.add(line{at: w.now, place: n.place.index, peer: -1, verb: verbWorld, note: "wall ahead by " + ahead.String()})
	}
}
