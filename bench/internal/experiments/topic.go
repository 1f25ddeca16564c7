// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/ddata/services/pubsub"
)

// Topics between two processes: this one publishes to several topics, and the other one has
// a subscriber to each.

// topicRoom is the room of a subscriber: as in tells, where mailboxes have as much, what is
// measured is the way of a message and not the way back of the word that there is no room.
const topicRoom = 1 << 14

// topicOf returns the topic of a sender on a node.
func topicOf(node *cluster.Node, sender int) (*pubsub.Topic[[]byte], error) {
	p, err := node.Topics()
	if err != nil {
		return nil, err
	}
	return pubsub.NewTopic(p, topicName(sender), pubsub.Bytes{})
}

func topicName(sender int) string { return "bench-" + strconv.Itoa(sender) }

// measureTopic measures messages to the subscribers of another process.
func measureTopic(ctx context.Context, s harness.Spec, k *harness.Link) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(roleReader))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer p.Stop()
	node, err := startNode(ctx, []string{address}, nil)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer dropNode(node)
	var topics []*pubsub.Topic[[]byte]
	for i := range s.Senders {
		if err := awaitReader(ctx, node, topicName(i)); err != nil {
			return figure.Outcome{}, err
		}
		topic, err := topicOf(node, i)
		if err != nil {
			return figure.Outcome{}, err
		}
		topics = append(topics, topic)
	}
	return harness.Flood{
		Senders: s.Senders, Time: s.Time, Mark: p.Marks,
		Send: func(ctx context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			b := make([]byte, s.Size)
			for !stop.Load() {
				harness.PutHeader(b, sender, n+1)
				if err := topics[sender].Publish(ctx, b); err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
	}.Run(ctx)
}

// awaitReader waits until a node knows of the subscriber of a topic.
func awaitReader(ctx context.Context, node *cluster.Node, topic string) error {
	_, err := harness.Poll(ctx, pollInterval, func(time.Duration) (bool, error) {
		e, err := pubsub.Explain(ctx, node, topic)
		return len(e.Nodes) > 0, err
	})
	return err
}

// serveReader runs a node with a subscriber to the topic of each sender.
func serveReader(ctx context.Context, s harness.Spec, k *harness.Link) error {
	n, err := startNode(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer dropNode(n)
	var found harness.Tally
	for i := range s.Senders {
		topic, err := topicOf(n, i)
		if err != nil {
			return err
		}
		sub, err := topic.Subscribe(ctx, pubsub.WithRoom(topicRoom))
		if err != nil {
			return err
		}
		receiver := found.Receiver(s.Senders, s.Size)
		// The goroutine ends with the node, and that with the process.
		go func() {
			for {
				m, err := sub.Next(ctx)
				if err != nil {
					return
				}
				sender, seq := harness.Header(m.Value)
				receiver.Take(sender, seq, len(m.Value))
			}
		}()
	}
	return k.HostMarks(n.Self().Address.String(), &found)
}
