// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// sleepTime is how long a blocked entity sleeps at each message, and blockedAwoken how many of
// them get one in each of these times: so many sleep at any moment.
const (
	sleepTime     = time.Millisecond
	blockedAwoken = 20
)

// sleepingTurns is how many times the questions are measured without messages to blocked entities, and
// then beside them.
const sleepingTurns = 10

// blockedEntity is an entity that blocks its goroutine for sleepTime at each message.
type blockedEntity struct{}

// Receive sleeps, and answers questions.
func (blockedEntity) Receive(c *sharding.Context, m *harness.Message) error {
	<-time.After(sleepTime)
	if m.Ask {
		return c.Reply(m)
	}
	return nil
}

// measureBlocked measures questions to entities of the same node, in turns by themselves and
// while other entities of the node sleep: as many as s.Blocked, each now and then.
func measureBlocked(ctx context.Context, s harness.Spec, _ *harness.Link) (out figure.Outcome, err error) {
	var found harness.Tally
	node, region, err := startProbes(ctx, s, &found)
	if err != nil {
		return out, err
	}
	defer dropNode(node)
	ask := asking(region)
	if err := prime(ctx, s, ask); err != nil {
		return out, err
	}
	var awake atomic.Bool
	end, err := wakeSleepers(ctx, node, s.Blocked, &awake)
	if err != nil {
		return out, err
	}
	defer end()
	each := s.Entities / s.Senders
	payload := make([]byte, s.Size-harness.HeaderBytes)
	return harness.Asking{
		Askers: s.Senders, Time: s.Time, Pairs: sleepingTurns, Other: awake.Store,
		Mark: harness.Without(uint64(s.Entities), harness.Marks(found.Totals, harness.NoCPU)),
		Ask: func(ctx context.Context, asker uint32, n uint64) error {
			to, seq := int(asker)*each+int((n-1)%uint64(each)), (n-1)/uint64(each)+1
			return ask(ctx, to, &harness.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload})
		},
	}.Run(ctx)
}

// wakeSleepers starts entities that sleep, and tells them in turn while awake is set, until end
// is called.
func wakeSleepers(ctx context.Context, node *cluster.Node, sleepers int, awake *atomic.Bool) (end func(), err error) {
	region, err := sharding.Start(node, sharding.Kind[*harness.Message]{
		Name: "sleepers", Codec: harness.Codec{}, New: func(*sharding.Context) sharding.Entity[*harness.Message] { return blockedEntity{} },
	})
	if err != nil {
		return nil, err
	}
	if err := prime(ctx, harness.Spec{Size: harness.HeaderBytes, Entities: sleepers}, asking(region)); err != nil {
		return nil, err // Else the first messages would wait for homes, and come in one flood later.
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var telling sync.WaitGroup
	telling.Go(func() { // Ends with ctx; end waits for it.
		every := time.NewTicker(sleepTime)
		defer every.Stop()
		for next := 0; ctx.Err() == nil; {
			select {
			case <-ctx.Done():
				return
			case <-every.C:
			}
			if !awake.Load() {
				continue
			}
			for range blockedAwoken {
				if err := region.Tell(ctx, entityName(next%sleepers), &harness.Message{}); err != nil {
					cancel(err)
					return
				}
				next++
			}
		}
	})
	return func() {
		cancel(nil)
		telling.Wait()
	}, nil
}
