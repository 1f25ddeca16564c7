// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/bench/internal/sequence"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// measureLocal measures tells to entities of the same node.
func measureLocal(ctx context.Context, s process.Spec, _ *process.Link) (figure.Outcome, error) {
	node, err := rig.Start(ctx, nil, forTell())
	if err != nil {
		return figure.Outcome{}, err
	}
	defer rig.Drop(node)
	var found sequence.Tally
	probes := message.Probes(&found, s.Senders+1, s.Size, "")
	probes.EntityLimit = s.InMemory
	region, err := sharding.Start(node, probes)
	if err != nil {
		return figure.Outcome{}, err
	}
	return tellAll(ctx, s, region, measure.NewStopwatch(&found, measure.NoCPU).Mark, node)
}

// measureRemote measures tells to the entities of another process.
func measureRemote(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
	region, node, p, end, err := pair(ctx, s, k)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer end()
	return tellAll(ctx, s, region, measure.RemoteMark(p), node)
}

// measureAsk measures asks to the entities of another process.
func measureAsk(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
	region, _, p, end, err := pair(ctx, s, k)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer end()
	if err := message.Prime(ctx, s, region); err != nil {
		return figure.Outcome{}, err
	}
	payload := make([]byte, s.Size-message.HeaderBytes)
	return measure.Asking{
		Askers: s.Senders, Time: s.Time, Mark: measure.Without(uint64(s.Entities), measure.RemoteMark(p)),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			m := &message.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload}
			answer, err := sharding.Ask[*message.Message](ctx, region, message.EntityName(int(asker)%s.Entities), m)
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
func tellAll(ctx context.Context, s process.Spec, region *sharding.Region[*message.Message], at func(context.Context) (measure.Mark, error), node *cluster.Node) (figure.Outcome, error) {
	if err := message.Prime(ctx, s, region); err != nil {
		return figure.Outcome{}, err
	}
	names := make([]string, s.Entities)
	for i := range names {
		names[i] = message.EntityName(i)
	}
	out, err := measure.Flood{
		Senders: s.Senders, Time: s.Time, Mark: measure.Without(uint64(s.Entities), at),
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
func tellOn(ctx context.Context, region *sharding.Region[*message.Message], names []string, sender uint32, size int, stop *atomic.Bool) (n uint64, err error) {
	payload := make([]byte, size-message.HeaderBytes)
	sequences := make([]uint64, len(names))
	for i := 0; !stop.Load(); i++ {
		at := i % len(names)
		m := &message.Message{Sender: sender, Seq: sequences[at] + 1, Payload: payload}
		if err := region.Tell(ctx, names[at], m); err != nil {
			return n, err
		}
		sequences[at]++
		n++
	}
	return n, nil
}
