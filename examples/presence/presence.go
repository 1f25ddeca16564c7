// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/ddata/crdt"
	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/membership"
)

// A presence follows three things, each on a goroutine of its own: the online key, the seen
// keys, and the members. Each news wakes a fourth goroutine, which makes the online key say
// what it should (keep), and wakes whoever waits for another board (look).

const (
	// writeTimeout bounds one write. One that has not ended by then is stored on this node
	// and goes on to the others, or is tried again.
	writeTimeout = 3 * time.Second
	// retryAfter is how long a write of the online key that failed is left alone.
	retryAfter = time.Second
)

// presence knows who is online, on all nodes.
type presence struct {
	host ddata.Host
	node *membership.Node
	log  *slog.Logger

	ctx    context.Context //nolint:containedctx // Ends with close, and with it what the goroutines wait for.
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{} // Holds one token when the online key may be other than it should.

	mu     sync.Mutex                      // Guards what follows.
	here   map[string]int                  // The number of streams of each name on this node.
	online crdt.ORMultiMap[string, string] // The online key, as it was last told.
	seen   map[string]seen
	noting map[string]bool // The names of which the seen key is being written.
	news   chan struct{}   // Closed when the board has changed.
}

// open begins to follow what the nodes say. Close ends it.
func open(h ddata.Host, log *slog.Logger) *presence {
	p := &presence{
		host: h, node: h.Data().Node(), log: log, wake: make(chan struct{}, 1),
		here: map[string]int{}, seen: map[string]seen{}, noting: map[string]bool{}, news: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	// All of them are owned by the presence: close ends them and waits.
	p.work.Go(p.followOnline)
	p.work.Go(p.followSeen)
	p.work.Go(p.followMembers)
	p.work.Go(p.keep)
	return p
}

// close ends all goroutines and waits for them. It may be called again.
func (p *presence) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
}

// tell applies a change, and wakes everybody who waits for one.
func (p *presence) tell(change func()) {
	p.mu.Lock()
	change()
	close(p.news)
	p.news = make(chan struct{})
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// followOnline follows the online key.
func (p *presence) followOnline() {
	sub := ddata.Subscribe(p.host, onlineKey())
	defer sub.Close()
	for {
		event, err := sub.Next(p.ctx)
		if err != nil {
			p.lost("the online key", err)
			return
		}
		p.tell(func() { p.online = event.Value })
	}
}

// followSeen follows all seen keys.
func (p *presence) followSeen() {
	sub := ddata.SubscribePrefix[crdt.LWWRegister[seen]](p.host, seenPrefix)
	defer sub.Close()
	for {
		event, err := sub.Next(p.ctx)
		if err != nil {
			p.lost("the seen keys", err)
			return
		}
		if s, ok := event.Value.Value(); ok {
			p.tell(func() { p.seen[strings.TrimPrefix(event.Key.Name(), seenPrefix)] = s })
		}
	}
}

// followMembers follows the members.
func (p *presence) followMembers() {
	sub := p.node.Subscribe()
	defer sub.Close()
	for {
		if _, err := sub.Next(p.ctx); err != nil {
			p.lost("the members", err)
			return
		}
		p.tell(func() {})
	}
}

// lost logs why something is not followed any more, unless the presence or the node has
// ended.
func (p *presence) lost(what string, err error) {
	if !p.over(err) {
		p.log.Error("this page stands still: "+what+" cannot be followed", "error", err)
	}
}

// keep makes the online key say what it should, whenever there are news, until the presence
// ends.
func (p *presence) keep() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wake:
		}
		err := p.tidy()
		if err == nil || p.over(err) {
			continue
		}
		p.log.Warn("the online key was not written, it is tried again", "error", err)
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(retryAfter):
			p.tell(func() {})
		}
	}
}

// tidy makes the online key say which names are connected to this node, and takes away the
// entries of nodes that are gone if this node leads. A node that is not up says nothing: the
// others may not know it yet, and would take its entries for those of a node that is gone.
func (p *presence) tidy() error {
	view := p.node.View()
	if m := view.Member(); m == nil || m.Status < gossip.Up || m.Status > gossip.Ready {
		return nil
	}
	ctx, cancel := context.WithTimeout(p.ctx, writeTimeout)
	defer cancel()
	m, err := ddata.Get(ctx, p.host, onlineKey(), ddata.Local())
	if err != nil && !errors.Is(err, ddata.ErrNotFound) {
		return err
	}
	p.mu.Lock()
	here := slices.Collect(maps.Keys(p.here))
	p.mu.Unlock()
	add, remove := plan(m, view.Self.String(), here, view.Leader == view.Self, func(node string) bool {
		return slices.ContainsFunc(view.State.Members(), func(m *gossip.Member) bool { return m.Node.String() == node })
	})
	if len(add)+len(remove) == 0 {
		return nil
	}
	return writeOnline(ctx, p.host, add, remove)
}

// over reports whether an error only says that the presence or the node has ended.
func (p *presence) over(err error) bool {
	return p.ctx.Err() != nil || errors.Is(err, ddata.ErrClosed) || errors.Is(err, membership.ErrClosed)
}

// join says that a name has connected to this node. Whoever calls it calls leave when the
// connection ends; a name with several connections is online until the last one ends.
func (p *presence) join(name string) (leave func()) {
	p.tell(func() { p.here[name]++ })
	p.note(name)
	return func() {
		p.tell(func() {
			if p.here[name]--; p.here[name] == 0 {
				delete(p.here, name)
			}
		})
		p.note(name)
	}
}

// note says that a name is seen now, without waiting for it. While the name is being written
// already nothing is said: the next pulse says it.
func (p *presence) note(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noting[name] || p.ctx.Err() != nil { // Close waits for nothing that begins after it.
		return
	}
	p.noting[name] = true
	// Owned by the presence: the write ends with its time, or with close.
	p.work.Go(func() {
		if err := p.writeSeen(name); err != nil && !p.over(err) {
			p.log.Warn("when a name was seen is not on the disks of a majority yet", "name", name, "error", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.noting, name)
	})
}

// writeSeen writes that a name is seen now, as soon as this node has the data of the others.
func (p *presence) writeSeen(name string) error {
	s := seen{time.Now().UnixMilli(), p.node.Self().Address.String()}
	if err := p.host.Data().AwaitReady(p.ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, writeTimeout)
	defer cancel()
	return writeSeen(ctx, p.host, name, s)
}

// pageContent is what the page shows, as JSON.
type pageContent struct {
	Node    string   `json:"node"`
	Members []member `json:"members"`
	People  []person `json:"people"`
}

// member is one member as the node of the page sees it.
type member struct {
	Node      string `json:"node"`
	Status    string `json:"status"`
	Reachable bool   `json:"reachable"`
	Leads     bool   `json:"leads"`
}

// person is one name. Online are the addresses of the nodes that the name is connected to,
// Lost those among them of which nothing is heard and that are not removed yet.
type person struct {
	Name   string    `json:"name"`
	Online []string  `json:"online"`
	Lost   []string  `json:"lost"`
	Seen   time.Time `json:"seen"` // Zero if the name was never seen.
	SeenAt string    `json:"seen_at"`
}

// look returns the board, and a channel that is closed when there is another one.
func (p *presence) look() (pageContent, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	view := p.node.View()
	b := pageContent{Node: p.node.Self().Address.String(), People: people(view, p.online, p.seen)}
	for _, m := range view.State.Members() {
		b.Members = append(b.Members, member{m.Node.Address.String(), m.Status.String(), view.State.Reachable(m.Node), m.Node == view.Leader})
	}
	return b, p.news
}

// people returns everybody who is online or was seen, by name. Entries of nodes that are no
// members count for nothing, whether they are taken away already or not.
func people(view membership.View, online crdt.ORMultiMap[string, string], seen map[string]seen) []person {
	all := map[string]*person{}
	of := func(name string) *person {
		if all[name] == nil {
			all[name] = &person{Name: name}
		}
		return all[name]
	}
	for name, s := range seen {
		of(name).Seen, of(name).SeenAt = s.time(), s.node
	}
	members := map[string]*gossip.Member{}
	for _, m := range view.State.Members() {
		members[m.Node.String()] = m
	}
	for name, node := range online.All() {
		m := members[node]
		switch {
		case m == nil:
		case view.State.Reachable(m.Node):
			of(name).Online = append(of(name).Online, m.Node.Address.String())
		default:
			of(name).Lost = append(of(name).Lost, m.Node.Address.String())
		}
	}
	var sorted []person
	for _, p := range all {
		sorted = append(sorted, *p)
	}
	slices.SortFunc(sorted, func(a, b person) int { return cmp.Compare(a.Name, b.Name) })
	return sorted
}
