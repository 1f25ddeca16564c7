// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// Tells to entities of the same node and of another process, and questions of a member and of a client that
// is none.

// measureLocalTells measures tells to entities of the same node.
func measureLocalTells(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	var found harness.Tally
	node, region, err := startProbes(ctx, s, &found)
	if err != nil {
		return out, err
	}
	defer dropNode(node)
	return tellAll(ctx, s, region, harness.Marks(found.Totals, harness.NoCPU), node)
}

// startProbes starts a node by itself with the entities that are told and asked. What they find goes into the tally.
func startProbes(ctx context.Context, s harness.Spec, found *harness.Tally) (*cluster.Node, *sharding.Region[*harness.Message], error) {
	node, err := startNode(ctx, nil, forTell(s))
	if err != nil {
		return nil, nil, err
	}
	region, err := sharding.Start(node, probes(found, s, ""))
	if err != nil {
		dropNode(node)
		return nil, nil, err
	}
	return node, region, nil
}

// measureRemote measures tells to the entities of another process.
func measureRemote(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	p, err := startPair(ctx, s, k)
	if err != nil {
		return out, err
	}
	defer p.end()
	return tellAll(ctx, s, p.region, p.host.Marks, p.node)
}

// measureAsk measures asks to the entities of another process.
func measureAsk(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	p, err := startPair(ctx, s, k)
	if err != nil {
		return out, err
	}
	defer p.end()
	return askAll(ctx, s, p.host, asking(p.region))
}

// measureClient measures questions of a client that is no member.
func measureClient(ctx context.Context, s harness.Spec, k *harness.Link) (out figure.Outcome, err error) {
	host, address, err := k.Peer(ctx, s.As(roleGateway))
	if err != nil {
		return out, err
	}
	defer host.Stop()
	cfg := client.Default()
	cfg.Addresses = []string{address}
	c, err := client.Open(cfg, client.WithLogger(quiet()))
	if err != nil {
		return out, err
	}
	defer func() { _ = c.Close() }() // It returns nil.
	if err := c.AwaitReady(ctx); err != nil {
		return out, err
	}
	return askAll(ctx, s, host, func(ctx context.Context, entity int, m *harness.Message) error {
		var codec harness.Codec
		b, err := codec.Append(make([]byte, 0, s.Size), m)
		if err != nil {
			return err
		}
		reply, err := c.Ask(ctx, kindName, entityName(entity), b)
		if err != nil {
			return err
		}
		var answer harness.Message
		if err := codec.Decode(reply, &answer); err != nil {
			return err
		}
		return answers(&answer, m)
	})
}

// askAll asks entities of another process, each asker its own.
func askAll(ctx context.Context, s harness.Spec, host *harness.Process, ask ask) (out figure.Outcome, err error) {
	if err := prime(ctx, s, ask); err != nil {
		return out, err
	}
	payload := make([]byte, s.Size-harness.HeaderBytes)
	return harness.Asking{
		Askers: s.Senders, Time: s.Time, Mark: harness.Without(uint64(s.Entities), host.Marks),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			return ask(ctx, int(asker)%s.Entities, &harness.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload})
		},
	}.Run(ctx)
}

// tellAll floods entities. With as many entities as senders each sender has an entity of
// its own; with more, each sender tells all of them in turn.
func tellAll(ctx context.Context, s harness.Spec, region *sharding.Region[*harness.Message], at harness.MarkFunction, node *cluster.Node) (out figure.Outcome, err error) {
	if err := prime(ctx, s, asking(region)); err != nil {
		return out, err
	}
	names := make([]string, s.Entities)
	for i := range names {
		names[i] = entityName(i)
	}
	out, err = harness.Flood{
		Senders: s.Senders, Time: s.Time, Mark: harness.Without(uint64(s.Entities), at),
		Send: func(ctx context.Context, sender uint32, stop *atomic.Bool) (uint64, error) {
			own := names
			if len(names) == s.Senders {
				own = names[sender : sender+1]
			}
			return tellOn(ctx, region, own, sender, s.Size, stop)
		},
	}.Run(ctx)
	if failed := node.Sharding().Stats().Failed; err == nil && failed > 0 {
		out.Note = fmt.Sprintf("%d tells failed after they were accepted", failed)
	}
	return out, err
}

// tellOn tells entities in turn until it is told to stop. It waits for room in their
// mailboxes, and returns how many messages were accepted.
func tellOn(ctx context.Context, region *sharding.Region[*harness.Message], names []string, sender uint32, size int, stop *atomic.Bool) (n uint64, err error) {
	payload := make([]byte, size-harness.HeaderBytes)
	sequences := make([]uint64, len(names))
	for i := 0; !stop.Load(); i++ {
		at := i % len(names)
		m := &harness.Message{Sender: sender, Seq: sequences[at] + 1, Payload: payload}
		if err := region.Tell(ctx, names[at], m); err != nil {
			return n, err
		}
		sequences[at]++
		n++
	}
	return n, nil
}
