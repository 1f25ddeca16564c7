// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/bench/internal/sequence"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// sleepTime is how long a sleeper sleeps at each message, and sleepersAwoken how many of
// them get one in each of these times: so many sleep at any moment.
const (
	sleepTime      = time.Millisecond
	sleepersAwoken = 20
)

// sleepingTurns is how many times the questions are measured without messages to sleepers, and
// then beside them.
const sleepingTurns = 10

// sleeper is an entity that keeps its goroutine for a while at each message.
type sleeper struct{}

// Receive sleeps, and answers questions.
func (sleeper) Receive(c *sharding.Context, m *message.Message) error {
	<-time.After(sleepTime)
	if m.Ask {
		return c.Reply(m)
	}
	return nil
}

// measureBlocked measures questions to entities of the same node, in turns by themselves and
// while other entities of the node sleep: as many as s.Blocked, each now and then.
func measureBlocked(ctx context.Context, s process.Spec, _ *process.Link) (figure.Outcome, error) {
	node, err := rig.Start(ctx, nil, forTell())
	if err != nil {
		return figure.Outcome{}, err
	}
	defer rig.Drop(node)
	var found sequence.Tally
	region, err := sharding.Start(node, message.Probes(&found, s.Senders+1, s.Size, ""))
	if err != nil {
		return figure.Outcome{}, err
	}
	if err := message.Prime(ctx, s, region); err != nil {
		return figure.Outcome{}, err
	}
	var awake atomic.Bool
	end, err := wakeSleepers(ctx, node, s.Blocked, &awake)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer end()
	each := s.Entities / s.Senders
	payload := make([]byte, s.Size-message.HeaderBytes)
	return measure.Asking{
		Askers: s.Senders, Time: s.Time, Pairs: sleepingTurns, Other: awake.Store,
		Mark: measure.Without(uint64(s.Entities), measure.NewStopwatch(&found, measure.NoCPU).Mark),
		Ask: func(ctx context.Context, asker uint32, n uint64) error {
			to, seq := int(asker)*each+int((n-1)%uint64(each)), (n-1)/uint64(each)+1
			m := &message.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload}
			_, err := sharding.Ask[*message.Message](ctx, region, message.EntityName(to), m)
			return err
		},
	}.Run(ctx)
}

// wakeSleepers starts entities that sleep, and tells them in turn while awake is set, until end
// is called.
func wakeSleepers(ctx context.Context, node *cluster.Node, sleepers int, awake *atomic.Bool) (end func(), err error) {
	region, err := sharding.Start(node, sharding.Kind[*message.Message]{
		Name: "sleepers", Codec: message.Codec{}, New: func(*sharding.Context) sharding.Entity[*message.Message] { return sleeper{} },
	})
	if err != nil {
		return nil, err
	}
	if err := message.Prime(ctx, process.Spec{Size: message.HeaderBytes, Entities: sleepers}, region); err != nil {
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
			for range sleepersAwoken {
				if err := region.Tell(ctx, message.EntityName(next%sleepers), &message.Message{}); err != nil {
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
