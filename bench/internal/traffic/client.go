// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/plan"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/bench/internal/sequence"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// ofMember is the least part that the rate of a client that is no member may be of a member's.
const ofMember = 0.7

const (
	// roleClient measures questions of a client that is no member.
	roleClient = "client"
	// roleGateway hosts the entities that it asks.
	roleGateway = "gateway"
)

// Client is the questions of a client that is no member, beside those of a member to the same
// entities in another process.
func Client() plan.Group {
	experiment := func(role string, senders int, figures ...figure.Figure) plan.Experiment {
		return plan.Experiment{Spec: process.Spec{Role: role, Size: 64, Senders: senders, Entities: senders}, Figures: figures}
	}
	rate := func(name string) figure.Figure {
		return figure.Figure{Name: name, Value: "rate", Unit: "asks/s", Better: figure.Higher}
	}
	late := func(name, value string) figure.Figure {
		return figure.Figure{Name: name, Value: value, Unit: "us", Better: figure.Lower}
	}
	many, one := rate("ask-64"), late("ask-p50", "p50")
	many.OfFloor, many.Floors = ofMember, []string{"member-ask-64"}
	one.Floors = []string{"member-ask-p50"}
	return plan.Group{
		Name: "client", About: "ask entities from a program that is no member, 1 and 64 at a time",
		Experiments: []plan.Experiment{
			experiment(RoleAsk, 64, rate("member-ask-64")).AsFloor(),
			experiment(roleClient, 64, many),
			experiment(RoleAsk, 1, late("member-ask-p50", "p50")).AsFloor(),
			experiment(roleClient, 1, one, late("ask-p99", "p99")),
		},
	}
}

// measureClient measures questions of a client that is no member.
func measureClient(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
	host, address, err := k.Peer(ctx, s.As(roleGateway))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer host.Stop()
	cfg := client.Default()
	cfg.Addresses = []string{address}
	c, err := client.Open(cfg, client.WithLogger(rig.Quiet()))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer func() { _ = c.Close() }() // It returns nil.
	if err := c.AwaitReady(ctx); err != nil {
		return figure.Outcome{}, err
	}
	payload := make([]byte, s.Size-message.HeaderBytes)
	ask := func(ctx context.Context, asker uint32, seq uint64, entity int) error {
		var codec message.Codec
		b, err := codec.Append(make([]byte, 0, s.Size), &message.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload})
		if err != nil {
			return err
		}
		reply, err := c.Ask(ctx, message.Kind, message.EntityName(entity), b)
		if err != nil {
			return err
		}
		var answer message.Message
		if err := codec.Decode(reply, &answer); err != nil {
			return err
		}
		if answer.Sender != asker || answer.Seq != seq || len(answer.Payload) != len(payload) {
			return fmt.Errorf("the answer is to question %d of %d", answer.Seq, answer.Sender)
		}
		return nil
	}
	for i := range s.Entities {
		if err := ask(ctx, uint32(s.Senders), 1, i); err != nil {
			return figure.Outcome{}, fmt.Errorf("bench: the first question to entity %d: %w", i, err)
		}
	}
	return measure.Asking{
		Askers: s.Senders, Time: s.Time, Mark: measure.Without(uint64(s.Entities), measure.RemoteMark(host)),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			return ask(ctx, asker, seq, int(asker)%s.Entities)
		},
	}.Run(ctx)
}

// serveGateway hosts the entities of [measureClient].
func serveGateway(ctx context.Context, s process.Spec, k *process.Link) error {
	node, err := rig.StartObserved(ctx, s, nil, func(c *cluster.Config) {
		c.Node.Roles = []string{hostRole}
		c.Gateway.Address, c.Gateway.Kinds = "127.0.0.1:0", []string{message.Kind}
	})
	if err != nil {
		return err
	}
	var found sequence.Tally
	if _, err := sharding.Start(node, message.Probes(&found, s.Senders+1, s.Size, hostRole)); err != nil {
		return errors.Join(err, node.Close())
	}
	if err := k.Send(process.Hello{Address: node.Gateway().Address()}); err != nil {
		return errors.Join(err, node.Close())
	}
	return errors.Join(measure.NewStopwatch(&found, measure.CPUTime).Serve(k), node.Membership().Close())
}
