// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// measureLocalTells measures tells to entities of the same node.
func measureLocalTells(ctx context.Context, s rig.Spec, _ *rig.Link) (figure.Outcome, error) {
	node, err := startNode(ctx, nil, forTell())
	if err != nil {
		return figure.Outcome{}, err
	}
	defer dropNode(node)
	var found rig.Tally
	probes := probes(&found, s.Senders+1, s.Size, "")
	probes.EntityLimit = s.InMemory
	region, err := sharding.Start(node, probes)
	if err != nil {
		return figure.Outcome{}, err
	}
	return tellAll(ctx, s, region, rig.Marks(found.Totals, rig.NoCPU), node)
}

// measureRemote measures tells to the entities of another process.
func measureRemote(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	region, node, p, end, err := pair(ctx, s, k)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer end()
	return tellAll(ctx, s, region, p.Marks, node)
}

// measureAsk measures asks to the entities of another process.
func measureAsk(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	region, _, p, end, err := pair(ctx, s, k)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer end()
	if err := prime(ctx, s, region); err != nil {
		return figure.Outcome{}, err
	}
	payload := make([]byte, s.Size-rig.HeaderBytes)
	return rig.Asking{
		Askers: s.Senders, Time: s.Time, Mark: rig.Without(uint64(s.Entities), p.Marks),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			m := &rig.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload}
			answer, err := sharding.Ask[*rig.Message](ctx, region, entityName(int(asker)%s.Entities), m)
			if err != nil {
				return err
			}
			if answer.Sender != asker || answer.Seq != seq || len(answer.Payload) != len(payload) {
				return fmt.Errorf("the answer is to question %d of %d", answer.Seq, answer.Sender)
			}
			return nil
		},
	}.Run(ctx)
}

// tellAll floods entities. With as many entities as senders each sender has an entity of
// its own; with more, each sender tells all of them in turn.
func tellAll(ctx context.Context, s rig.Spec, region *sharding.Region[*rig.Message], at func(context.Context) (rig.Mark, error), node *cluster.Node) (figure.Outcome, error) {
	if err := prime(ctx, s, region); err != nil {
		return figure.Outcome{}, err
	}
	names := make([]string, s.Entities)
	for i := range names {
		names[i] = entityName(i)
	}
	out, err := rig.Flood{
		Senders: s.Senders, Time: s.Time, Mark: rig.Without(uint64(s.Entities), at),
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
func tellOn(ctx context.Context, region *sharding.Region[*rig.Message], names []string, sender uint32, size int, stop *atomic.Bool) (n uint64, err error) {
	payload := make([]byte, size-rig.HeaderBytes)
	sequences := make([]uint64, len(names))
	for i := 0; !stop.Load(); i++ {
		at := i % len(names)
		m := &rig.Message{Sender: sender, Seq: sequences[at] + 1, Payload: payload}
		if err := region.Tell(ctx, names[at], m); err != nil {
			return n, err
		}
		sequences[at]++
		n++
	}
	return n, nil
}
