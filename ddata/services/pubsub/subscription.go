// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/ddata"
	"github.com/quorate/quorate/gossip"
)

// A subscription enters an inbox into its topic and tells the others by the data (subscribe).
// Next decodes what it has fetched from the inbox, all that waits there at once. Close takes
// the inbox out of the topic (leave).

// Subscription gives the messages of a topic to one subscriber. It is for one goroutine at a
// time, except Close and Dropped.
type Subscription[T any] struct {
	topic *Topic[T]
	state *topicState
	inbox *inbox

	ready []item // Taken from the inbox, to be read next.
	read  int    // How many of them were read.
	list  []item // Whose room the inbox gets next.
}

// Message is what a subscriber gets.
type Message[T any] struct {
	Value     T
	Publisher gossip.NodeID
}

// SubscribeOption is an option of [Topic.Subscribe] and [Topic.SubscribeGroup].
type SubscribeOption func(*subscribeOptions)

type subscribeOptions struct {
	policy Policy
	room   int
}

// WithPolicy sets what happens to messages when the subscriber has no room. The default is
// [Block].
func WithPolicy(p Policy) SubscribeOption { return func(o *subscribeOptions) { o.policy = p } }

// WithRoom sets how many messages may wait for the subscriber, at least 1. The default is
// 1024.
func WithRoom(n int) SubscribeOption { return func(o *subscribeOptions) { o.room = n } }

const defaultRoom = 1024

// Subscribe subscribes to the topic. Publishers on this node know of it when Subscribe
// returns, and those on other nodes soon after. Errors: [ErrOption], [ErrClosed]; those of
// [ddata.Update], after which nothing is subscribed.
func (t *Topic[T]) Subscribe(ctx context.Context, opts ...SubscribeOption) (*Subscription[T], error) {
	return t.subscribe(ctx, "", opts)
}

// SubscribeGroup subscribes to the topic in a group with a name of 1 to 255 bytes of UTF-8:
// each message goes to one subscriber of the group, wherever they are. Errors: as those of
// Subscribe, and [ErrName].
func (t *Topic[T]) SubscribeGroup(ctx context.Context, group string, opts ...SubscribeOption) (*Subscription[T], error) {
	if err := checkName("group", group); err != nil {
		return nil, err
	}
	return t.subscribe(ctx, group, opts)
}

func (t *Topic[T]) subscribe(ctx context.Context, group string, opts []SubscribeOption) (*Subscription[T], error) {
	o := subscribeOptions{room: defaultRoom}
	for _, opt := range opts {
		opt(&o)
	}
	if o.room < 1 || o.policy >= policies {
		return nil, fmt.Errorf("%w: room for %d messages, policy %s", ErrOption, o.room, o.policy)
	}
	b := &inbox{group: group, policy: o.policy, max: o.room, wake: make(chan struct{}, 1)}
	state, err := t.p.enter(t.name, b)
	if err != nil {
		return nil, err
	}
	s := &Subscription[T]{topic: t, state: state, inbox: b}
	err = t.p.tell(ctx, t.name, ddata.Local())
	if err == nil {
		err = t.p.refresh(ctx, state)
	}
	if err != nil {
		t.p.leave(state, b)
		return nil, err
	}
	return s, nil
}

// enter adds an inbox to a topic.
func (p *PubSub) enter(name string, b *inbox) (*topicState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, fmt.Errorf("%w: the node", ErrClosed)
	}
	p.last++
	b.id = p.last
	t := p.known(name)
	t.local.Store(t.local.Load().with(b))
	return t, nil
}

// leave takes an inbox from its topic. The reconciler tells the others if they cannot be told
// at once.
func (p *PubSub) leave(t *topicState, b *inbox) {
	b.end()
	p.mu.Lock()
	t.local.Store(t.local.Load().without(b))
	p.mu.Unlock()
	p.reconciler.RepairLater(t.name)
	p.start(func() { _ = p.tell(p.ctx, t.name, ddata.Local()) })
	p.resume(t)
}

// Next waits for the next message, until ctx ends. Errors: *[CodecError] for a message that
// cannot be decoded, after which Next may be called again; [ErrClosed] when the subscription
// or the node has ended.
func (s *Subscription[T]) Next(ctx context.Context) (m Message[T], err error) {
	for s.read == len(s.ready) {
		if err := s.fetch(ctx); err != nil {
			return m, err
		}
	}
	it := s.ready[s.read]
	s.ready[s.read] = item{} // Let go of it.
	s.read++
	m.Publisher = it.from
	if m.Value, err = decode(s.topic.codec, it.data); err != nil {
		s.topic.p.counters.undecoded.Add(1)
		return Message[T]{}, &CodecError{s.topic.name, it.from, err}
	}
	return m, nil
}

// fetch takes what waits in the inbox.
func (s *Subscription[T]) fetch(ctx context.Context) error {
	queue, full, ended := s.inbox.take(s.list)
	if ended {
		return fmt.Errorf("%w: the subscription", ErrClosed)
	}
	s.list = s.ready[:0]
	s.ready, s.read = queue, 0
	if cap(s.list) > 2*s.inbox.max {
		s.list = nil
	}
	if full {
		s.topic.p.resume(s.state)
	}
	if len(queue) > 0 {
		return nil
	}
	select {
	case <-s.inbox.wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Dropped returns how many messages were dropped since the subscriber had no room.
func (s *Subscription[T]) Dropped() uint64 {
	lost, _ := s.inbox.losses()
	return lost
}

// Close ends the subscription. Messages that were not read are dropped. Calling it again
// does nothing.
func (s *Subscription[T]) Close() {
	if s.inbox.end() {
		s.topic.p.leave(s.state, s.inbox)
	}
}
