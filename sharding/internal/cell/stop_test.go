// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The stops of an instance: first their reasons, then stops and moves that wait for
// standing, and last a stop that no longer waits because the hosting has ended.

// serving returns a cell that hosts, with an idle instance of x.
func serving(t *testing.T) *bench {
	t.Helper()
	c := newCell(t, nodeA, cell.Config{})
	c.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	c.started("x", true)
	c.done("x", cell.Result{})
	return c
}

// begin asks the cell, as the runtime does at an OpStop, whether the stop of x may begin, and
// returns its reason. held says whether the runtime's clock shows standing.
func (c *bench) begin(held bool) (cell.StopReason, bool) {
	why, ok := c.Instances().BeginStop(c.now, c.entities["x"], held, &c.out)
	c.did()
	return why, ok
}

func passivate(c *bench) string {
	c.Instances().Passivate(c.now, c.entities["x"], &c.out)
	return c.did()
}

// The reason of a stop is computed when the stop begins: it takes in what has happened since
// the stop was wanted.
func TestWhyAnInstanceIsStopped(t *testing.T) {
	stop, leave := protocol.StopHosting{Epoch: epoch(1)}, protocol.StopHosting{Epoch: epoch(1), Leaving: true}
	elsewhere := protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(1)}
	for _, test := range []struct {
		why  cell.StopReason
		sole bool
		make func(c *bench)
	}{
		{cell.StopPassivated, true, func(c *bench) { passivate(c) }},
		{cell.StopFailed, true, func(c *bench) { c.tell("x"); c.done("x", cell.Result{Failed: true}) }},
		{cell.StopMoved, true, func(c *bench) { c.apply(stop) }},
		{cell.StopMoved, true, func(c *bench) { passivate(c); c.apply(stop) }},
		{cell.StopLeaving, true, func(c *bench) { c.apply(leave) }},
		{cell.StopMoved, true, func(c *bench) {
			c.tell("x")
			c.apply(leave)
			c.apply(protocol.ResumeHosting{Epoch: epoch(1)})
			c.apply(stop)
			c.done("x", cell.Result{})
		}},
		{cell.StopReplaced, false, func(c *bench) { c.apply(elsewhere) }},
		{cell.StopReplaced, false, func(c *bench) { passivate(c); c.apply(elsewhere) }},
		{cell.StopReplaced, false, func(c *bench) { c.tell("x"); c.apply(elsewhere); c.done("x", cell.Result{Failed: true}) }},
		{cell.StopReplaced, false, func(c *bench) {
			c.tell("x")
			c.apply(stop)
			c.apply(protocol.ReleaseHosting{Epoch: epoch(1)})
			c.done("x", cell.Result{})
		}},
		{cell.StopLost, false, func(c *bench) { c.apply(protocol.AbandonHosting{}) }},
		{cell.StopLost, false, func(c *bench) { c.apply(elsewhere); c.apply(protocol.AbandonHosting{}) }},
	} {
		c := serving(t)
		test.make(c)
		why, begins := c.begin(true)
		require.True(t, begins)
		require.Equal(t, test.why, why)
		require.Equal(t, test.sole, why.Sole())
	}
}

// A stop does not begin without standing, since it may write something. It begins when the
// standing is back, and a new instance processes the messages that came meanwhile.
func TestAStopWaitsForStanding(t *testing.T) {
	c := serving(t)
	c.apply(protocol.SuspendHosting{})
	require.Empty(t, passivate(c))
	require.Empty(t, c.tell("x"))
	require.Empty(t, c.tick(time.Minute))
	c.Maintenance().Sweep(c.now, 10, &c.out)
	require.Empty(t, c.did(), "it is not stuck")
	require.Equal(t, "stop:x", c.apply(protocol.UnsuspendHosting{}))
	_, begins := c.begin(true)
	require.True(t, begins)
	require.Equal(t, "start:x", c.stopped("x"))
}

// A stop does not begin either when only the runtime's clock shows that the standing has
// ended: the cell asks for the stop again.
func TestTheClockIsLookedAtBeforeAStop(t *testing.T) {
	c := serving(t)
	require.Equal(t, "stop:x", passivate(c))
	_, begins := c.begin(false)
	require.False(t, begins)
	require.Equal(t, "stop:x", c.tick(50*time.Millisecond))
	c.apply(protocol.SuspendHosting{})
	_, begins = c.begin(true)
	require.False(t, begins, "the cell knows better than the clock")
	require.Equal(t, "stop:x", c.apply(protocol.UnsuspendHosting{}))
	why, begins := c.begin(true)
	require.True(t, begins)
	require.Equal(t, cell.StopPassivated, why)
}

// A move waits for the stops of its entities, which wait for standing, and ends when the
// standing is back.
func TestAMoveWaitsForStanding(t *testing.T) {
	c := serving(t)
	c.apply(protocol.SuspendHosting{})
	require.Empty(t, c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Equal(t, "stop:x", c.apply(protocol.UnsuspendHosting{}))
	require.Equal(t, "shardstopped", c.stopped("x"))
}

// When the hosting ends while a stop waits for standing, the stop begins at once, with the
// reason that a successor may run.
func TestAStopThatWaitedInVain(t *testing.T) {
	for _, test := range []struct {
		why cell.StopReason
		end func(c *bench) string
	}{
		{cell.StopReplaced, func(c *bench) string {
			return c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(1)})
		}},
		{cell.StopReplaced, func(c *bench) string { return c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}) }},
		{cell.StopLost, func(c *bench) string { return c.apply(protocol.AbandonHosting{}) }},
	} {
		c := serving(t)
		c.apply(protocol.SuspendHosting{})
		c.apply(protocol.StopHosting{Epoch: epoch(1)})
		require.Contains(t, test.end(c), "stop:x")
		why, begins := c.begin(false)
		require.True(t, begins)
		require.Equal(t, test.why, why)
		require.NotContains(t, c.stopped("x"), "stop")
	}
}

// Each reason of a stop has a name of its own.
func TestNamesOfReasons(t *testing.T) {
	seen := make(map[string]bool)
	for r := range cell.StopReasons {
		name := cell.StopReason(r).String()
		require.NotContains(t, name, "reason")
		seen[name] = true
	}
	require.Len(t, seen, cell.StopReasons)
	require.Equal(t, "reason 99", cell.StopReason(99).String())
}
