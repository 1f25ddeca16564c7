// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/cluster/clustertest"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/delivery"
	"github.com/quorate/quorate/sharding/state"
)

// The program [deliveries]: a producer on each node sends numbers to entities whose inbox is a part of their state.
// Each entity has the numbers of a producer once and in their order, and all of those of a producer whose node has not
// ended. A producer without a queue loses what was not confirmed when its node ends (package sharding/delivery).

const (
	receiverKind = "purse"
	receivers    = 4
)

// receiverState is the state of an entity that receives deliveries: the numbers that it has had, and its inbox.
type receiverState struct {
	Seen  []string
	Inbox delivery.Inbox
}

// receive handles a number, or says what was had.
func receive(c *state.Context[receiverState], f *delivery.Frame[text]) error {
	c.State().Inbox.Sessions = 256 // No producer of a run is forgotten.
	return f.Handle(c, &c.State().Inbox, func(message text) error {
		if message.GetValue() == "show" {
			return c.Reply(wrapperspb.String(strings.Join(c.State().Seen, ",")))
		}
		c.State().Seen = append(c.State().Seen, message.GetValue())
		return nil
	})
}

// A sender is a producer and what it has sent to each entity.
type sender struct {
	node     *clustertest.Node
	region   *sharding.Region[*delivery.Frame[text]]
	producer *delivery.Producer[text]
	sent     [receivers]int
}

type deliveries struct {
	*world

	guard   sync.Mutex
	senders []*sender
}

func newDeliveries(w *world) *deliveries { return &deliveries{world: w} }

func (p *deliveries) join(n *clustertest.Node) error {
	s := &sender{node: n}
	var err error
	s.region, err = sharding.Start(n, sharding.Kind[*delivery.Frame[text]]{
		Name: receiverKind, Shards: 8, Codec: delivery.Codec[text](nil), New: state.Snapshots(n.States(), state.JSON[receiverState](), receive),
	})
	if err != nil {
		return err
	}
	if s.producer, err = delivery.NewProducer(context.Background(), s.region, delivery.Default()); err != nil {
		return err
	}
	p.Cleanup(s.producer.Close)
	p.guard.Lock()
	defer p.guard.Unlock()
	p.senders = append(p.senders, s)
	return nil
}

func (p *deliveries) work(ctx context.Context) {
	r := p.source("deliveries")
	for sleep(ctx, r, 100*time.Millisecond) {
		p.step(ctx, r)
	}
}

// step sends a number from a node that runs.
func (p *deliveries) step(ctx context.Context, r *rand.Rand) {
	p.guard.Lock()
	i := r.IntN(len(p.senders))
	s := p.senders[i]
	p.guard.Unlock()
	if !s.node.Running() {
		return
	}
	to := r.IntN(receivers)
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.producer.Send(limited, fmt.Sprint("p", to), wrapperspb.String(fmt.Sprintf("%d.%d", i, s.sent[to]))); err == nil {
		s.sent[to]++ // What Send refuses is not sent: its number goes to the next one.
	}
}

func (p *deliveries) judge(ctx context.Context) {
	var asks *sender
	for i, s := range p.senders {
		if !s.node.Running() {
			continue
		}
		asks = s
		if err := s.producer.Flush(ctx); err != nil {
			p.violation("producer %d has not delivered though nothing is wrong any more: %v", i, err)
		}
	}
	for to := range receivers {
		reply, err := sharding.Ask[text](ctx, asks.region, fmt.Sprint("p", to), delivery.Plain(wrapperspb.String("show")))
		if err != nil {
			p.violation("purse p%d does not answer though nothing is wrong any more: %v", to, err)
			continue
		}
		p.judgeOne(to, strings.FieldsFunc(reply.GetValue(), func(r rune) bool { return r == ',' }))
	}
}

// judgeOne judges what one entity has had.
func (p *deliveries) judgeOne(to int, seen []string) {
	next := make([]int, len(p.senders))
	for _, v := range seen {
		var from, k int
		if _, err := fmt.Sscanf(v, "%d.%d", &from, &k); err != nil {
			p.violation("purse p%d has %q", to, v)
			continue
		}
		if k != next[from] {
			p.violation("purse p%d: of producer %d came %d where %d was to come", to, from, k, next[from])
		}
		next[from] = k + 1
	}
	for from, s := range p.senders {
		if s.node.Running() && next[from] != s.sent[to] {
			p.violation("purse p%d: of producer %d, whose node runs, came %d of %d", to, from, next[from], s.sent[to])
		}
	}
}
