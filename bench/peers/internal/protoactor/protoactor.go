// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package protoactor measures the actors of github.com/asynkron/protoactor-go.
package protoactor

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/peers/internal/actors"
	_ "github.com/quorate/quorate/bench/peers/internal/conflict" // Of actor.PID.
)

// Library is protoactor-go with its defaults.
func Library() actors.Library {
	return actors.Library{Name: "protoactor", Unbounded: true, Here: here, Host: host, There: there}
}

// probe is an actor that checks its messages, and answers questions.
type probe struct{ *harness.Receiver }

// Receive checks a message. The answer is the message itself.
func (p probe) Receive(c actor.Context) {
	m, ok := c.Message().(*wrapperspb.BytesValue)
	if !ok {
		return // Of the actor's life.
	}
	if actors.Take(p.Receiver, m) {
		c.Respond(m)
	}
}

// client is an actor system and the addresses of the actors that it tells and asks.
type client struct {
	system *actor.ActorSystem
	remote *remote.Remote // Nil without a network.
	pids   []*actor.PID
	size   int
}

// listen starts an actor system that other processes reach.
func listen() *client {
	c := &client{system: actor.NewActorSystem()}
	c.remote = remote.NewRemote(c.system, remote.Configure("127.0.0.1", 0))
	c.remote.Start()
	return c
}

// spawn starts the actors.
func (c *client) spawn(s harness.Spec, found *harness.Tally) error {
	for i := range s.Entities {
		props := actor.PropsFromProducer(func() actor.Actor { return probe{actors.Receiver(s, found)} })
		pid, err := c.system.Root.SpawnNamed(props, actors.Name(i))
		if err != nil {
			return err
		}
		c.pids = append(c.pids, pid)
	}
	return nil
}

func here(_ context.Context, s harness.Spec, found *harness.Tally) (actors.Actors, error) {
	c := &client{system: actor.NewActorSystem(), size: s.Size}
	return c, c.spawn(s, found)
}

func host(_ context.Context, s harness.Spec, found *harness.Tally) (string, func(), error) {
	c := listen()
	return c.system.Address(), c.Close, c.spawn(s, found)
}

func there(_ context.Context, s harness.Spec, address string) (actors.Actors, error) {
	c := listen()
	c.size = s.Size
	for i := range s.Entities {
		c.pids = append(c.pids, actor.NewPID(address, actors.Name(i)))
	}
	return c, nil
}

// Tell sends a message.
func (c *client) Tell(_ context.Context, to int, sender uint32, seq uint64) error {
	c.system.Root.Send(c.pids[to], actors.Value(c.size, sender, seq))
	return nil
}

// Ask sends a message and waits for the answer.
func (c *client) Ask(_ context.Context, to int, sender uint32, seq uint64) error {
	answer, err := c.system.Root.RequestFuture(c.pids[to], actors.Question(c.size, sender, seq), actors.AskTimeout).Result()
	if err != nil {
		return err
	}
	return actors.Answers(answer, c.size, sender, seq)
}

// Close ends what others reach. The actors end with the process.
func (c *client) Close() {
	if c.remote != nil {
		c.remote.Shutdown(false)
	}
}
