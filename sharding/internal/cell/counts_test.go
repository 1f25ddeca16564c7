// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// tally returns what the cell adds to the tally of its node.
func (c *bench) tally() (t cell.Tally) {
	c.Tally(&t)
	return t
}

// Each message and each instance is counted once by what becomes of it.
func TestWhatACellCounts(t *testing.T) {
	c := host(t, cell.Config{Mailbox: 2, PassivateAfter: time.Minute})
	c.tell("x")
	c.started("x", true)
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	c.deliver(from(nodeB, "x", 3, epoch(1)))
	tired := &cell.Message{Entity: "x"}
	require.Equal(t, cell.MailboxFull, c.Accept(c.now, tired, &c.out))
	c.Withdraw(tired, &c.out)
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	for range 4 {
		c.done("x", ok)
	}
	counts := cell.Counts{Sent: 1, Received: 3, Handled: 4, Started: 1}
	counts.Refused[protocol.CodeOverloaded] = 1
	require.Equal(t, counts, c.tally().Counts)

	c.tell("x")
	c.done("x", cell.Result{Failed: true})
	c.tell("x")
	require.Equal(t, "start:x", c.stopped("x"))
	c.started("x", true)
	c.done("x", cell.Result{})
	c.now = c.now.Add(time.Hour)
	require.True(t, c.Maintenance().Sweep(c.now, 10, &c.out))
	require.Equal(t, "stop:x", c.did())
	c.stopped("x")
	c.tell("y")
	c.started("y", false)
	got := c.tally().Counts
	require.Equal(t, [5]uint64{3, 1, 1, 1, 1}, [5]uint64{got.Started, got.Restarted, got.Passivated[cell.CauseIdle], got.Failed, got.StartFailed})
	require.Equal(t, [3]uint64{4, 3, 6}, [3]uint64{got.Sent, got.Received, got.Handled})
	require.Equal(t, uint64(1), got.Refused[protocol.CodeEntityFailed])

	sum := c.tally()
	c.Tally(&sum)
	require.Equal(t, 2*got.Sent, sum.Sent, "cells are added up")
	require.Equal(t, 2, sum.Hosted)
}

// An instance that is stopped because its shard moves does not count as passivated.
func TestAMoveIsNoPassivation(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	c.done("x", cell.Result{})
	require.Equal(t, "stop:x", c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	c.stopped("x")
	require.Zero(t, c.tally().Passivated)
	require.Zero(t, c.tally().Hosted)
}

// The messages in mailboxes are counted by a sweep, and the number changes when a sweep has
// seen all entities of the shard.
func TestTheSweepMeasuresMailboxes(t *testing.T) {
	c := host(t, cell.Config{})
	for _, id := range []string{"x", "y", "z", "x", "x", "y"} {
		c.tell(id)
	}
	require.False(t, c.Maintenance().Sweep(c.now, 2, &c.out))
	require.Zero(t, c.tally().Mailboxes, "the round is under way")
	require.True(t, c.Maintenance().Sweep(c.now, 2, &c.out))
	require.Equal(t, [2]int{6, 3}, [2]int{c.tally().Mailboxes, c.tally().Deepest})
	for range 2 {
		require.True(t, c.Maintenance().Sweep(c.now, 10, &c.out))
		require.Equal(t, [2]int{6, 3}, [2]int{c.tally().Mailboxes, c.tally().Deepest}, "each round is by itself")
	}

	away := newCell(t, nodeA, cell.Config{})
	away.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(1), Base: epoch(1)})
	away.tell("x")
	away.deliver(from(nodeC, "x", 2, epoch(2)))
	require.Equal(t, [2]int{1, 1}, [2]int{away.tally().Window, away.tally().Transit})
}

// A node that coordinates no kind answers an Examine with an empty Examined.
func TestControlIsExamined(t *testing.T) {
	c := control.New(control.Config{Self: nodeA})
	var out machine.Outbox
	c.Step(machine.Now{Mono: 1}, control.CountShards{ID: 7}, &out)
	require.Equal(t, []machine.Effect{machine.Publish{Event: control.ShardCounts{ID: 7}}}, out.Effects(), "of no kind is a coordinator known")
}
