// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package area

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/rig"
	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/sharding"
)

// ofMember is the least part that the rate of a client that is no member may be of a member's.
const ofMember = 0.7

// clientGroup is the questions of a client that is no member, beside those of a member to the same
// entities in another process.
func clientGroup() rig.Group {
	experiment := func(m rig.Measurer, senders int, figures ...figure.Figure) rig.Experiment {
		return rig.Experiment{Measure: m, Spec: rig.Spec{Size: 64, Senders: senders, Entities: senders}, Figures: figures}
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
	return rig.Group{
		Name: "client", About: "ask entities from a program that is no member, 1 and 64 at a time",
		Experiments: []rig.Experiment{
			experiment(measureAsk, 64, rate("member-ask-64")).AsFloor(),
			experiment(measureClient, 64, many),
			experiment(measureAsk, 1, late("member-ask-p50", "p50")).AsFloor(),
			experiment(measureClient, 1, one, late("ask-p99", "p99")),
		},
	}
}

// measureClient measures questions of a client that is no member.
func measureClient(ctx context.Context, s rig.Spec, k *rig.Link) (figure.Outcome, error) {
	host, address, err := k.Peer(ctx, s.As(roleGateway))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer host.Stop()
	cfg := client.Default()
	cfg.Addresses = []string{address}
	c, err := client.Open(cfg, client.WithLogger(quiet()))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer func() { _ = c.Close() }() // It returns nil.
	if err := c.AwaitReady(ctx); err != nil {
		return figure.Outcome{}, err
	}
	payload := make([]byte, s.Size-rig.HeaderBytes)
	ask := func(ctx context.Context, asker uint32, seq uint64, entity int) error {
		var codec rig.Codec
		b, err := codec.Append(make([]byte, 0, s.Size), &rig.Message{Sender: asker, Seq: seq, Ask: true, Payload: payload})
		if err != nil {
			return err
		}
		reply, err := c.Ask(ctx, kindName, entityName(entity), b)
		if err != nil {
			return err
		}
		var answer rig.Message
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
	return rig.Asking{
		Askers: s.Senders, Time: s.Time, Mark: rig.Without(uint64(s.Entities), host.Marks),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			return ask(ctx, asker, seq, int(asker)%s.Entities)
		},
	}.Run(ctx)
}

// serveGateway hosts the entities of [measureClient].
func serveGateway(ctx context.Context, s rig.Spec, k *rig.Link) error {
	n, err := startObserved(ctx, s, nil, func(c *cluster.Config) {
		c.Node.Roles = []string{hostRole}
		c.Gateway.Address, c.Gateway.Kinds = "127.0.0.1:0", []string{kindName}
	})
	if err != nil {
		return err
	}
	defer dropNode(n)
	var found rig.Tally
	if _, err := sharding.Start(n, probes(&found, s.Senders+1, s.Size, hostRole)); err != nil {
		return err
	}
	return k.HostMarks(n.Gateway().Address(), &found)
}
