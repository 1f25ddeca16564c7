// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell

import (
	"slices"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Where the shard lives: follow, serve, stop and leave note what the control machine orders;
// then come the questions of the other parts, and what the node says in the shard's name.

// hosting is the phase of a cell between hosting its shard and not.
type hosting uint8

const (
	hostNone     hosting = iota // This node does not host the shard; another node may, and may not be known.
	hostServing                 // This node hosts the shard.
	hostStopping                // This node hosts the shard and lets its mailboxes run out.
)

// maxHomes bounds the earlier homes that a cell remembers. An ask that outlasts more moves
// of its shard than that gets no answer from the first of the homes.
const maxHomes = 8

// formerHome is a node where the shard lived before.
type formerHome struct {
	node   gossip.NodeID
	number uint64 // The number of the home, see [Cell.Homes].
}

// place is the part of a cell that knows where the shard lives, and what this node may do
// about it. Invariants, between calls:
//
//	P1  the epoch of the route only grows, and so does the base;
//	P2  while this node hosts, no route to another node has a higher epoch than the
//	    hosting;
//	P3  former holds homes since base, the oldest first, and is bounded;
//	P4  a node that has ended stays so, and so does a shard that is retired: the node hosts it no more.
type place struct {
	cfg       *Config
	route     protocol.SetRoute // The highest epoch known.
	base      protocol.Epoch    // The base epoch of all streams.
	state     hosting
	epoch     protocol.Epoch  // The epoch of the home, while hosting.
	started   *protocol.Epoch // A copy of the epoch under which the last entity was started, see token.
	since     machine.Instant // When route or state last changed.
	suspended bool            // The node has no standing, see [protocol.SuspendHosting].
	abandoned bool            // The node has ended, see [protocol.AbandonHosting].
	retired   bool            // No node hosts the shard any more, see [protocol.RetireShard].
	leaving   bool            // The last stop of the shard was because the node leaves.
	former    []formerHome    // Earlier homes of the shard since base, the oldest first; see [Cell.Went].
	homes     uint64          // How many homes this cell has heard of.
	asked     bool            // A lookup is under way.
	askedFor  protocol.Epoch  // The epoch that the home of the lookup under way must exceed.
}

// follow takes over a newer route.
func (p *place) follow(now machine.Instant, r protocol.SetRoute) {
	p.rehome(r.Home)
	p.route, p.asked, p.since = r, false, now
}

// beginAnew takes over a new base: no former home has a message of the streams.
func (p *place) beginAnew(base protocol.Epoch) { p.base, p.former = base, nil }

// takes reports whether an order to host is newer than what is known of the shard.
func (p *place) takes(h protocol.StartHosting) bool {
	return !h.Epoch.Less(p.route.Epoch) && !h.Base.Less(p.base)
}

// moveHere makes this node the home, and serve begins to host.
func (p *place) moveHere(h protocol.StartHosting) {
	p.rehome(p.cfg.Self)
	p.route = protocol.SetRoute{Home: p.cfg.Self, Epoch: h.Epoch, Base: h.Base}
}

func (p *place) serve(now machine.Instant, epoch protocol.Epoch) {
	p.state, p.epoch, p.asked, p.since = hostServing, epoch, false, now
}

// raise takes over a higher epoch for the present hosting.
func (p *place) raise(epoch protocol.Epoch) { p.epoch = maxEpoch(p.epoch, epoch) }

// stop lets the hosting run out, and resume takes that back.
func (p *place) stop(now machine.Instant, leaving bool) {
	p.state, p.since, p.leaving = hostStopping, now, leaving
}

func (p *place) resume(now machine.Instant) { p.state, p.since = hostServing, now }

// halt ends a hosting that has run out, and lose one that another node has taken.
func (p *place) halt(now machine.Instant) { p.state, p.since = hostNone, now }

func (p *place) lose() { p.state = hostNone }

// suspend notes whether the node has lost its standing, and abandon that it has ended.
func (p *place) suspend(without bool) { p.suspended = without }

func (p *place) abandon() { p.abandoned = true }

// home returns the node where the shard lives, zero when that is not known, and mapEpoch
// the epoch of that.
func (p *place) home() gossip.NodeID { return p.route.Home }

func (p *place) mapEpoch() protocol.Epoch { return p.route.Epoch }

// baseEpoch names the present streams, and hostedUnder the present hosting.
func (p *place) baseEpoch() protocol.Epoch { return p.base }

func (p *place) hostedUnder() protocol.Epoch { return p.epoch }

// changed returns when this node last learned of a change, and asking whether it waits for
// the answer to a lookup.
func (p *place) changed() machine.Instant { return p.since }

func (p *place) asking() bool { return p.asked }

// hosts reports whether this node hosts the shard: it serves, or stops.
func (p *place) hosts() bool { return p.state != hostNone }

func (p *place) serves() bool { return p.state == hostServing }

func (p *place) stops() bool { return p.state == hostStopping }

// leaves reports whether the last stop was because the node leaves.
func (p *place) leaves() bool { return p.leaving }

// isSuspended reports whether the node has no standing, and isOver whether it has ended.
func (p *place) isSuspended() bool { return p.suspended }

func (p *place) isOver() bool { return p.abandoned }

// heard returns how many homes this cell has heard of.
func (p *place) heard() uint64 { return p.homes }

// lookAgain permits another lookup, since the answer to the last one took too long.
func (p *place) lookAgain() { p.asked = false }

// rehome notes that the shard has another home now. The caller changes the route
// afterwards.
func (p *place) rehome(next gossip.NodeID) {
	if next == p.route.Home {
		return
	}
	if !p.route.Home.IsZero() {
		if len(p.former) >= maxHomes {
			p.former = slices.Delete(p.former, 0, 1)
		}
		p.former = append(p.former, formerHome{p.route.Home, p.homes})
	}
	p.homes++
}

// token returns the epoch of the home as one value that all entities share, since there
// may be millions of entities.
func (p *place) token() *protocol.Epoch {
	if p.started == nil || *p.started != p.epoch {
		epoch := p.epoch
		p.started = &epoch
	}
	return p.started
}

// lookup asks for a home above an epoch, once until the answer.
func (p *place) lookup(above protocol.Epoch, out *Actions) {
	if p.asked && !p.askedFor.Less(above) {
		return
	}
	p.asked, p.askedFor = true, above
	out.add(Action{Op: OpEvent, Event: protocol.Lookup{Above: above}})
}

// passable reports whether m should be passed on: this node knows a newer home than the
// map by which m was sent here.
func (p *place) passable(m *Message) bool {
	return p.route.Home != p.cfg.Self && p.route.Home != gossip.NodeID{} && m.Route.Less(p.route.Epoch)
}

// forward passes m on to the home, unless it was passed on too often.
func (p *place) forward(m *Message, out *Actions) {
	if m.Hops >= MaxHops {
		out.drop(m, DropHops)
		return
	}
	m.Hops++
	m.Route = p.route.Epoch
	out.add(Action{Op: OpForward, To: p.route.Home, Message: m})
	out.free(m)
}

func (p *place) reply(to gossip.NodeID, r *protocol.Reply, out *Actions) {
	if p.abandoned {
		return
	}
	r.Kind, r.Shard = p.cfg.Kind, p.cfg.Shard
	out.add(Action{Op: OpReply, To: to, Reply: r})
}

func (p *place) flow(to gossip.NodeID, entity string, state protocol.FlowState, out *Actions) {
	if p.abandoned {
		return
	}
	epoch := p.epoch
	if state == protocol.FlowAsk {
		epoch = p.route.Epoch
	}
	out.add(Action{Op: OpFlow, To: to, Flow: &protocol.Flow{
		Kind: p.cfg.Kind, Shard: p.cfg.Shard, Epoch: epoch, Entity: entity, State: state,
	}})
}

// atHome reports whether a node may speak for the home of the shard. A former home may not,
// and is no forger either: its frame comes too late.
func (p *place) atHome(from gossip.NodeID, out *Actions) bool {
	switch {
	case from == p.route.Home || from == p.cfg.Self:
		return true
	case !p.went(from, 0):
		out.add(Action{Op: OpForged, To: from, Fault: FaultHome})
	}
	return false
}

// went does the work of [Cell.Went].
func (p *place) went(node gossip.NodeID, since uint64) bool {
	return node == p.route.Home ||
		slices.ContainsFunc(p.former, func(h formerHome) bool { return h.node == node && h.number >= since })
}
