// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

// Package hollywood measures the actors of github.com/anthdm/hollywood.
package hollywood

import (
	"context"
	"strconv"

	"github.com/anthdm/hollywood/actor"
	"github.com/anthdm/hollywood/remote"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/quorate/quorate/bench/internal/harness"
	"github.com/quorate/quorate/bench/peers/internal/actors"
	_ "github.com/quorate/quorate/bench/peers/internal/conflict" // Of actor.PID.
)

// Library is hollywood with its defaults, save [bufferSize].
func Library() actors.Library {
	return actors.Library{Name: "hollywood", Unbounded: true, Here: here, Host: host, There: there}
}

// kind is the first part of the ids of the actors.
const kind = "actor"

// bufferSize is how large a batch may be that is read from the network. The default is 4 MB. A batch has up to 4,096
// messages, so that one of 1 KiB messages is refused and lost with the connection.
const bufferSize = 64 << 20

// probe is an actor that checks its messages, and answers questions.
type probe struct{ *harness.Receiver }

// Receive checks a message. The answer is the message itself.
func (p probe) Receive(c *actor.Context) {
	m, ok := c.Message().(*wrapperspb.BytesValue)
	if !ok {
		return // Of the actor's life.
	}
	if actors.Take(p.Receiver, m) {
		c.Respond(m)
	}
}

// client is an engine and the addresses of the actors that it tells and asks.
type client struct {
	engine *actor.Engine
	remote *remote.Remote // Nil without a network.
	pids   []*actor.PID
	size   int
}

// listen starts an engine that other processes reach.
func listen(ctx context.Context) (*client, string, error) {
	address, err := harness.FreeAddress(ctx)
	if err != nil {
		return nil, "", err
	}
	r := remote.New(address, remote.NewConfig().WithBufferSize(bufferSize))
	e, err := actor.NewEngine(actor.NewEngineConfig().WithRemote(r))
	return &client{engine: e, remote: r}, address, err
}

// spawn starts the actors.
func (c *client) spawn(s harness.Spec, found *harness.Tally) {
	for i := range s.Entities {
		c.pids = append(c.pids, c.engine.Spawn(func() actor.Receiver { return probe{actors.Receiver(s, found)} }, kind, actor.WithID(strconv.Itoa(i))))
	}
}

func here(_ context.Context, s harness.Spec, found *harness.Tally) (actors.Actors, error) {
	e, err := actor.NewEngine(actor.NewEngineConfig())
	if err != nil {
		return nil, err
	}
	c := &client{engine: e, size: s.Size}
	c.spawn(s, found)
	return c, nil
}

func host(ctx context.Context, s harness.Spec, found *harness.Tally) (string, func(), error) {
	c, address, err := listen(ctx)
	if err != nil {
		return "", nil, err
	}
	c.spawn(s, found)
	return address, c.Close, nil
}

func there(ctx context.Context, s harness.Spec, address string) (actors.Actors, error) {
	c, _, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	c.size = s.Size
	for i := range s.Entities {
		c.pids = append(c.pids, actor.NewPID(address, kind+"/"+strconv.Itoa(i)))
	}
	return c, nil
}

// Tell sends a message.
func (c *client) Tell(_ context.Context, to int, sender uint32, seq uint64) error {
	c.engine.Send(c.pids[to], actors.Value(c.size, sender, seq))
	return nil
}

// Ask sends a message and waits for the answer.
func (c *client) Ask(_ context.Context, to int, sender uint32, seq uint64) error {
	answer, err := c.engine.Request(c.pids[to], actors.Question(c.size, sender, seq), actors.AskTimeout).Result()
	if err != nil {
		return err
	}
	return actors.Answers(answer, c.size, sender, seq)
}

// Close ends what others reach. The actors end with the process.
func (c *client) Close() {
	if c.remote != nil {
		c.remote.Stop()
	}
}
