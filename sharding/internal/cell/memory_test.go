// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/handoff"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// recalling is the configuration of a kind whose entities take their memory along.
var recalling = cell.Config{Snapshots: handoff.Limits{Entity: 100, Shard: 1000}, SnapshotTimeout: 10 * time.Second}

// leaves says that an entity has stopped and can give a snapshot, and gave that it did.
func (c *bench) leaves(id string, why cell.StopReason) string {
	c.Handoff().Leaves(c.now, c.entities[id], why, &c.out)
	return c.did()
}

func (c *bench) gave(id, memory string) string {
	c.Handoff().Gave(c.now, c.entities[id], protocol.Snapshot{Data: []byte(memory)}, &c.out)
	return c.did()
}

// memory returns what the entity that starts is to be restored from.
func (c *bench) memory(id string) string {
	s, ok := c.entities[id].Value.(*protocol.Snapshot)
	if !ok {
		return ""
	}
	return string(s.Data)
}

// works has an entity start and process a message, and then wait for the next.
func (c *bench) works(id string) {
	c.t.Helper()
	require.Equal(c.t, "start:"+id, c.tell(id))
	c.started(id, true)
	c.done(id, cell.Result{})
}

// halted returns what the shard takes along.
func (c *bench) halted() []protocol.Snapshot {
	return c.last[cell.OpEvent].Event.(protocol.ShardStopped).Snapshots
}

// The shard stops when the last entity has given its memory, which goes with it.
func TestSnapshotsGoWithTheShard(t *testing.T) {
	c := host(t, recalling)
	c.works("y")
	c.works("x")
	require.Equal(t, "stop:y stop:x", c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	require.Equal(t, "snapshot:x", c.leaves("x", cell.StopMoved))
	require.Equal(t, "snapshot:y", c.leaves("y", cell.StopMoved))
	require.Empty(t, c.gave("y", "memory of y"))
	require.Equal(t, "shardstopped", c.gave("x", "memory of x"))
	require.Equal(t, []protocol.Snapshot{{Entity: "x", Data: []byte("memory of x")}, {Entity: "y", Data: []byte("memory of y")}}, c.halted())
	require.Zero(t, c.Handoff().Kept())
	require.EqualValues(t, 2, c.tally().Snapshots)

	next := newCell(t, nodeB, recalling)
	next.apply(protocol.StartHosting{Epoch: epoch(2), Base: epoch(1), Snapshots: c.halted()})
	require.Equal(t, "start:x", next.tell("x"))
	require.Equal(t, "memory of x", next.memory("x"))
	next.Handoff().Restored(next.now, next.entities["x"], true, &next.out)
	next.started("x", true)
	require.EqualValues(t, 1, next.tally().Restored)
	require.Equal(t, 1, next.Handoff().Kept())
	next.done("x", cell.Result{Failed: true})
	next.tell("x")
	require.Equal(t, "start:x", next.stopped("x"))
	require.Empty(t, next.memory("x"), "given out once")
}

// Only an instance that has stopped for a move is asked: not one that was passivated or has failed, nor
// one whose hosting has ended meanwhile.
func TestWhoIsAskedForASnapshot(t *testing.T) {
	for why := cell.StopPassivated; int(why) < cell.StopReasons; why++ {
		c := host(t, recalling)
		c.works("x")
		c.apply(protocol.StopHosting{Epoch: epoch(1)})
		want := "shardstopped"
		if why == cell.StopMoved || why == cell.StopLeaving {
			want = "snapshot:x"
		}
		require.Equal(t, want, c.leaves("x", why), "%v", why)
	}
	c := host(t, recalling)
	c.works("x")
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	require.Equal(t, "snapshot:x", c.leaves("x", cell.StopMoved))
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(2)})
	require.Empty(t, c.gave("x", "memory"), "another node hosts the shard")
	require.Zero(t, c.Handoff().Kept())
	require.Zero(t, c.tally().Snapshots)
}

// A shard goes on without a snapshot that takes too long, as long as it stops.
func TestASnapshotThatTakesTooLong(t *testing.T) {
	c := host(t, recalling)
	c.works("x")
	c.works("y")
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.leaves("x", cell.StopMoved)
	c.leaves("y", cell.StopMoved)
	c.gave("y", "memory")
	require.Empty(t, c.tick(9*time.Second))
	require.Equal(t, "forgotten:x:too-slow stuck:x shardstopped", c.tick(time.Second))
	require.Equal(t, []protocol.Snapshot{{Entity: "y", Data: []byte("memory")}, {Entity: "x", Loss: protocol.LossTooSlow}}, c.halted())
	require.Equal(t, "returned:x", c.gave("x", "memory"))
	require.Zero(t, c.Handoff().Kept())
	require.EqualValues(t, 1, c.tally().Forgotten[protocol.LossTooSlow])

	c = host(t, recalling)
	c.works("x")
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.leaves("x", cell.StopMoved)
	c.apply(protocol.ResumeHosting{Epoch: epoch(1)})
	require.Empty(t, c.tick(time.Minute), "nobody waits for it")
	require.Empty(t, c.tell("x"))
	require.Equal(t, "forgotten:x:too-slow fail:x:not delivered stuck:x shardstopped", c.apply(protocol.StopHosting{Epoch: epoch(1)}))
}

// When the stop of the shard is taken back, the next instance here has the memory.
func TestASnapshotOfAMoveThatIsCalledOff(t *testing.T) {
	c := host(t, recalling)
	c.works("x")
	c.works("y")
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.leaves("x", cell.StopMoved)
	c.gave("x", "memory of x")
	c.leaves("y", cell.StopMoved)
	c.apply(protocol.ResumeHosting{Epoch: epoch(1)})
	require.Equal(t, "start:x", c.tell("x"))
	require.Equal(t, "memory of x", c.memory("x"))
	require.Empty(t, c.tell("y"))
	require.Equal(t, "start:y", c.gave("y", "memory of y"))
	require.Equal(t, "memory of y", c.memory("y"))
}

// What nobody asks for goes when an idle entity would, by a sweep.
func TestASnapshotThatNobodyAsksFor(t *testing.T) {
	cfg := recalling
	cfg.PassivateAfter = time.Minute
	c := newCell(t, nodeA, cfg)
	c.apply(protocol.StartHosting{Epoch: epoch(2), Base: epoch(1), Snapshots: []protocol.Snapshot{
		{Entity: "x", Data: []byte("memory")}, {Entity: "y", Loss: protocol.LossOnTheWay},
	}})
	require.EqualValues(t, 1, c.tally().Forgotten[protocol.LossOnTheWay])
	c.now = c.now.Add(time.Minute)
	c.Handoff().Sweep(c.now, &c.out)
	require.Equal(t, "forgotten:x:idle", c.did())
	lost, _ := c.Handoff().Lost("x")
	require.Equal(t, protocol.LossIdle, lost.Loss)
	lost, _ = c.Handoff().Lost("y")
	require.Equal(t, protocol.LossOnTheWay, lost.Loss)
}

// An entity that was left behind while it was asked for its snapshot is nobody's concern any more,
// whatever becomes of the shard: it is not given up a second time.
func TestASnapshotThatOutlivesTheHosting(t *testing.T) {
	c := host(t, recalling)
	c.works("x")
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	late := c.entities["x"]
	require.Equal(t, "snapshot:x", c.leaves("x", cell.StopMoved))
	require.Equal(t, "forgotten:x:too-slow stuck:x shardstopped", c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}))
	c.apply(protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(1)})
	c.apply(protocol.StartHosting{Epoch: epoch(3), Base: epoch(1)})
	c.works("x")
	c.works("y")
	c.now = c.now.Add(time.Hour)
	require.Equal(t, "stop:x stop:y", c.apply(protocol.StopHosting{Epoch: epoch(3)}))
	c.leaves("x", cell.StopMoved)
	require.Empty(t, c.gave("x", "memory of x"))
	c.Handoff().Gave(c.now, late, protocol.Snapshot{Data: []byte("an old memory")}, &c.out)
	require.Equal(t, "returned:x", c.did())
	require.Equal(t, "shardstopped", c.stopped("y"))
	require.Equal(t, []protocol.Snapshot{{Entity: "x", Data: []byte("memory of x")}}, c.halted())
}
