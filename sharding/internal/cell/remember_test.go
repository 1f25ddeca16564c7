// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// notes are a RememberPort that notes whom it is told to forget, and who is given up.
type notes struct{ forgotten, givenUp []string }

func (*notes) Serve(protocol.ShardID, protocol.Epoch) {}
func (*notes) Remember(protocol.ShardID, string)      {}
func (n *notes) Forget(_ protocol.ShardID, id string) { n.forgotten = append(n.forgotten, id) }
func (n *notes) GiveUp(_ protocol.ShardID, id string) { n.givenUp = append(n.givenUp, id) }
func (*notes) Flush(protocol.ShardID) bool            { return true }
func (*notes) End(protocol.ShardID)                   {}

// Who asks to be stopped is forgotten, if that is why it is stopped. An instance that was to move, and whose stop
// begins when the move is called off already, has not asked for it, and runs again. covers I28.
func TestOnlyWhoAsksIsForgotten(t *testing.T) {
	stop, resume := protocol.StopHosting{Epoch: epoch(1)}, protocol.ResumeHosting{Epoch: epoch(1)}
	for name, test := range map[string]struct {
		make    func(c *bench)
		forgets bool
		then    string // What follows the stop.
	}{
		"asks, idle":                       {func(c *bench) { passivate(c) }, true, ""},
		"asks at a message":                {func(c *bench) { c.tell("x"); passivate(c); c.done("x", cell.Result{}) }, true, ""},
		"asks, and without standing":       {func(c *bench) { c.apply(protocol.SuspendHosting{}); passivate(c); c.apply(protocol.UnsuspendHosting{}) }, true, ""},
		"asks, then its shard moves":       {func(c *bench) { passivate(c); c.apply(stop) }, false, "shardstopped"},
		"a move that is called off":        {func(c *bench) { c.apply(stop); c.apply(resume) }, false, "start:x"},
		"the same, after a stop was begun": {func(c *bench) { passivate(c); c.apply(stop); c.apply(resume) }, true, ""},
		"the same, without standing": {func(c *bench) {
			c.apply(protocol.SuspendHosting{})
			c.apply(stop)
			c.apply(resume)
			c.apply(protocol.UnsuspendHosting{})
		}, false, "start:x"},
		"fails": {func(c *bench) { c.tell("x"); c.done("x", cell.Result{Failed: true}) }, false, "start:x"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &notes{}
			c := newCell(t, nodeA, cell.Config{Rememberer: n})
			c.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)})
			c.tell("x")
			c.started("x", true)
			c.done("x", cell.Result{})
			test.make(c)
			_, begins := c.begin(true)
			require.True(t, begins)
			require.Equal(t, test.then, c.stopped("x"))
			require.Equal(t, test.forgets, len(n.forgotten) == 1)
		})
	}
}

// An entity that runs, since its set was read meanwhile, is not given up although the store did not take it in time;
// one that waits is, and so is one for which nobody waits any more. That alone has nobody forgotten. covers I28.
func TestWhoRunsIsNotGivenUp(t *testing.T) {
	n := &notes{}
	c := newCell(t, nodeA, cell.Config{Rememberer: n, RememberFirst: true})
	c.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)})
	c.tell("x")
	c.tell("y")
	c.Remembering().Start(c.now, []string{"x"}, &c.out)
	require.Equal(t, "start:x", c.did())
	c.Remembering().Unkept(c.now, []string{"x", "y"}, "the store is down", &c.out)
	c.Remembering().Kept(c.now, []string{"z"}, &c.out)
	require.Equal(t, []string{"y", "z"}, n.givenUp)
	require.Empty(t, n.forgotten)
}
