// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
)

// The program [chat]: each node has registered itself as a place to chat, and hears what is said at all of them. What
// one user says at one node is heard in that order and once at most. At the end each node finds the places of all that
// run and no others, and hears what is said then.

const (
	place = "chat"
	last  = "last" // The user who speaks at the end.
)

// chatMessage is the Count-th message of a user at a node.
type chatMessage struct {
	By    string
	Count int
}

// listener is a node with its topic, and what was heard there.
type listener struct {
	node  *clustertest.Node
	topic *pubsub.Topic[chatMessage]
	heard map[string]int // By user and node, the count of the last message.
}

type chat struct {
	*world

	guard     sync.Mutex
	listeners []*listener
	spoken    map[string]int // As heard.
}

func newChat(w *world) *chat { return &chat{world: w, spoken: map[string]int{}} }

func (p *chat) join(n *clustertest.Node) error {
	topics, err := n.Topics()
	if err != nil {
		return err
	}
	h := &listener{node: n, heard: map[string]int{}}
	if h.topic, err = pubsub.NewTopic(topics, place, pubsub.JSON[chatMessage]{}); err != nil {
		return err
	}
	services, err := n.Registry()
	if err != nil {
		return err
	}
	p.guard.Lock()
	p.listeners = append(p.listeners, h)
	p.guard.Unlock()
	go p.enter(h, services) // Owner: the node, with which it ends.
	return nil
}

// enter has a node hear, and registers it. Both wait for replicated data, which may have to wait for other nodes.
func (p *chat) enter(h *listener, services *registry.Registry) {
	heard, err := h.topic.Subscribe(context.Background())
	if err == nil {
		_, err = services.Register(context.Background(), registry.Entry{Name: place, Address: h.node.Address()})
	}
	if err != nil {
		p.note("%s has no chat: %v", h.node.Address(), err)
		return
	}
	p.listen(h, heard)
}

// voice names a user at a node, which is not the next one at the same address.
func voice(h *listener, user string) string {
	return fmt.Sprintf("%s at %v", user, h.node.Membership().Self())
}

// listen notes what is heard at a node, until it ends.
func (p *chat) listen(h *listener, from *pubsub.Subscription[chatMessage]) {
	for {
		m, err := from.Next(context.Background())
		if err != nil {
			return
		}
		p.guard.Lock()
		by := m.Value.By
		if m.Value.Count <= h.heard[by] {
			p.violation("%s heard remark %d of %s after remark %d", h.node.Address(), m.Value.Count, by, h.heard[by])
		}
		h.heard[by] = m.Value.Count
		p.guard.Unlock()
	}
}

func (p *chat) work(ctx context.Context) {
	p.users(ctx, "chat", users, 300*time.Millisecond, func(r *rand.Rand, user, _ int) {
		p.guard.Lock()
		h := p.listeners[r.IntN(len(p.listeners))]
		p.guard.Unlock()
		if h.node.Running() {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			p.say(limited, h, fmt.Sprint("user ", user))
		}
	})
}

// say has a user say something at a node. Whether it is heard nobody is told.
func (p *chat) say(ctx context.Context, h *listener, user string) {
	by := voice(h, user)
	p.guard.Lock()
	p.spoken[by]++
	count := p.spoken[by]
	p.guard.Unlock()
	if err := h.topic.Publish(ctx, chatMessage{by, count}); err != nil && user == last {
		p.violation("%s cannot say anything though nothing is wrong any more: %v", h.node.Address(), err)
	}
}

func (p *chat) judge(ctx context.Context) {
	running := slices.DeleteFunc(slices.Clone(p.listeners), func(h *listener) bool { return !h.node.Running() })
	var addresses []string
	for _, h := range running {
		addresses = append(addresses, h.node.Address())
		p.say(ctx, h, last)
	}
	slices.Sort(addresses)
	p.c.Advance(time.Second)
	for _, h := range running {
		p.judgeOne(ctx, h, running, addresses)
	}
}

// judgeOne judges what a node finds and has heard.
func (p *chat) judgeOne(ctx context.Context, h *listener, running []*listener, addresses []string) {
	services, err := h.node.Registry()
	if err != nil {
		p.violation("%s has no registry: %v", h.node.Address(), err)
		return
	}
	found, err := services.Find(ctx, place)
	if err != nil {
		p.violation("%s finds no places though nothing is wrong any more: %v", h.node.Address(), err)
		return
	}
	var places []string
	for _, e := range found {
		places = append(places, e.Address)
	}
	slices.Sort(places)
	if !slices.Equal(places, addresses) {
		p.violation("%s finds the places %v, and %v run", h.node.Address(), places, addresses)
	}
	p.guard.Lock()
	defer p.guard.Unlock()
	for _, from := range running {
		by := voice(from, last)
		if h.heard[by] != p.spoken[by] {
			p.violation("%s heard remark %d of %s though nothing is wrong any more, and not %d", h.node.Address(), h.heard[by], by, p.spoken[by])
		}
	}
}
