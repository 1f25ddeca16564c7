// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The life of entities in a cell: first sweeps and passivation, then failures, then entities
// that do not return and shards that go on without them, then instances whose hosting has
// ended; last the messages of an instance to itself, and the deadline of a message.

func (c *bench) sweep() string {
	for over := false; !over; {
		over = c.Maintenance().Sweep(c.now, 2, &c.out)
	}
	return c.did()
}

func (c *bench) passivate(id string) string {
	c.Instances().Passivate(c.now, c.entities[id], &c.out)
	return c.did()
}

func (c *bench) remind(id string) string {
	c.Instances().Remind(c.now, c.entities[id], &cell.Message{Entity: id}, &c.out)
	return c.did()
}

// active returns a host with an idle entity x.
func active(t *testing.T, cfg cell.Config) *bench {
	t.Helper()
	c := host(t, cfg)
	c.tell("x")
	require.Equal(t, "run:x", c.started("x", true))
	require.Equal(t, "free:x:0", c.done("x", cell.Result{}))
	return c
}

// A node has millions of idle entities, so a field of their record is paid for by all
// of them. 144 bytes is a size class of the allocator on 64 bits.
func TestTheRecordOfAnEntityIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(cell.Entity{}), uintptr(144))
}

// A sweep stops the entities that had no message for a while, and no others. Messages that
// come during the stop wait for the next instance, in their order.
func TestSweepStopsIdleEntities(t *testing.T) {
	c := active(t, cell.Config{PassivateAfter: time.Minute})
	for i := range 5 {
		id := fmt.Sprint(i)
		c.tell(id)
		c.started(id, true)
		if i != 3 { // Entity 3 stays at its message.
			c.done(id, cell.Result{})
		}
	}
	c.now = c.now.Add(time.Minute - 1)
	require.Empty(t, c.sweep(), "not yet")
	c.tell("2")
	c.done("2", cell.Result{})
	c.entities["4"].Hold(true)
	c.now++
	require.Equal(t, "stop:x stop:0 stop:1", c.sweep(), "not what is busy, was used, or has timers")
	require.Empty(t, c.sweep(), "they are stopping")
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.deliver(from(nodeB, "x", 2, epoch(1)))
	require.Empty(t, c.did())
	require.Equal(t, "start:x", c.stopped("x"))
	require.Equal(t, "run:x", c.started("x", true))
	require.EqualValues(t, 1, c.entities["x"].Mail().Message().Seq)
	require.Equal(t, 1, c.entities["x"].Waiting())
	require.Empty(t, c.stopped("0"))
	require.Equal(t, 5, c.Info().Entities, "what stopped has no record")
	c.entities["4"].Hold(false)
	c.apply(protocol.SuspendHosting{})
	require.Empty(t, c.sweep(), "nothing is stopped without standing")
	c.apply(protocol.UnsuspendHosting{})
	require.Equal(t, "stop:4", c.sweep())
}

// A sweep goes on where it left off, also when the next entity was removed meanwhile.
func TestASweepGoesOnWhereItStopped(t *testing.T) {
	c := host(t, cell.Config{PassivateAfter: time.Second})
	for _, id := range []string{"a", "b", "c", "d"} {
		c.tell(id)
		c.started(id, true)
		c.done(id, cell.Result{})
	}
	c.now = c.now.Add(time.Second)
	c.Maintenance().Sweep(c.now, 1, &c.out)
	require.Equal(t, "stop:a", c.did())
	c.passivate("b")
	c.stopped("b")
	c.Maintenance().Sweep(c.now, 1, &c.out)
	require.Equal(t, "stop:c", c.did(), "b was next, and is gone")
	c.passivate("d")
	c.stopped("d")
	require.True(t, c.Maintenance().Sweep(c.now, 1, &c.out), "nothing is left of the round")
	require.Empty(t, c.did())
}

// An entity that is passivated during its start handles the messages that wait, and is
// stopped then.
func TestPassivateDuringStart(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	require.Empty(t, c.passivate("x"))
	require.Equal(t, "run:x", c.started("x", true))
	require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{}))
	require.Empty(t, c.passivate("x"), "it is stopping")
	require.Empty(t, c.stopped("x"))
}

// An entity that fails is started anew at once. From the second failure in a row it rests
// first, and its messages fail with the reason meanwhile. A success ends the row.
func TestFailuresInARow(t *testing.T) {
	broken := cell.Result{Failed: true, Reason: "disk full"}
	c := active(t, cell.Config{BackoffMin: 100 * time.Millisecond, BackoffMax: 150 * time.Millisecond})
	fail := func() string { // x fails at a message while another one waits behind it.
		c.tell("x")
		c.done("x", broken)
		return c.stopped("x")
	}
	c.tell("x")
	require.Equal(t, "start:x", fail(), "the first time there is no rest")
	c.started("x", true)
	require.Equal(t, "fail:x:entity failed", fail(), "the second time there is")
	require.Equal(t, "disk full", c.last[cell.OpFail].Reply.Detail)
	require.Equal(t, cell.EntityFailing, c.Accept(c.now, &cell.Message{Entity: "x"}, &c.out))
	failed, _ := c.Entity("x")
	require.Equal(t, "disk full", failed.Reason)
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	require.Equal(t, "disk full", c.last[cell.OpReply].Reply.Detail, "who is elsewhere hears it too")
	c.now = c.now.Add(100 * time.Millisecond)
	c.tell("x")
	c.started("x", true)
	require.Equal(t, "fail:x:entity failed", fail())
	c.now = c.now.Add(149 * time.Millisecond)
	require.Equal(t, cell.EntityFailing, c.Accept(c.now, &cell.Message{Entity: "x"}, &c.out), "longer, up to a bound")
	c.now = c.now.Add(time.Millisecond)
	c.tell("x")
	c.started("x", true)
	c.done("x", cell.Result{})
	c.tell("x")
	require.Equal(t, "start:x", fail(), "the row has ended")
	c.started("x", true)
	c.done("x", cell.Result{})
	info, _ := c.Entity("x")
	require.Zero(t, info.Failures)
}

// The record of an entity that failed is removed after the longest rest.
func TestFailuresAreForgotten(t *testing.T) {
	c := active(t, cell.Config{BackoffMax: time.Second})
	c.tell("x")
	c.done("x", cell.Result{Failed: true, Reason: "why"})
	require.Empty(t, c.stopped("x"))
	info, ok := c.Entity("x")
	require.True(t, ok)
	require.Equal(t, cell.EntityInfo{ID: "x", State: "failed", Since: c.now, Failures: 1, Reason: "why"}, info)
	c.now = c.now.Add(time.Second - 1)
	c.sweep()
	require.Equal(t, 1, c.Info().Entities)
	c.now++
	c.sweep()
	require.Zero(t, c.Info().Entities)
	_, ok = c.Entity("x")
	require.False(t, ok)
}

// With StopOnFailure, the messages that wait for an entity that fails fail too. The next
// message starts the entity.
func TestStopOnFailure(t *testing.T) {
	c := active(t, cell.Config{OnFailure: cell.StopOnFailure})
	for range 3 {
		c.tell("x")
		if c.entities["x"].Mail().Message() == nil {
			c.started("x", true)
		}
		c.tell("x")
		require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{Failed: true}))
		require.Equal(t, "fail:x:entity failed", c.stopped("x"))
	}
}

// A shard can be stopped although an entity keeps failing.
func TestAShardStopsWithAFailingEntity(t *testing.T) {
	c := active(t, cell.Config{})
	c.tell("x")
	c.tell("x")
	c.tell("x")
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	c.done("x", cell.Result{Failed: true})
	require.Equal(t, "start:x", c.stopped("x"), "the mailbox runs out")
	c.started("x", true)
	c.done("x", cell.Result{Failed: true})
	require.Equal(t, "fail:x:entity failed shardstopped", c.stopped("x"))
}

// The reply of an entity that fails while the clock shows no standing is withheld, and
// leaves when the clock shows standing again. It once never left.
func TestTheAnswerOfAFailureThatIsWithheldLeaves(t *testing.T) {
	c := host(t, cell.Config{})
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	c.started("x", true)
	reply := &protocol.Reply{Code: protocol.CodeEntityFailed}
	require.Equal(t, "free:x:1 stop:x", c.done("x", cell.Result{Failed: true, Withhold: true, Reply: reply}))
	require.Empty(t, c.stopped("x"))
	require.Equal(t, "reply:entity failed", c.tick(50*time.Millisecond))
	require.Equal(t, 1, c.Info().Entities, "its failure is remembered")
	require.Equal(t, "start:x", c.deliver(from(nodeB, "x", 2, epoch(1))))
}

// An entity that does not return from its start, a message or its stop is reported once, and
// counted until it returns.
func TestStuckEntitiesAreReportedOnce(t *testing.T) {
	c := host(t, cell.Config{StuckAfter: time.Minute})
	for _, id := range []string{"starts", "runs", "stops"} {
		c.tell(id)
	}
	c.started("runs", true)
	c.started("stops", true)
	c.done("stops", cell.Result{})
	c.passivate("stops")
	began := c.now
	c.now = c.now.Add(time.Minute)
	require.Equal(t, "stuck:starts stuck:runs stuck:stops", c.sweep())
	require.Empty(t, c.sweep(), "once")
	info := c.Info()
	require.Equal(t, 3, info.StuckCount)
	var states []string
	for _, e := range info.Stuck {
		require.Equal(t, began, e.Since)
		require.True(t, e.Stuck)
		states = append(states, e.State)
	}
	require.Equal(t, []string{"starting", "busy", "stopping"}, states)
	require.Equal(t, "returned:starts run:starts", c.started("starts", true))
	require.Equal(t, "returned:runs free:runs:0", c.done("runs", cell.Result{}))
	require.Equal(t, "returned:stops", c.stopped("stops"))
	require.Zero(t, c.Info().StuckCount)
	require.Empty(t, c.Info().Stuck)
}

// A shard that goes on without its stuck entities reports how far its streams were
// delivered, and every sender is told an outcome. The entities that were left behind begin
// no message, and their replies do not leave.
func TestReleaseLeavesStuckEntitiesBehind(t *testing.T) {
	c := host(t, cell.Config{})
	for i, id := range []string{"stuck", "stuck", "starts", "stops", "quick"} {
		c.deliver(from(nodeB, id, uint64(i+1), epoch(1)))
	}
	c.started("stuck", true)
	c.started("stops", true)
	c.done("stops", ok)
	c.started("quick", true)
	c.done("quick", ok)
	require.Empty(t, c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}), "it is not stopping")
	require.Equal(t, "stop:stops stop:quick", c.apply(protocol.StopHosting{Epoch: epoch(1)}))
	c.stopped("quick")
	require.Empty(t, c.apply(protocol.ReleaseHosting{Epoch: epoch(2)}), "another epoch")
	require.Equal(t, "reply:not delivered free:stuck:2 reply:unknown outcome stuck:stuck "+
		"reply:not delivered free:starts:3 stuck:starts stuck:stops ack:5 shardstopped",
		c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}))
	halted := c.last[cell.OpEvent].Event.(protocol.ShardStopped)
	require.Equal(t, []protocol.Position{{Origin: nodeB, Seq: 5}}, halted.Positions)
	require.Contains(t, c.last, cell.OpEnd, "contexts end")
	require.False(t, c.Info().Hosting)
	require.Equal(t, 3, c.Info().StuckCount)
	require.True(t, c.Info().Stuck[0].Released)
	require.True(t, c.entities["stuck"].Ended())

	// The shard comes back before the entities return: new instances take their place.
	old := c.entities
	c.entities = map[string]*cell.Entity{}
	require.Empty(t, c.apply(protocol.StartHosting{Epoch: epoch(3), Base: epoch(1), Positions: halted.Positions}))
	require.Equal(t, "start:stuck", c.deliver(from(nodeB, "stuck", 6, epoch(1))))
	c.started("stuck", true)
	renewed := c.entities
	require.NotSame(t, old["stuck"], renewed["stuck"])
	c.entities = old
	require.Equal(t, "returned:stuck free:stuck:1 stop:stuck", c.done("stuck", ok), "no reply")
	require.Empty(t, c.remind("stuck"))
	require.Empty(t, c.stopped("stuck"))
	require.Equal(t, "returned:starts stop:starts", c.started("starts", true))
	require.Empty(t, c.stopped("starts"))
	require.Equal(t, "returned:stops", c.stopped("stops"))
	require.Zero(t, c.Info().StuckCount)
	require.Empty(t, c.Info().Stuck)
	c.entities = renewed
	require.Equal(t, "reply free:stuck:6", c.done("stuck", ok))
}

// A shard that is released while it has no standing leaves nothing waiting for the standing:
// neither a reply that was withheld, nor a message that did not begin, nor an idle instance.
func TestReleaseOfASuspendedCell(t *testing.T) {
	c := host(t, cell.Config{})
	for i, id := range []string{"answered", "waits", "failed", "postponed"} {
		c.deliver(from(nodeB, id, uint64(i+1), epoch(1)))
	}
	c.started("answered", true)
	c.started("postponed", true)
	c.apply(protocol.SuspendHosting{})
	c.done("answered", ok)
	c.started("waits", true)
	c.started("failed", false)
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	require.Equal(t, "reply:unknown outcome stop:answered reply:not delivered free:waits:2 stop:waits "+
		"reply:unknown outcome stuck:postponed ack:4 shardstopped", c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}))
	c.Instances().Postpone(c.now, c.entities["postponed"], &c.out)
	require.Equal(t, "free:postponed:4 stop:postponed", c.did())
	require.Equal(t, "returned:postponed", c.stopped("postponed"))
	require.Empty(t, c.stopped("answered"))
	require.Empty(t, c.stopped("waits"))
	require.Zero(t, c.Info().StuckCount)
}

// When an entity that was left behind fails, at its start or at a message, no sender is told
// again.
func TestFailuresOfWhatWasLeftBehind(t *testing.T) {
	c := host(t, cell.Config{})
	c.tell("x")
	c.tell("y")
	c.started("y", true)
	c.apply(protocol.StopHosting{Epoch: epoch(1)})
	require.Equal(t, "fail:x:not delivered stuck:x reply:unknown outcome stuck:y shardstopped", c.apply(protocol.ReleaseHosting{Epoch: epoch(1)}))
	require.Equal(t, "returned:x", c.started("x", false))
	require.Equal(t, "returned:y free:y:0 stop:y", c.done("y", cell.Result{Failed: true}))
	require.Empty(t, c.stopped("y"))
	require.Zero(t, c.Info().StuckCount)
}

// An instance of an earlier hosting never gets a message of a later hosting: such messages
// wait until the instance is gone, and go to the next one. They once went to the old
// instance.
func TestAnEvictedInstanceGetsNoNewMessages(t *testing.T) {
	later := protocol.StartHosting{Epoch: epoch(3), Base: epoch(3)}
	away := protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)}
	c := active(t, cell.Config{})
	c.tell("x")
	c.apply(away)
	c.apply(later)
	require.Empty(t, c.tell("x"))
	require.Empty(t, c.remind("x"), "its timers have ended")
	require.Equal(t, "free:x:0 stop:x", c.done("x", cell.Result{Failed: true}))
	require.Equal(t, "start:x", c.stopped("x"))
	require.Equal(t, epoch(3), c.entities["x"].Epoch())
	require.Equal(t, "run:x", c.started("x", true))

	for what, end := range map[string]func(*bench) string{
		"starts":     func(c *bench) string { return c.started("x", true) },
		"fails":      func(c *bench) string { return c.started("x", false) },
		"is stopped": func(c *bench) string { return c.stopped("x") },
	} {
		c = host(t, cell.Config{})
		c.tell("x")
		if what == "is stopped" {
			c.started("x", true)
			c.done("x", cell.Result{})
		}
		c.apply(away)
		c.apply(later)
		require.Empty(t, c.tell("x"), what)
		did := end(c)
		if what == "starts" {
			require.Equal(t, "stop:x", did)
			did = c.stopped("x")
		}
		require.Equal(t, "start:x", did, what)
		require.Equal(t, epoch(3), c.entities["x"].Epoch())
	}
}

// An instance whose hosting has ended is stopped when it returns, even without standing, and
// its reply does not wait for the standing.
func TestAnEvictedInstanceStopsWithoutStanding(t *testing.T) {
	c := active(t, cell.Config{})
	c.tell("x")
	c.apply(protocol.SuspendHosting{})
	c.apply(protocol.SetRoute{Home: nodeC, Epoch: epoch(2), Base: epoch(2)})
	require.Equal(t, "free:x:0 stop:x", c.done("x", ok))
	require.Empty(t, c.stopped("x"))
	require.Zero(t, c.Info().Entities)
}

// A reminder, which is the message of an instance to itself, waits for its turn, also during
// the start and beyond the bound of the mailbox. When the instance ends, the reminder is
// dropped, and no sender is told.
func TestReminders(t *testing.T) {
	c := active(t, cell.Config{Mailbox: 1})
	require.Equal(t, "run:x", c.remind("x"))
	c.tell("x")
	require.Empty(t, c.remind("x"), "beyond the bound of the mailbox")
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	require.False(t, c.entities["x"].Mail().Message().Own, "it came first")
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	require.True(t, c.entities["x"].Mail().Message().Own)
	c.remind("x")
	require.Equal(t, "free:x:0 stop:x free:x:0", c.done("x", cell.Result{Failed: true})+" "+c.apply(protocol.AbandonHosting{}))
	require.Empty(t, c.remind("x"))

	c = host(t, cell.Config{})
	c.tell("x")
	c.remind("x")
	c.started("x", true)
	require.Equal(t, "free:x:0 run:x", c.done("x", cell.Result{}))
	c.apply(protocol.SuspendHosting{})
	c.done("x", cell.Result{})
	require.Empty(t, c.remind("x"), "not without standing")
	require.Equal(t, "run:x", c.apply(protocol.UnsuspendHosting{}))
	c.passivate("x")
	c.done("x", cell.Result{})
	require.Empty(t, c.remind("x"), "it is stopping")
	c.stopped("x")
	c.tell("y")
	c.remind("y")
	require.Equal(t, "fail:y:entity failed free:y:0", c.started("y", false), "the start failed")
}

// A message expires at its deadline, not later.
func TestAMessageExpiresAtItsDeadline(t *testing.T) {
	m := cell.Message{Deadline: 5}
	require.False(t, m.Expired(4))
	require.True(t, m.Expired(5))
	m.Deadline = 0
	require.False(t, m.Expired(5), "it has none")
}
