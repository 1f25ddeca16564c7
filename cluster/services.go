// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/quorate/quorate/config/field"
	"github.com/quorate/quorate/ddata/services/pubsub"
	"github.com/quorate/quorate/ddata/services/registry"
)

// The parts that a node has only if the program uses them: the registry of services and
// topics, each on the replicated data.

// WithRegistry passes options to the registry of services of the node, see [Node.Registry].
func WithRegistry(opts ...registry.Option) Option {
	return func(o *options) { o.registry = append(o.registry, opts...) }
}

// WithTopics passes options to the topics of the node, see [Node.Topics].
func WithTopics(opts ...pubsub.Option) Option {
	return func(o *options) { o.topics = append(o.topics, opts...) }
}

// lazyPart is a part that starts when it is asked for first.
type lazyPart[T any] struct {
	open func() (*T, error) // Set before the first use.

	mu  sync.Mutex // Guards what follows; held while the part starts.
	got *T
}

// get returns the part. One that could not start is tried again by the next call.
func (l *lazyPart[T]) get() (_ *T, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.got == nil {
		l.got, err = l.open()
	}
	return l.got, err
}

// peek returns the part if it has started, nil otherwise.
func (l *lazyPart[T]) peek() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// startRegistry makes the registry ready to be asked for.
func startRegistry(_ context.Context, b *builder) error {
	opts := append([]registry.Option{registry.WithLogger(b.log), registry.WithMeterProvider(b.meters), registry.WithConfig(b.cfg.Registry)}, b.options.registry...)
	b.registry.open = func() (*registry.Registry, error) { return registry.New(b.data, opts...) }
	return nil
}

// stopRegistry waits for the end of the registry, which ends with the membership below it.
func stopRegistry(ctx context.Context, n *Node) error {
	err := n.member.Close()
	if r := n.registry.peek(); r != nil {
		err = errors.Join(err, r.AwaitEnd(ctx))
	}
	return err
}

// startTopics makes topics ready to be asked for.
func startTopics(_ context.Context, b *builder) error {
	opts := append([]pubsub.Option{pubsub.WithLogger(b.log), pubsub.WithMeterProvider(b.meters), pubsub.WithConfig(b.cfg.PubSub, b.cfg.Transport)}, b.options.topics...)
	b.topics.open = func() (*pubsub.PubSub, error) { return pubsub.New(b.data, opts...) }
	return nil
}

// stopTopics waits for the end of the topics, which end with the membership below them.
func stopTopics(ctx context.Context, n *Node) error {
	err := n.member.Close()
	if p := n.topics.peek(); p != nil {
		err = errors.Join(err, p.AwaitEnd(ctx))
	}
	return err
}

// validateTopics refuses messages that no frame has room for.
func (c Config) validateTopics() error {
	return field.Relate(field.Within("pubsub", c.PubSub.ValidateBeside(c.Transport)), "transport.max-frame-bytes")
}
