// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package pubsub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
)

// Publishing: a message is encoded once, goes once to each node that plan names, and into
// the inboxes of this node.

// Topic is a topic as publishers and subscribers of one node see it. Its methods are safe
// for concurrent use.
type Topic[T any] struct {
	p      *PubSub
	name   string
	codec  Codec[T]
	policy Policy
	state  atomic.Pointer[topicState] // As it was when somebody published last.
}

// TopicOption is an option of [NewTopic].
type TopicOption func(*topicOptions)

type topicOptions struct{ policy Policy }

// WithOverflow sets what [Topic.Publish] does when the connection to a node is full:
// [Block], which is the default, [Fail], or [DropNewest].
func WithOverflow(p Policy) TopicOption { return func(o *topicOptions) { o.policy = p } }

// NewTopic returns the topic with a name of 1 to 255 bytes of UTF-8. All nodes use codecs
// that understand each other. Errors: [ErrName], [ErrOption].
func NewTopic[T any](p *PubSub, name string, codec Codec[T], opts ...TopicOption) (*Topic[T], error) {
	var o topicOptions
	for _, opt := range opts {
		opt(&o)
	}
	if err := checkName("topic", name); err != nil {
		return nil, err
	}
	if o.policy >= DropOldest {
		return nil, fmt.Errorf("%w: %s for publishers: what was sent to a node cannot be dropped any more", ErrOption, o.policy)
	}
	return &Topic[T]{p: p, name: name, codec: codec, policy: o.policy}, nil
}

// checkName returns an error for a name that nothing can have.
func checkName(what, name string) error {
	if name == "" || len(name) > maxName || !gossip.IsName(name) {
		return fmt.Errorf("%w: %s %.300q is not a text of 1 to %d bytes of UTF-8, of characters that print", ErrName, what, name, maxName)
	}
	return nil
}

// Name returns the name of the topic.
func (t *Topic[T]) Name() string { return t.name }

// scratch holds buffers for encoding.
var scratch = sync.Pool{New: func() any { return new([]byte) }} //nolint:gochecknoglobals // A cache without meaning.

// Publish sends a message to all subscribers that this node knows of: to each that is in no
// group, and to one of each group. Nil means that every node with subscribers was sent the
// message, or that its policy has dropped it and counted that. Publishing without
// subscribers is no error.
//
// Errors: *[PublishError], after which the others have been sent the message; *[CodecError]
// and [ErrTooLarge], after which nobody has; [ErrClosed]; those of [ddata.Get] before the
// subscribers are known.
func (t *Topic[T]) Publish(ctx context.Context, v T) error {
	buffer := scratch.Get().(*[]byte)
	defer scratch.Put(buffer)
	data, err := encode(t.codec, (*buffer)[:0], v)
	if err != nil {
		return &CodecError{t.name, t.p.self, err}
	}
	if cap(data) <= maxBatch {
		*buffer = data[:0]
	}
	state := t.state.Load()
	if state == nil || state.over.Load() {
		if state, err = t.p.topic(ctx, t.name); err != nil {
			return err
		}
		t.state.Store(state)
	}
	r := delivery{p: t.p, t: state, policy: t.policy, m: message{topic: t.name, data: data}}
	return r.publish(ctx)
}

// delivery is the publication of one message to all who get it.
type delivery struct {
	p        *PubSub
	t        *topicState
	policy   Policy
	m        message
	failures []Failure
}

// publish sends the message. It keeps nothing of the data.
func (r *delivery) publish(ctx context.Context) error {
	p, t := r.p, r.t
	if size := len(r.m.data); size > p.largest {
		return fmt.Errorf("%w: topic %q: %d bytes, at most %d are allowed", ErrTooLarge, t.name, size, p.largest)
	}
	if p.ctx.Err() != nil {
		return fmt.Errorf("%w: the node", ErrClosed)
	}
	if !t.used.Load() {
		t.used.Store(true)
	}
	p.counters.published.Add(1)
	to, l := t.route.Load(), t.local.Load()
	if len(to.plain)+len(to.groups) == 0 && l.empty() {
		p.counters.unheard.Add(1)
	}
	if len(to.groups) > 0 {
		r.grouped(ctx, to)
	} else {
		for _, e := range to.plain {
			r.failed(e.node, "", e.send(ctx, &r.m, r.policy))
		}
		r.here(ctx, len(l.plain) > 0, nil)
	}
	if len(r.failures) > 0 {
		return r.err()
	}
	return nil
}

// err returns the error of what has failed.
func (r *delivery) err() error {
	for _, f := range r.failures {
		if errors.Is(f.Err, transport.ErrTooLarge) {
			return fmt.Errorf("%w: topic %q: %w", ErrTooLarge, r.t.name, f.Err)
		}
	}
	return &PublishError{r.t.name, r.failures}
}

// failed records an error; nil is ignored.
func (r *delivery) failed(node gossip.NodeID, group string, err error) {
	if err != nil {
		r.failures = append(r.failures, Failure{node, group, err})
	}
}

// here gives the message to the subscribers on this node.
func (r *delivery) here(ctx context.Context, plain bool, groups []string) {
	if plain || len(groups) > 0 {
		it := item{r.p.self, slices.Clone(r.m.data)}
		r.failed(r.p.self, "", r.t.deliver(ctx, it, plain, groups))
	}
}

// grouped sends the message to all nodes that plan names.
func (r *delivery) grouped(ctx context.Context, to *route) {
	r.t.mu.Lock()
	targets := plan(to.nodes, to.groups, r.t.turns)
	r.t.mu.Unlock()
	plain, groups := len(r.t.local.Load().plain) > 0, []string(nil)
	for _, target := range targets {
		if target.node == r.p.self {
			groups = target.groups
			continue
		}
		r.m.narrow, r.m.groups = !target.plain, target.groups
		err := r.p.peer(target.node).send(ctx, &r.m, r.policy)
		if err == nil {
			continue
		}
		if target.plain {
			r.failed(target.node, "", err)
		}
		for _, g := range target.groups {
			r.instead(ctx, to, g, target.node, err)
		}
	}
	r.here(ctx, plain, groups)
}

// instead sends the message to another node of a group, since the one whose turn it was has
// failed.
func (r *delivery) instead(ctx context.Context, to *route, group string, node gossip.NodeID, why error) {
	i := slices.IndexFunc(to.groups, func(g groupRoute) bool { return g.name == group })
	r.m.narrow, r.m.groups = true, []string{group}
	for _, other := range to.groups[i].nodes {
		switch {
		case other == node:
			continue
		case other == r.p.self:
			if r.t.deliver(ctx, item{r.p.self, slices.Clone(r.m.data)}, false, r.m.groups) == nil {
				return
			}
		case r.p.peer(other).send(ctx, &r.m, Fail) == nil:
			return
		}
	}
	r.failed(node, group, why)
}
