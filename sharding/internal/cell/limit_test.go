// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package cell_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/passivation"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// handles is a limiter that evicts nobody, and knows what it was told.
type handles struct {
	last   passivation.Handle
	taken  map[passivation.Handle]*cell.Entity
	uses   []string
	urgent bool // The last uses had to be taken.
	wrong  int  // How many handles were used, or freed, that nobody has.
}

func newHandles() *handles { return &handles{taken: map[passivation.Handle]*cell.Entity{}} }

func (s *handles) Enter(_ protocol.ShardID, e *cell.Entity) passivation.Handle {
	s.last++
	s.taken[s.last] = e
	return s.last
}

func (s *handles) Use(used []passivation.Handle, must bool) {
	s.urgent = must
	for _, at := range used {
		if s.taken[at] == nil {
			s.wrong++
			continue
		}
		s.uses = append(s.uses, s.taken[at].ID())
	}
}

func (s *handles) Leave(at passivation.Handle) {
	if s.taken[at] == nil {
		s.wrong++
	}
	delete(s.taken, at)
}

// x returns the handle of the entity x.
func (s *handles) x(t *testing.T) (passivation.Handle, *cell.Entity) {
	t.Helper()
	for at, e := range s.taken {
		if e.ID() == "x" {
			return at, e
		}
	}
	t.Fatal("x has no handle")
	return 0, nil
}

// limited returns a host whose instances have handles, with an idle entity x.
func limited(t *testing.T) (*bench, *handles) {
	t.Helper()
	s := newHandles()
	return active(t, cell.Config{Limiter: s}), s
}

// use has the idle entity x handle a message.
func (c *bench) use() {
	c.tell("x")
	c.done("x", cell.Result{})
}

// evict asks a cell to stop the entity x to make room.
func (c *bench) evict(s *handles) cell.Verdict {
	c.t.Helper()
	at, e := s.x(c.t)
	return c.Maintenance().Evict(c.now, s, e, at, &c.out)
}

// An instance has a handle from its start until it is told to stop.
func TestInstancesHaveHandles(t *testing.T) {
	c, s := limited(t)
	require.Len(t, s.taken, 1)
	require.Equal(t, "stop:x", c.passivate("x"))
	require.Empty(t, s.taken)
	c.stopped("x")
	c.tell("x")
	require.Len(t, s.taken, 1)
	c.started("x", false)
	require.Empty(t, s.taken, "it could not start")

	c = newCell(t, nodeA, cell.Config{Limiter: s, Permanent: []string{"always"}})
	require.Equal(t, "start:always", c.apply(protocol.StartHosting{Epoch: epoch(1), Base: epoch(1)}))
	require.Empty(t, s.taken, "who is permanent needs none")
	s = newHandles()
	c.Maintenance().Limit(s)
	require.Empty(t, s.taken, "nor from another limiter")
}

// Uses are told a few at a time, and before a handle is given or freed; the message that an instance
// was started for is no further use.
func TestUsesAreGathered(t *testing.T) {
	c, s := limited(t)
	for range 15 {
		c.use()
	}
	require.Empty(t, s.uses)
	c.use()
	require.Len(t, s.uses, 16)
	require.False(t, s.urgent, "others may go first")
	c.use()
	c.tell("y")
	require.Len(t, s.uses, 17)
	require.True(t, s.urgent)
	c.use()
	c.passivate("x")
	require.Len(t, s.uses, 18)
	require.Zero(t, s.wrong, "told while the handle is that of x")
}

// Whoever the cell gives up frees its handle at once, though it has not returned: it is at work when the shard is
// released, or when the home is another one.
func TestWhoIsGivenUpHasNoHandle(t *testing.T) {
	for _, given := range []protocol.CellInput{
		protocol.ReleaseHosting{Epoch: epoch(1)}, protocol.SetRoute{Home: nodeB, Epoch: epoch(2), Base: epoch(2)}, protocol.AbandonHosting{},
	} {
		c, s := limited(t)
		c.tell("x")
		c.tell("starts")
		if _, released := given.(protocol.ReleaseHosting); released {
			c.apply(protocol.StopHosting{Epoch: epoch(1)})
		}
		require.Len(t, s.taken, 2, "%T", given)
		c.apply(given)
		require.Empty(t, s.taken, "%T", given)
		c.done("x", ok)
		c.started("starts", true)
		require.Zero(t, s.wrong, "%T", given)
	}
}

// A message that comes while its entity is at work is no use of its own.
func TestARunIsOneUse(t *testing.T) {
	c, s := limited(t)
	c.tell("x")
	c.tell("x")
	c.tell("x")
	c.passivate("x")
	for range 3 {
		c.done("x", cell.Result{})
	}
	require.Len(t, s.uses, 3, "one for each time that it was taken up")
}

// Who is at work, holds itself or lacks standing is not stopped to make room; who was used is
// looked at again; all others are stopped, and start again at the next message.
func TestWhoMakesRoom(t *testing.T) {
	c, s := limited(t)
	require.Equal(t, "run:x", c.tell("x"))
	require.Equal(t, cell.Used, c.evict(s))
	require.Equal(t, cell.Busy, c.evict(s))
	c.done("x", cell.Result{})
	c.entities["x"].Hold(true)
	require.Equal(t, cell.Busy, c.evict(s))
	c.entities["x"].Hold(false)
	c.deliver(from(nodeB, "x", 1, epoch(1)))
	require.Equal(t, cell.Used, c.evict(s))
	c.done("x", cell.Result{Reply: &protocol.Reply{}, Withhold: true})
	require.Equal(t, cell.Busy, c.evict(s), "its reply waits")
	c.tick(time.Second)
	c.apply(protocol.SuspendHosting{})
	require.Equal(t, cell.Busy, c.evict(s))
	c.apply(protocol.UnsuspendHosting{})
	at, e := s.x(t)
	require.Equal(t, cell.Gone, c.Maintenance().Evict(c.now, newHandles(), e, at, &c.out), "another limiter")
	require.Equal(t, cell.Gone, c.Maintenance().Evict(c.now, s, e, at+1, &c.out), "another handle")
	require.Equal(t, cell.Evicted, c.evict(s))
	require.Equal(t, "stop:x", c.did())
	require.Equal(t, cell.CauseLimit, e.Cause())
	require.Equal(t, cell.Gone, c.Maintenance().Evict(c.now, s, e, at, &c.out), "once")
	c.tell("x")
	require.Equal(t, "start:x", c.stopped("x"))
	require.Equal(t, uint64(1), c.tally().Passivated[cell.CauseLimit])
}

// Those that run enter another limiter, and leave the one before.
func TestAnotherLimiter(t *testing.T) {
	c, s := limited(t)
	next := newHandles()
	c.tell("y")
	c.use()
	c.Maintenance().Limit(next)
	require.Empty(t, s.taken)
	require.Zero(t, s.wrong)
	require.Len(t, next.taken, 2)
	require.Equal(t, []string{"x", "y"}, []string{next.taken[1].ID(), next.taken[2].ID()}, "in the order of their start")
	c.use()
	require.Equal(t, "stop:x", c.passivate("x"))
	c.Maintenance().Limit(s)
	require.Len(t, s.taken, 1, "who stops does not count")
	require.Zero(t, next.wrong)
	require.Empty(t, c.stopped("x"))
	c.tell("x")
	c.started("x", true)
	c.done("x", cell.Result{})
	next = newHandles()
	c.Maintenance().Limit(next)
	require.Zero(t, s.wrong)
	c.Maintenance().Limit(nil)
	require.Empty(t, next.taken)
	c.use()
	require.Empty(t, next.uses)
}

// The causes have names.
func TestCauses(t *testing.T) {
	require.Equal(t, "asked idle limit cause 3", cell.CauseAsked.String()+" "+cell.CauseIdle.String()+" "+cell.CauseLimit.String()+" "+cell.Cause(3).String())
}
