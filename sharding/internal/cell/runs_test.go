// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// busy returns a cell whose entity x processes a message of its own node, with n messages
// behind it.
func busy(t *testing.T, n int) *bench {
	t.Helper()
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	for range n {
		require.Empty(t, c.tell("x"))
	}
	return c
}

// ran ends a run of x in which k messages were processed and the next was begun. It returns
// how many processed messages Ran gave back.
func (c *bench) ran(k int) (over int) {
	for m := c.Ran(c.entities["x"], k, &c.out); m != nil; m = m.Next() {
		over++
	}
	return over
}

// given calls Ahead and returns how many messages have been handed out to x.
func (c *bench) given(most int) (n int) {
	for m := c.Ahead(c.entities["x"], most); m != nil; m = m.Next() {
		n++
	}
	return n
}

// Messages that were handed out and not begun wait again, at their place.
// covers I20.
func TestARunGivesBackWhatItDidNotBegin(t *testing.T) {
	for ran := range 4 {
		c := busy(t, 5)
		x := c.entities["x"]
		order := []*cell.Message{x.Message()}
		require.Equal(t, 3, c.given(3))
		for m := c.Ahead(x, 3); m != nil; m = m.Next() {
			order = append(order, m)
		}
		require.Equal(t, 5, x.Waiting(), "what was handed out counts")
		require.Equal(t, ran, c.ran(ran))
		require.Same(t, order[ran], x.Message())
		require.Equal(t, 5-ran, x.Waiting())
		for i := ran + 1; i < len(order); i++ {
			require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
			require.Same(t, order[i], x.Message())
		}
	}
}

// An ask is not handed out ahead, since its sender waits for the reply, and neither are the
// messages behind it.
func TestWhatSomebodyWaitsForIsNotHandedOutAhead(t *testing.T) {
	c := busy(t, 1)
	require.Equal(t, cell.Accepted, c.Accept(c.now, &cell.Message{Entity: "x", Correlation: 1, Payload: []byte("m")}, &c.out))
	c.tell("x")
	require.Equal(t, 1, c.given(9))
	require.Equal(t, 1, c.ran(1))
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	require.EqualValues(t, 1, c.entities["x"].Message().Correlation)
	require.Zero(t, c.given(9))
	require.Equal(t, "reply free:x:0 run:x", c.done("x", ok))
	require.Zero(t, c.given(9))
}

// A failure in the middle of a run fails one message. The messages before it count as
// successes, so that the entity does not rest.
func TestFailureInARun(t *testing.T) {
	c := busy(t, 4)
	require.Equal(t, 4, c.given(9))
	require.Equal(t, 2, c.ran(2))
	require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{Failed: true}))
	require.Equal(t, "start:x", c.stopped("x"))
	require.Equal(t, "run:x", c.started("x", true))
	require.Equal(t, 1, c.entities["x"].Waiting())
}

// Messages that a run did not begin before its hosting ended are not delivered.
func TestHostingEndsDuringARun(t *testing.T) {
	c := busy(t, 3)
	require.Equal(t, 2, c.given(2))
	require.Equal(t, "fail:x:not delivered reset", c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}))
	require.Equal(t, 1, c.ran(1))
	require.Equal(t, "fail:x:not delivered free:x:0 stop:x", c.done("x", cell.Result{}))
	require.Nil(t, c.Ahead(c.entities["x"], 9))
}

// When an entity is left behind in the middle of a run, the outcome of all messages that were
// handed out to it is unknown.
func TestARunIsLeftBehind(t *testing.T) {
	c := busy(t, 3)
	require.Equal(t, 2, c.given(2))
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Equal(t, "fail:x:not delivered fail:x:unknown outcome fail:x:unknown outcome reply:unknown outcome stuck:x shardhalted",
		c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}))
	require.Zero(t, c.ran(2))
	require.Equal(t, "returned:x free:x:0 stop:x", c.done("x", cell.Result{}))
}

// Busy returns an entity of the same node that is at work and has room, and no other.
func TestJoin(t *testing.T) {
	c := host(t, cell.Config{Mailbox: 2})
	require.Nil(t, c.Busy("x"))
	c.tell("x")
	require.Nil(t, c.Busy("x"), "it starts")
	c.started("x", true)
	for range 2 {
		e := c.Busy("x")
		require.Same(t, c.entities["x"], e)
		c.Join(e, &cell.Message{Entity: "x"})
	}
	require.Nil(t, c.Busy("x"), "its mailbox is full")
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	require.NotNil(t, c.Busy("x"))
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Nil(t, c.Busy("x"), "the shard moves")
}
