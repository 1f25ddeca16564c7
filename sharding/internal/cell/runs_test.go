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
	for m := c.Instances().Ran(c.entities["x"], k, &c.out); m != nil; m = m.Next() {
		over++
	}
	return over
}

// given calls Ahead and returns how many messages have been handed out to x.
func (c *bench) given(most int) int {
	ahead := c.Instances().Ahead(c.entities["x"], most)
	return ahead.Len()
}

// Messages that were handed out and not begun wait again, at their place.
// covers I20.
func TestARunGivesBackWhatItDidNotBegin(t *testing.T) {
	for ran := range 4 {
		c := busy(t, 5)
		x := c.entities["x"]
		order := []*cell.Message{x.Mail().Message()}
		require.Equal(t, 3, c.given(3))
		ahead := c.Instances().Ahead(x, 3)
		for m, more := ahead.Next(); more; m, more = ahead.Next() {
			order = append(order, m.Message())
		}
		require.Equal(t, 5, x.Waiting(), "what was handed out counts")
		require.Equal(t, ran, c.ran(ran))
		require.Same(t, order[ran], x.Mail().Message())
		require.Equal(t, 5-ran, x.Waiting())
		for i := ran + 1; i < len(order); i++ {
			require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
			require.Same(t, order[i], x.Mail().Message())
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
	require.EqualValues(t, 1, c.entities["x"].Mail().Message().Correlation)
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
	require.Zero(t, c.given(9))
}

// A run whose hosting has ended, and that did not begin at all for want of standing, delivers
// none of its messages.
func TestHostingEndsBeforeARun(t *testing.T) {
	c := busy(t, 3)
	require.Equal(t, 2, c.given(2))
	require.Equal(t, "fail:x:not delivered reset", c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}))
	c.Instances().Postpone(c.now, c.entities["x"], &c.out)
	require.Equal(t, "fail:x:not delivered fail:x:not delivered fail:x:not delivered stop:x", c.did())
}

// When an entity is left behind in the middle of a run, the outcome of all messages that were
// handed out to it is unknown.
func TestARunIsLeftBehind(t *testing.T) {
	c := busy(t, 3)
	require.Equal(t, 2, c.given(2))
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Equal(t, "fail:x:not delivered fail:x:unknown outcome fail:x:unknown outcome reply:unknown outcome stuck:x shardstopped",
		c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}))
	require.Zero(t, c.ran(2))
	require.Equal(t, "returned:x free:x:0 stop:x", c.done("x", cell.Result{}))
}

// An entity that was left behind may still read what was handed out to it.
func TestWhatWasHandedOutStaysWhenItsEntityIsLeftBehind(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	for i := range 4 {
		c.join(i)
	}
	ahead := c.Instances().Ahead(c.entities["x"], 3)
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.Apply(c.now, protocol.ReleaseHosting{Epoch: epoch(1)}, &c.out)
	require.Equal(t, []any{3, 0, 1, 2}, c.failed(), "what did not begin, then what may have")
	for i := range 3 {
		m, more := ahead.Next()
		require.True(t, more)
		require.Equal(t, i, m.Value)
	}
}

// What comes for an entity whose hosting has ended, and that has not returned yet, waits for
// the next instance, whatever had been handed out.
func TestWhatWaitsForTheNextInstanceStays(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	for i := range 3 {
		c.join(i)
	}
	require.Equal(t, 2, c.given(2))
	c.Apply(c.now, protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}, &c.out)
	require.Equal(t, []any{2}, c.failed())
	c.apply(protocol.StartHosting{Epoch: epoch(3), Base: epoch(3)})
	for i := range 2 {
		require.Equal(t, cell.Accepted, c.Accept(c.now, &cell.Message{Entity: "x", Value: 10 + i}, &c.out))
	}
	require.Equal(t, 1, c.ran(1))
	require.Equal(t, []any{1}, c.failed())
	require.Equal(t, "stop:x", c.done("x", cell.Result{}))
	require.Equal(t, "start:x", c.stopped("x"))
	require.Equal(t, "run:x", c.started("x", true))
	require.Equal(t, 10, c.entities["x"].Mail().Value)
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	require.Equal(t, 11, c.entities["x"].Mail().Value)
}

// join puts a value into the mailbox of x, and returns the words of what follows.
func (c *bench) join(value any) string {
	e := c.Open("x")
	require.NotNil(c.t, e)
	if c.Join(e, value, 0, 0) {
		c.Rouse(c.now, e, &c.out)
	}
	return c.did()
}

// Open returns an entity of the same node that has a record and room, and no other. What
// joins its mailbox is processed in order, and needs no message.
func TestJoin(t *testing.T) {
	c := host(t, cell.Config{Mailbox: 2})
	require.Nil(t, c.Open("x"))
	c.tell("x")
	require.Empty(t, c.join(1), "it starts")
	require.Nil(t, c.Open("x"), "its mailbox is full")
	require.Equal(t, "run:x", c.started("x", true))
	require.Empty(t, c.join(2))
	require.Nil(t, c.Open("x"), "its mailbox is full")
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	require.Equal(t, cell.Mail{Value: 1}, c.entities["x"].Mail())
	require.Equal(t, "run:x", c.done("x", cell.Result{}))
	require.Equal(t, cell.Mail{Value: 2}, c.entities["x"].Mail())
	require.Empty(t, c.done("x", cell.Result{}))
	require.Equal(t, "run:x", c.join(3), "it has nothing else to do")
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Nil(t, c.Open("x"), "the shard moves")
	require.Equal(t, "stop:x", c.done("x", cell.Result{}))
}

// joinAsk is join for an ask with a correlation.
func (c *bench) joinAsk(correlation uint64) string {
	e := c.Open("x")
	require.NotNil(c.t, e)
	if c.Join(e, "value", correlation, 0) {
		c.Rouse(c.now, e, &c.out)
	}
	return c.did()
}

// An ask of this node needs no message either. Its reply names the ask; one that has come to its
// end without a reply waits for it; one that did not begin can be taken back; one that never
// begins fails, by name.
func TestAnAskJoins(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	c.done("x", cell.Result{})
	require.Equal(t, "run:x", c.joinAsk(1))
	for n := range uint64(4) {
		require.Empty(t, c.joinAsk(2+n))
	}
	x := c.entities["x"]
	require.Zero(t, c.given(1), "somebody waits for the reply to it")
	require.EqualValues(t, 1, x.Mail().Correlation())
	require.Equal(t, nodeA, x.Mail().Origin(nodeA))
	reply := &protocol.Reply{}
	require.Equal(t, "reply run:x", c.done("x", cell.Result{Reply: reply}), "the asker hears no more of it")
	require.EqualValues(t, 1, reply.Correlation)
	require.Equal(t, "arrived:2", c.done("x", cell.Result{Reply: &protocol.Reply{}, Withhold: true}), "the reply waits")
	m, back := c.Retract(c.now, "x", 3, &c.out)
	require.True(t, back)
	require.Nil(t, m)
	_, back = c.Retract(c.now, "x", 3, &c.out)
	require.False(t, back)
	c.out.Reset()
	c.Apply(c.now, protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}, &c.out)
	var failed []uint64
	for _, a := range c.out.List() {
		if a.Op == cell.OpFail {
			failed = append(failed, a.Message.Correlation)
		}
	}
	require.Equal(t, []uint64{4, 5}, failed)
}

// The deadline of an ask of this node is looked at before it begins.
func TestAnAskThatJoinsExpires(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	e := c.Open("x")
	require.False(t, c.Join(e, "value", 7, c.now+5))
	c.now += 5
	require.Equal(t, "free:x:0 fail:x:"+protocol.CodeExpired.String(), c.done("x", cell.Result{}))
}

// An entity that rests after a failure, or waits for its sender's room to be taken, is not
// open.
func TestAnEntityThatRestsIsNotOpen(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", false)
	require.Nil(t, c.Open("x"))
}

// What waits in a mailbox when its hosting ends without having begun is reported to its
// senders, value or not, in order.
func TestValuesAreReportedWhenTheirHostingEnds(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.started("x", true)
	for i := range 5 {
		require.Empty(t, c.join(i))
	}
	require.Equal(t, 2, c.given(2))
	c.Apply(c.now, protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}, &c.out)
	require.Equal(t, []any{2, 3, 4}, c.failed())
	require.Equal(t, 1, c.ran(1), "the one that came as a message")
	require.Equal(t, []any{1}, c.failed())
	require.Equal(t, "stop:x", c.done("x", cell.Result{}))
}

// failed returns the values of the messages that have failed, and forgets the actions.
func (c *bench) failed() (values []any) {
	for _, a := range c.out.List() {
		if a.Op == cell.OpFail {
			values = append(values, a.Message.Value)
		}
	}
	c.out.Reset()
	return values
}
