// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package quorate measures the entities and the membership of this repository as the other packages measure theirs:
// with the defaults, in a cluster of as many nodes as there are processes.
package quorate

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/peers/internal/actors"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// messages says how messages are encoded, made, checked and compared with their answers.
type messages[M any] struct {
	codec          sharding.Codec
	told, question func(size int, sender uint32, seq uint64) M
	take           func(*harness.Receiver, M) (question bool)
	answers        func(answer M, size int, sender uint32, seq uint64) error
}

// Library is Quorate with messages of protocol buffers.
func Library() actors.Library {
	return library("quorate", messages[*wrapperspb.BytesValue]{
		codec: sharding.Protobuf{}, told: actors.Value, question: actors.Question, take: actors.Take,
		answers: func(answer *wrapperspb.BytesValue, size int, sender uint32, seq uint64) error {
			return actors.Answers(answer, size, sender, seq)
		},
	})
}

// Raw is Quorate with messages that a codec of their own encodes as their bytes.
func Raw() actors.Library {
	message := func(size int, sender uint32, seq uint64, question bool) *harness.Message {
		return &harness.Message{Sender: sender, Seq: seq, Ask: question, Payload: make([]byte, size-harness.HeaderBytes)}
	}
	return library("quorate-raw", messages[*harness.Message]{
		codec:    harness.Codec{},
		told:     func(size int, sender uint32, seq uint64) *harness.Message { return message(size, sender, seq, false) },
		question: func(size int, sender uint32, seq uint64) *harness.Message { return message(size, sender, seq, true) },
		take: func(r *harness.Receiver, m *harness.Message) bool {
			r.Take(m.Sender, m.Seq, harness.HeaderBytes+len(m.Payload))
			return m.Ask
		},
		answers: func(answer *harness.Message, size int, sender uint32, seq uint64) error {
			if answer.Sender != sender || answer.Seq != seq || harness.HeaderBytes+len(answer.Payload) != size {
				return errors.New("the answer is to another question")
			}
			return nil
		},
	})
}

// hostRole is the role of the node whose process is told and asked.
const hostRole = "host"

func library[M any](name string, of messages[M]) actors.Library {
	return actors.Library{
		Name: name,
		Here: func(ctx context.Context, s harness.Spec, found *harness.Tally) (actors.Actors, error) {
			return start(ctx, s, found, of, hostRole)
		},
		Host: func(ctx context.Context, s harness.Spec, found *harness.Tally) (string, func(), error) {
			c, err := start(ctx, s, found, of, hostRole)
			if err != nil {
				return "", nil, err
			}
			return c.node.Self().Address.String(), c.Close, nil
		},
		There: func(ctx context.Context, s harness.Spec, address string) (actors.Actors, error) {
			return start(ctx, s, new(harness.Tally), of, "", address)
		},
	}
}

// probe is an entity that checks its messages, and answers those that are questions.
type probe[M any] struct {
	*harness.Receiver
	of messages[M]
}

// Receive checks a message. The answer is the message itself.
func (p probe[M]) Receive(c *sharding.Context, m M) error {
	if p.of.take(p.Receiver, m) {
		return c.Reply(m)
	}
	return nil
}

// client is a node and the names of the entities that it tells and asks.
type client[M any] struct {
	node   *cluster.Node
	region *sharding.Region[M]
	of     messages[M]
	names  []string
	size   int
}

// start starts a node, which founds a cluster if no seed nodes are given, and waits until it is up.
func start[M any](ctx context.Context, s harness.Spec, found *harness.Tally, of messages[M], role string, seeds ...string) (*client[M], error) {
	address, err := harness.FreeAddress(ctx)
	if err != nil {
		return nil, err
	}
	cfg := cluster.Default()
	cfg.Cluster.Name, cfg.Node.Address, cfg.Membership.SeedNodes = "peers", address, append(seeds, address)[:1]
	if role != "" {
		cfg.Node.Roles = []string{role}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	c := &client[M]{of: of, size: s.Size}
	if c.node, err = cluster.Start(ctx, cluster.WithConfig(cfg), cluster.WithLogger(log)); err != nil {
		return nil, err
	}
	if err := c.node.AwaitUp(ctx); err != nil {
		return nil, errors.Join(err, c.node.Close())
	}
	c.region, err = sharding.Start(c.node, sharding.Kind[M]{
		Name: "probe", Role: hostRole, Codec: of.codec,
		New: func(*sharding.Context) sharding.Entity[M] { return probe[M]{actors.Receiver(s, found), of} },
	})
	if err != nil {
		return nil, errors.Join(err, c.node.Close())
	}
	for i := range s.Entities {
		c.names = append(c.names, actors.Name(i))
	}
	return c, nil
}

// Tell sends a message, when there is room for it.
func (c *client[M]) Tell(ctx context.Context, to int, sender uint32, seq uint64) error {
	return c.region.Tell(ctx, c.names[to], c.of.told(c.size, sender, seq))
}

// Ask sends a message and waits for the answer.
func (c *client[M]) Ask(ctx context.Context, to int, sender uint32, seq uint64) error {
	answer, err := sharding.Ask[M](ctx, c.region, c.names[to], c.of.question(c.size, sender, seq))
	if err != nil {
		return err
	}
	return c.of.answers(answer, c.size, sender, seq)
}

// Close ends the node at once: its cluster ends with the run.
func (c *client[M]) Close() { _ = c.node.Membership().Close() } // It returns nil.
