// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/delivery/filequeue"
	"github.com/quorate/quorate/sharding/reminder"
	"github.com/quorate/quorate/sharding/state"
	"github.com/quorate/quorate/sharding/state/shardlog"
	"github.com/quorate/quorate/sharding/state/store"
)

const (
	// kind is the kind of the boxes.
	kind = "box"
	// shards is how many shards the kind begins with.
	shards = 40
)

// What a message to a box says before its text.
const (
	aLetter   = 'L'
	aReminder = 'R'
	aQuestion = '?'
)

// frame is a message to a box.
type frame = delivery.Frame[*wrapperspb.StringValue]

// box is the state of a box, as it is saved and answered.
type box struct {
	Letters   map[string]int `json:"letters"`   // How often each letter came.
	Reminders map[string]int `json:"reminders"` // How often the box was reminded, by the name of the reminder.
	Inbox     delivery.Inbox `json:"inbox"`
}

// receive takes letters and reminders, and answers questions. The state is saved before the acknowledgement leaves.
func receive(c *state.Context[box], f *frame) error {
	b := c.State()
	return f.Handle(c, &b.Inbox, func(m *wrapperspb.StringValue) error {
		what, text := m.GetValue()[0], m.GetValue()[1:]
		switch what {
		case aLetter:
			count(&b.Letters, text)
			return nil
		case aReminder:
			count(&b.Reminders, text)
			return c.Reply(m)
		default:
			answer, err := json.Marshal(b)
			return errors.Join(err, c.Reply(wrapperspb.String(string(answer))))
		}
	})
}

// count adds one to the number of a text.
func count(of *map[string]int, text string) {
	if *of == nil {
		*of = map[string]int{}
	}
	(*of)[text]++
}

// postService is the part of a post office that one node runs.
type postService struct {
	node      *cluster.Node
	boxes     *sharding.Region[*frame]
	queue     *filequeue.Queue
	producer  *delivery.Producer[*wrapperspb.StringValue]
	reminders *reminder.Service
}

// open starts the service on a node: boxes, reminders, postmaster, counters, and the queue with what was not confirmed
// when the process ended before.
func open(ctx context.Context, node *cluster.Node, states store.Store, o options) (*postService, error) {
	ids, err := shardlog.New(states, shardlog.Default())
	if err != nil {
		return nil, err
	}
	f := &postService{node: node}
	f.boxes, err = sharding.Start(node, sharding.Kind[*frame]{
		Name: kind, Shards: shards, Remember: ids, RememberFirst: true,
		Codec: delivery.Codec[*wrapperspb.StringValue](nil),
		New:   state.Snapshots(node.States(), state.JSON[box](), receive),
	})
	if err != nil {
		return nil, err
	}
	if f.reminders, err = node.Reminders(); err != nil {
		return nil, err
	}
	reminded := reminder.Ask[*wrapperspb.StringValue](f.boxes, func(r reminder.Fired) *frame {
		return delivery.Plain(wrapperspb.String(string(aReminder) + r.Name))
	})
	if err := f.reminders.Target(kind, reminded); err != nil {
		return nil, err
	}
	if f.queue, err = filequeue.Open(filepath.Join(o.own, "queue")); err != nil {
		return nil, err
	}
	cfg := delivery.Default()
	cfg.Queue = f.queue
	if f.producer, err = delivery.NewProducer(ctx, f.boxes, cfg); err != nil {
		return nil, errors.Join(err, f.queue.Close())
	}
	return f, errors.Join(startPostmaster(node, o.journal), startCounters(node, o.journal))
}

// close ends the producer. What its boxes have not confirmed stays in the queue.
func (f *postService) close(context.Context) error {
	f.producer.Close()
	return f.queue.Close()
}

// ask asks a box what it has.
func (f *postService) ask(ctx context.Context, id string) (json.RawMessage, error) {
	answer, err := sharding.Ask[*wrapperspb.StringValue](ctx, f.boxes, id, delivery.Plain(wrapperspb.String(string(aQuestion))))
	if err != nil {
		return nil, fmt.Errorf("post: the box %q: %w", id, err)
	}
	return json.RawMessage(answer.GetValue()), nil
}
