// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
)

// What a node knows of a topic: its own subscribers (local), and where others are (route),
// which is made anew from the distributed data whenever they or the members change. Both are
// replaced and never changed, so that publishing reads them without a lock.

// content is the value of a topic: the nodes with subscribers, by group; "" stands for those
// in no group.
type content = crdt.ORMultiMap[string, string]

// topicState is a topic on this node.
type topicState struct {
	name  string
	route atomic.Pointer[route]
	local atomic.Pointer[local]
	used  atomic.Bool // Somebody has published since the last look.
	over  atomic.Bool // Nobody used it for long: another one takes its place.

	losses *losses

	mu     sync.Mutex // Guards what follows; held for bookkeeping only.
	begun  uint64     // How many times the value was read to make the route anew.
	routed uint64     // Which of these reads made the present route.
	turns  turns
	inner  map[string]*rotation[uint64] // The rotations among the receivers of a group on this node.
	paused map[gossip.NodeID]told       // The nodes that know of subscribers without room.
}

// told is the last signal about a topic that was sent to a node, and when.
type told struct {
	state state
	at    time.Time
}

// route says where the subscribers of a topic are.
type route struct {
	plain  []*peer // Other nodes with subscribers in no group.
	nodes  []gossip.NodeID
	groups []groupRoute // Nodes with receivers, this one included.
}

// local are the subscribers of a topic on this node.
type local struct {
	plain  []*inbox
	groups map[string][]*inbox // Sorted by id.
}

// all returns all inboxes.
func (l *local) all() []*inbox {
	all := slices.Clone(l.plain)
	for _, g := range l.groups {
		all = append(all, g...)
	}
	return all
}

// empty reports whether there is no subscriber.
func (l *local) empty() bool { return len(l.plain) == 0 && len(l.groups) == 0 }

// with returns the subscribers with one more.
func (l *local) with(b *inbox) *local {
	return l.but(b, func(list []*inbox) []*inbox { return append(list, b) })
}

// without returns the subscribers without one.
func (l *local) without(b *inbox) *local {
	return l.but(b, func(list []*inbox) []*inbox {
		return slices.DeleteFunc(list, func(o *inbox) bool { return o == b })
	})
}

// but returns the subscribers with the list changed to which one belongs.
func (l *local) but(b *inbox, change func([]*inbox) []*inbox) *local {
	n := &local{plain: l.plain, groups: maps.Clone(l.groups)}
	if b.group == "" {
		n.plain = change(slices.Clone(l.plain))
		return n
	}
	if n.groups == nil {
		n.groups = map[string][]*inbox{}
	}
	if n.groups[b.group] = change(slices.Clone(l.groups[b.group])); len(n.groups[b.group]) == 0 {
		delete(n.groups, b.group)
	}
	return n
}

// has reports whether there are subscribers in a group, "" for those in none.
func (l *local) has(group string) bool {
	if group == "" {
		return len(l.plain) > 0
	}
	return len(l.groups[group]) > 0
}

// topic returns a topic with its route.
func (p *PubSub) topic(ctx context.Context, name string) (*topicState, error) {
	if t, ok := p.topics.Load(name); ok {
		t := t.(*topicState)
		if t.route.Load() != nil {
			return t, nil
		}
	}
	p.mu.Lock()
	t := p.known(name)
	p.mu.Unlock()
	if t.route.Load() == nil {
		if err := p.refresh(ctx, t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// known returns a topic, perhaps without a route. The caller holds mu.
func (p *PubSub) known(name string) *topicState {
	if t, ok := p.topics.Load(name); ok {
		return t.(*topicState)
	}
	t := &topicState{name: name, losses: &p.losses, turns: turns{}, inner: map[string]*rotation[uint64]{}, paused: map[gossip.NodeID]told{}}
	t.local.Store(&local{})
	p.topics.Store(name, t)
	return t
}

// refresh reads the value of a topic and makes its route from it. It waits for nobody else who does, and a route of an
// earlier read does not take the place of that of a later one.
func (p *PubSub) refresh(ctx context.Context, t *topicState) error {
	t.mu.Lock()
	t.begun++
	read := t.begun
	t.mu.Unlock()
	c, err := p.content(ctx, t.name)
	if err != nil {
		return err
	}
	r := p.routeOf(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	if read > t.routed {
		t.routed = read
		t.turns.keep(r.groups)
		t.route.Store(r)
	}
	return nil
}

// content returns the value of a topic, empty if there is none.
func (p *PubSub) content(ctx context.Context, name string) (content, error) {
	return contentOf(ctx, p.data, name)
}

// contentOf returns the value of a topic, empty if there is none.
func contentOf(ctx context.Context, data *ddata.Replicator, name string) (content, error) {
	c, err := ddata.Get(ctx, data, ddata.NewKey[content](Prefix+name), ddata.Local())
	if errors.Is(err, ddata.ErrNotFound) || errors.Is(err, ddata.ErrDeleted) {
		return content{}, nil
	}
	if err != nil {
		err = wrap(name, err)
	}
	return c, err
}

// routeOf makes a route of a value.
func (p *PubSub) routeOf(c content) *route {
	r := new(route)
	r.nodes, r.groups = whoGets(p.node.State(), p.self, c)
	for _, node := range r.nodes {
		r.plain = append(r.plain, p.peer(node))
	}
	return r
}

// whoGets returns the nodes to which a value of a topic leads: those but self with
// subscribers in no group, and the groups. Nodes that are no members, or downed, are left
// out.
func whoGets(state *gossip.State, self gossip.NodeID, c content) (plain []gossip.NodeID, groups []groupRoute) {
	for group := range c.Keys() {
		var nodes []gossip.NodeID
		for text := range c.At(group) {
			node, err := gossip.ParseNodeID(text)
			if err != nil {
				continue
			}
			if m := state.Member(node); m != nil && m.Status != gossip.Down {
				nodes = append(nodes, node)
			}
		}
		slices.SortFunc(nodes, gossip.NodeID.Compare)
		switch {
		case len(nodes) == 0:
		case group != "":
			groups = append(groups, groupRoute{group, nodes})
		default:
			plain = slices.DeleteFunc(nodes, func(n gossip.NodeID) bool { return n == self })
		}
	}
	return plain, groups
}

// peer returns the peer for a node.
func (p *PubSub) peer(node gossip.NodeID) *peer {
	if e, ok := p.peers.Load(node); ok {
		return e.(*peer)
	}
	e, _ := p.peers.LoadOrStore(node, newPeer(p, node))
	return e.(*peer)
}

// deliver gives a message of this node to its subscribers here: to those in no group if
// plain is set, and to one of each of the groups.
func (t *topicState) deliver(ctx context.Context, it item, plain bool, groups []string) error {
	l := t.local.Load()
	var faults []error
	if plain {
		for _, b := range l.plain {
			faults = append(faults, t.offer(ctx, b, it))
		}
	}
	for _, g := range groups {
		if list := l.groups[g]; len(list) > 0 {
			faults = append(faults, t.offer(ctx, t.receiver(g, list), it))
		}
	}
	return errors.Join(faults...)
}

// receiver returns the receiver of a group on this node whose turn it is: the next one that
// has room, or the next one if none has.
func (t *topicState) receiver(group string, list []*inbox) *inbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.inner[group]
	if r == nil {
		r = new(rotation[uint64])
		t.inner[group] = r
	}
	ids := make([]uint64, len(list))
	for i, b := range list {
		ids[i] = b.id
	}
	first := r.next(ids, cmp.Compare[uint64])
	for n := range list {
		if i := (first + n) % len(list); list[i].hasRoom() {
			r.last = ids[i]
			return list[i]
		}
	}
	return list[first]
}

// offer gives a message of this node to a subscriber, as its policy says.
func (t *topicState) offer(ctx context.Context, b *inbox, it item) error {
	for {
		switch v := b.offer(it); {
		case v == taken:
			return nil
		case v == dropped:
			t.losses.add(lossSubscriber, 1)
			return nil
		case b.policy == Fail:
			return ErrSlow
		}
		if err := b.waitForRoom(ctx); err != nil {
			return err
		}
	}
}

// take gives a message of another node to the subscribers here, without waiting for anybody.
// It returns how many messages were dropped for it, how many subscribers have it, and what
// its publisher is to know.
func (t *topicState) take(it item, m *message) (lost, got int, s state) {
	l := t.local.Load()
	give := func(b *inbox) {
		v, is := b.offerRemote(it)
		if got++; v == dropped {
			lost++
		}
		s = max(s, is)
	}
	if !m.narrow {
		for _, b := range l.plain {
			give(b)
		}
	}
	for _, g := range m.groups {
		if list := l.groups[g]; len(list) > 0 {
			give(t.receiver(g, list))
		}
	}
	return lost, got, s
}

// pause notes what a node is to be told of the room, and reports whether to tell it: it may
// know already.
func (t *topicState) pause(node gossip.NodeID, s state, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if before := t.paused[node]; before.state == s && now.Sub(before.at) < pauseFor/2 {
		return false
	}
	t.paused[node] = told{s, now}
	return true
}

// resumed returns the nodes that are to be told that there is room again, and forgets them.
// It returns none while there is none.
func (t *topicState) resumed() (nodes []gossip.NodeID) {
	for _, b := range t.local.Load().all() {
		if b.pressure() != open {
			return nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for node := range t.paused {
		nodes = append(nodes, node)
	}
	clear(t.paused)
	slices.SortFunc(nodes, gossip.NodeID.Compare)
	return nodes
}
