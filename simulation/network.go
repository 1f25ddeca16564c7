// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The way of a message: send passes it through its codec at times, loses it or puts it
// into the heap, once or twice, with a latency (depart); when it surfaces, arrive
// refuses it, keeps it for a frozen node, or has it delivered to the component of its
// service.

// Delivery says how messages travel. Unless Ordered is set they may overtake each
// other, as they may when a connection breaks and is dialled anew.
type Delivery struct {
	// Min and Max bound the latency, drawn evenly between them. Both zero:
	// 200 microseconds to 2 milliseconds.
	Min, Max time.Duration

	// Late is the chance that a message takes a time up to LateMax instead, like a
	// message in the buffer of a connection that stands still.
	Late    float64
	LateMax time.Duration

	// Loss is the chance that a message is lost.
	Loss float64

	// Double is the chance that a message arrives twice.
	Double float64

	// Ordered keeps the messages from one node to another in order.
	Ordered bool
}

func (d *Delivery) latencies() (least, spread int64) {
	if d.Max == 0 {
		return int64(200 * time.Microsecond), int64(1800 * time.Microsecond)
	}
	return int64(d.Min), max(int64(d.Max-d.Min), 0)
}

// worse reports whether messages may travel worse by d than by another Delivery.
func (d Delivery) worse(than Delivery) bool {
	return d.Loss > than.Loss || d.Late > than.Late || d.Double > than.Double || d.Late > 0 && d.LateMax > than.LateMax || d.Max > than.Max
}

// Network carries the messages of a world; [World.Network] returns it. Links between
// addresses can be cut in one direction or both, slow or lossy; nodes can be clogged;
// messages of one sort can be lost. A change lasts until its counterpart or
// [Network.Heal] ends it, and belongs to the address: a node that is started again
// finds the links unchanged.
type Network struct {
	world    *World
	source   *rand.Rand // Draws latencies and losses.
	delivery Delivery
	normal   Delivery // The delivery with which the world began.

	cut     map[link]bool
	clogged map[int32]bool // Places whose messages are all blocked.
	links   map[link]Link
	losses  []*loss
	last    map[link]int64 // With Ordered: when the last message of a link arrives.

	packets pool[packet]
	every   uint64 // Every so many messages, one goes through its codec; zero: none does.
	scratch []byte // Buffer for encoding messages.
	same    comparer

	healed int64 // World time of the last change after which more messages may pass.
	latest int64 // The longest latency that any delivery or link has allowed.

	refusals  []func(peer *Node, by gossip.NodeID)
	misdials  []func(at *Node, by gossip.NodeID)
	observers []func(Passage)
}

// Passage is a message on its way from one node to another.
type Passage struct {
	From *Node
	To   gossip.Address

	// Arrives is the world time at which the message reaches its address, where it may be
	// refused; zero if it is lost.
	Arrives time.Duration
	Lost    bool

	Message any
}

// Observe adds a function that is called when a message leaves for another node, or is lost;
// for one that arrives twice, twice. It must not change the world, nor keep the message.
func (net *Network) Observe(f func(Passage)) { net.observers = append(net.observers, f) }

func newNetwork(w *World, opt *Options) *Network {
	return &Network{
		world: w, source: source(opt.Seed, 1), delivery: opt.Network, normal: opt.Network,
		latest: int64(max(opt.Network.LateMax, opt.Network.Max)), every: uint64(max(opt.CodecEvery, 0)), same: make(comparer),
	}
}

// Delivery returns how messages travel.
func (net *Network) Delivery() Delivery { return net.delivery }

// SetDelivery changes how messages travel from now on.
func (net *Network) SetDelivery(d Delivery) {
	net.delivery = d
	net.latest = max(net.latest, int64(d.LateMax), int64(d.Max))
	net.world.changes()
	net.world.Log("network %+v", d)
}

// packet is a message under way.
type packet struct {
	from    *Node
	to      gossip.NodeID
	service machine.Service
	message any
}

// send has a message travel, or loses it.
func (net *Network) send(n *Node, from machine.ID, s machine.Send) {
	net.world.stats.Sent++
	to := net.world.place(s.To.Address)
	c := &n.group.Components()[from]
	net.world.trace.add(line{at: net.world.now, place: n.place.index, peer: to.index, verb: verbSent, note: s.Message})
	message := s.Message
	if release, ok := c.Codec.(Release); ok {
		if to != n.place {
			if message, ok = net.translated(c, message, release.Sent); !ok {
				return
			}
		}
	} else if net.every > 0 && net.world.stats.Sent%net.every == 0 {
		var err error
		if message, err = net.recode(c, message); err != nil {
			net.world.Fail(err)
			return
		}
	}
	p := packet{from: n, to: s.To, service: c.Service, message: message}
	if to == n.place {
		net.depart(p, to, 0)
		return
	}
	if net.isBlocked(n.place.index, to.index) || net.delivery.Loss > 0 && net.source.Float64() < net.delivery.Loss || net.isLost(&p, to) {
		net.drop(&p, to)
		return
	}
	net.depart(p, to, net.linkLatency(n.place.index, to.index))
	if net.delivery.Double > 0 && net.source.Float64() < net.delivery.Double {
		net.depart(p, to, net.linkLatency(n.place.index, to.index))
	}
}

// Latency draws how long a message takes at present.
func (net *Network) Latency() time.Duration { return time.Duration(net.latency()) }

func (net *Network) latency() int64 {
	if net.delivery.Late > 0 && net.source.Float64() < net.delivery.Late {
		return net.source.Int64N(max(int64(net.delivery.LateMax), 1))
	}
	least, spread := net.delivery.latencies()
	if spread == 0 {
		return least
	}
	return least + net.source.Int64N(spread)
}

func (net *Network) depart(p packet, to *place, latency int64) {
	at := net.world.now + latency
	if net.delivery.Ordered {
		if net.last == nil {
			net.last = make(map[link]int64)
		}
		l := link{p.from.place.index, to.index}
		at = max(at, net.last[l])
		net.last[l] = at
	}
	net.world.push(event{at: at, typ: eventPacket, place: to.index, ref: net.packets.put(p)})
	if p.from.place != to {
		net.passes(Passage{From: p.from, To: to.address, Arrives: time.Duration(at), Message: p.message})
	}
}

func (net *Network) passes(p Passage) {
	for _, f := range net.observers {
		f(p)
	}
}

func (net *Network) drop(p *packet, to *place) {
	net.world.stats.Lost++
	net.world.trace.add(line{at: net.world.now, place: p.from.place.index, peer: to.index, verb: verbDropped, note: "lost"})
	net.passes(Passage{From: p.from, To: to.address, Lost: true, Message: p.message})
}

// arrive delivers a packet to the node at its address, if the packet is for its
// incarnation and the node does not block the sender.
func (net *Network) arrive(e event) {
	n := net.world.places[e.place].node
	p := &net.packets.values[e.ref]
	if n == nil || p.to.UID != 0 && p.to.UID != n.id.UID || n.blocked[p.from.id] {
		net.world.stats.Refused++
		refused := net.packets.take(e.ref)
		switch {
		case n == nil:
		case n.blocked[refused.from.id]:
			net.refuse(n, refused.from)
		case !n.frozen:
			net.misdialled(n, refused.from.id)
		}
		return
	}
	if n.frozen {
		e.incarnation = n.incarnation
		n.waiting = append(n.waiting, e)
		return
	}
	net.world.handleNodeEvent(n, e)
}

func (net *Network) deliver(n *Node, p packet) {
	to, ok := n.component(p.service)
	if !ok {
		net.world.stats.Refused++
		return
	}
	c := &n.group.Components()[to]
	if release, other := c.Codec.(Release); other && p.from != n {
		if p.message, ok = net.translated(c, p.message, release.Received); !ok {
			return
		}
	}
	net.world.trace.add(line{at: net.world.now, place: n.place.index, peer: p.from.place.index, verb: verbReceived, note: p.message})
	n.step(to, machine.Received{From: p.from.id, Message: p.message})
}

// Block makes a node refuse a peer from now on, as a transport refuses an incarnation
// that was removed. Each time a message of the peer is refused, the functions given to
// [Network.OnRefused] are called for the peer.
func (net *Network) Block(n *Node, peer gossip.NodeID) {
	if n.blocked == nil {
		n.blocked = make(map[gossip.NodeID]bool)
	}
	n.blocked[peer] = true
}

// OnRefused adds a function that is called when the refusal by a node has
// reached the peer that it blocks.
func (net *Network) OnRefused(f func(peer *Node, by gossip.NodeID)) {
	net.refusals = append(net.refusals, f)
}

// OnMisdialled adds a function that is called when a message for another incarnation has
// reached a node.
func (net *Network) OnMisdialled(f func(at *Node, by gossip.NodeID)) {
	net.misdials = append(net.misdials, f)
}

func (net *Network) misdialled(at *Node, by gossip.NodeID) {
	for _, f := range net.misdials {
		f(at, by)
	}
}

// refuse tells a peer that it is refused, if the link back works.
func (net *Network) refuse(by, peer *Node) {
	if len(net.refusals) == 0 || !net.Connected(by.place.address, peer.place.address) {
		return
	}
	net.world.After(time.Duration(net.latency()), func() {
		for _, f := range net.refusals {
			if peer.Alive() {
				f(peer, by.id)
			}
		}
	})
}
