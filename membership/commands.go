// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/internal/protocol"
)

// commands feeds what the program wants to the membership machine, and waits for its answers.
type commands struct {
	machine *machine.Handle
	life    *lifecycle
	orders  pendingCommands[protocol.CommandAnswered] // Commands about members that wait for an answer.
}

// give feeds a command to the machine.
func (c *commands) give(ctx context.Context, in machine.Input) error {
	err := c.machine.PostWait(ctx, in)
	switch {
	case errors.Is(err, machine.ErrClosed):
		return closedError(c.life.err) // The driver ends after err was set.
	case err != nil:
		return context.Cause(ctx)
	}
	return nil
}

// order feeds a command about a named member to the machine, which alone decides whom it meets, and waits for its
// answer.
func (c *commands) order(ctx context.Context, member string, command func(named gossip.NodeID, id uint64) machine.Input) error {
	named, err := ParseMember(member)
	if err != nil {
		return err
	}
	id, answered := c.orders.ask()
	defer c.orders.forget(id)
	if err := c.give(ctx, command(named, id)); err != nil {
		return err
	}
	select {
	case a := <-answered:
		return orderError(a)
	case <-c.life.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case a := <-answered: // The node may have ended by what it was told.
		return orderError(a)
	default:
		return closedError(c.life.err)
	}
}
