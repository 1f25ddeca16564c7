// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package singleton_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/machine/component"
	"github.com/quorate/quorate/membership/singleton"
)

const service = 3

// node returns the i-th node. Nodes are ordered as their numbers.
func node(i int) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "n", Port: uint16(i)}, UID: gossip.UID(i)}
}

// history is a cluster as its leader, which never has the role, sees it.
type history struct {
	t     testing.TB
	state *gossip.State
}

const leader = 999

func newHistory(t testing.TB) *history {
	t.Helper()
	h := &history{t: t, state: gossip.New(gossip.ClusterID{Born: 1, Nonce: 1})}
	h.edit(func(e *gossip.Edit) bool { return e.Join(gossip.Member{Node: node(leader)}) })
	return h
}

func (h *history) edit(f func(*gossip.Edit) bool) *history {
	h.t.Helper()
	h.state = h.state.Edit(node(leader), func(e *gossip.Edit) { require.True(h.t, f(e), "the edit was refused") })
	return h
}

// join lets nodes join, with the service and the role.
func (h *history) join(nodes ...int) *history {
	h.t.Helper()
	for _, i := range nodes {
		h.joinWith(gossip.Member{Node: node(i), Roles: []string{"worker"}, Services: []uint16{service}})
	}
	return h
}

func (h *history) joinWith(m gossip.Member) *history {
	h.t.Helper()
	return h.edit(func(e *gossip.Edit) bool { return e.Join(m) })
}

// up lets nodes be up, in this order.
func (h *history) up(nodes ...int) *history {
	h.t.Helper()
	for _, i := range nodes {
		h.edit(func(e *gossip.Edit) bool { return e.SetStatus(node(i), gossip.Up, e.LastUpNumber()+1) })
	}
	return h
}

func (h *history) set(st gossip.Status, i int) *history {
	h.t.Helper()
	return h.edit(func(e *gossip.Edit) bool { return e.SetStatus(node(i), st, 0) })
}

func (h *history) remove(i int) *history {
	h.t.Helper()
	return h.edit(func(e *gossip.Edit) bool { return e.Remove(node(i), time.Unix(1000, 0)) })
}

// core is a core with its last wishes as words.
type core struct {
	*singleton.Core
	fences *component.Fences
	self   gossip.NodeID
	now    machine.Instant
	out    singleton.Actions
}

func newCore(i int) *core {
	cfg := singleton.Config{Role: "worker", Service: service, Retry: time.Second, Limit: 3 * time.Second}
	return newCoreOf(i, cfg)
}

func newCoreOf(i int, cfg singleton.Config) *core {
	fences := new(component.Fences)
	return &core{Core: singleton.New(cfg, fences), fences: fences, self: node(i)}
}

// learn hands the core a state, as its component does.
func (c *core) learn(state *gossip.State) {
	c.fences.Forget(state)
	c.Update(c.now, c.self, state, &c.out)
}

// separate tells the core that a node is fenced, as its component does.
func (c *core) separate(node gossip.NodeID) {
	c.fences.Add(node)
	c.Fenced(c.now, node, &c.out)
}

// did returns what the core wanted since the last call.
func (c *core) did() string {
	var words []string
	if c.out.Stop {
		words = append(words, "stop")
	}
	if !c.out.Start.IsZero() {
		words = append(words, fmt.Sprintf("start %d.%d", c.out.Start.UpNumber, c.out.Start.Start))
	}
	for _, s := range c.out.Send {
		word := "ask"
		if s.Message == (singleton.Done{}) {
			word = "done"
		}
		words = append(words, fmt.Sprintf("%s %d", word, s.To.UID))
	}
	for _, n := range c.out.Stuck {
		words = append(words, fmt.Sprintf("stuck %d", n.UID))
	}
	c.out = singleton.Actions{}
	return strings.Join(words, ", ")
}

func (c *core) sees(h *history) string {
	c.learn(h.state)
	return c.did()
}

func (c *core) fence(i int) string {
	c.separate(node(i))
	return c.did()
}

func (c *core) hear(i int, m singleton.Message) string {
	c.Receive(c.now, node(i), m, &c.out)
	return c.did()
}

func (c *core) tick(d time.Duration) string {
	c.now = c.now.Add(d)
	c.Tick(c.now, &c.out)
	return c.did()
}

func (c *core) stopped() string {
	c.InstanceStopped(c.now, &c.out)
	return c.did()
}

// The oldest member that is up and has the role starts, nobody else does, and
// members that join later take nothing away.
// covers I3.
func TestOldestStartsAndKeeps(t *testing.T) {
	h := newHistory(t).join(1, 2)
	a, b := newCore(1), newCore(2)
	require.Empty(t, a.tick(time.Second), "nothing is known yet")
	require.Empty(t, a.sees(h), "joining is not up")
	h.up(2, 1)
	require.Empty(t, a.sees(h), "age is when a member became up, not its name")
	require.Equal(t, "start 1.1", b.sees(h))
	require.Equal(t, singleton.Oldest, b.Phase())
	require.Equal(t, singleton.Term{UpNumber: 1, UID: node(2).UID, Start: 1}, b.Term())
	h.join(3).up(3)
	require.Empty(t, b.sees(h))
	require.Empty(t, a.sees(h))
	require.Equal(t, singleton.Younger, a.Phase())
	require.Equal(t, "younger term 0-0.0 floor 0 known 2 confirmed 0", a.String())
}

// A candidate needs the role and the service. An older member without them is passed
// over, and no confirmation of it is awaited, whatever becomes of it.
func TestCandidatesNeedRoleAndService(t *testing.T) {
	h := newHistory(t).
		joinWith(gossip.Member{Node: node(1), Services: []uint16{service}}).
		joinWith(gossip.Member{Node: node(2), Roles: []string{"worker"}}).
		join(3).up(1, 2, 3)
	one, two, three := newCore(1), newCore(2), newCore(3)
	require.Empty(t, one.sees(h))
	require.Empty(t, two.sees(h))
	require.Equal(t, "start 3.1", three.sees(h))

	four := newCore(4)
	h.join(4).up(4)
	require.Empty(t, four.sees(h))
	h.set(gossip.Down, 1).set(gossip.Leaving, 3)
	require.Equal(t, "ask 3", four.sees(h), "whether 1 still runs does not matter")
}

// A member that gets the service late is older than the one that runs the
// instance, which goes on; the late one starts under a term that others refuse,
// and is excluded by their floor.
func TestOldMemberThatComesLateRetires(t *testing.T) {
	h := newHistory(t).joinWith(gossip.Member{Node: node(1), Roles: []string{"worker"}}).join(2).up(1, 2)
	old, young := newCore(1), newCore(2)
	require.Empty(t, old.sees(h))
	require.Equal(t, "start 2.1", young.sees(h))
	h.state = h.state.Edit(node(1), func(e *gossip.Edit) { require.True(t, e.AddService(service)) })
	require.Empty(t, young.sees(h))
	require.Equal(t, singleton.Oldest, young.Phase())
	require.Equal(t, "start 1.1", old.sees(h))
	old.Retire(young.Term().Age())
	require.Empty(t, old.tick(time.Second))
	require.Empty(t, old.sees(h), "its floor excludes itself")
	require.Equal(t, singleton.Younger, old.Phase())

	young.SetFloor(gossip.Age{UpNumber: 2})
	h.set(gossip.Leaving, 2).join(3).up(3)
	third := newCore(3)
	third.SetFloor(gossip.Age{UpNumber: 2})
	require.Equal(t, "ask 2", third.sees(h), "the excluded one is not waited for")
}

// A retired instance starts again under a higher term when the floor permits.
func TestRetiredCountsItsStarts(t *testing.T) {
	h := newHistory(t).join(1).up(1)
	c := newCore(1)
	require.Equal(t, "start 1.1", c.sees(h))
	c.Retire(gossip.Age{UpNumber: 1})
	require.Equal(t, "start 1.2", c.tick(0))
	c.SetFloor(gossip.Age{UpNumber: 9})
	c.SetFloor(gossip.Age{UpNumber: 2})
	c.Retire(gossip.Age{UpNumber: 0})
	require.Empty(t, c.tick(time.Second), "floors only rise")
}

// A leaving member stops, confirms to whoever asks, and the next one starts then.
// covers F34, I3.
func TestHandOver(t *testing.T) {
	h := newHistory(t).join(1, 2, 3).up(1, 2, 3)
	a, b, c := newCore(1), newCore(2), newCore(3)
	require.Equal(t, "start 1.1", a.sees(h))
	b.sees(h)
	c.sees(h)
	h.set(gossip.Leaving, 1)
	require.Equal(t, "ask 1", b.sees(h))
	require.Equal(t, singleton.Becoming, b.Phase())
	require.Empty(t, c.sees(h), "an older one stays")
	require.Empty(t, a.hear(2, singleton.Request{}), "asked before it knows that it leaves")
	require.Equal(t, "stop", a.sees(h))
	require.Equal(t, singleton.HandingOver, a.Phase())
	require.Empty(t, a.hear(2, singleton.Request{}))
	require.Empty(t, b.tick(500*time.Millisecond), "not yet again")
	require.Equal(t, "ask 1", b.tick(500*time.Millisecond))
	require.Equal(t, "done 2", a.stopped(), "one answer, though asked twice")
	require.Equal(t, singleton.Ended, a.Phase())
	require.Empty(t, a.stopped(), "said twice")
	require.Equal(t, "start 2.1", b.hear(1, singleton.Done{}))
	require.Equal(t, "done 3", a.hear(3, singleton.Request{}), "whoever asks later")
	require.Empty(t, a.tick(time.Minute), "it never starts here again")
}

// A hand-over that takes too long is reported once, repeated, and never passed
// over; it ends when the member is removed and fenced.
func TestHandOverBeyondItsLimit(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2)
	b := newCore(2)
	require.Empty(t, b.sees(h))
	require.Equal(t, "ask 1", b.sees(h.set(gossip.Leaving, 1)))
	require.Equal(t, "ask 1", b.tick(time.Second))
	require.Equal(t, "ask 1", b.tick(time.Second))
	require.Equal(t, "ask 1, stuck 1", b.tick(time.Second))
	require.Equal(t, "ask 1", b.tick(time.Hour), "reported once")
	require.Equal(t, "ask 1", b.sees(h.set(gossip.Exiting, 1))+b.tick(time.Second))
	require.Empty(t, b.sees(h.remove(1)), "removed is not fenced")
	require.Empty(t, b.tick(time.Hour))
	require.Equal(t, "start 2.1", b.fence(1))
}

// Several of the oldest leave at once: each that is not gone must confirm, and one
// that never ran the instance confirms at once.
// covers F35.
func TestSeveralOldestLeaveAtOnce(t *testing.T) {
	h := newHistory(t).join(1, 2, 3).up(1, 2, 3)
	a, b, c := newCore(1), newCore(2), newCore(3)
	require.Equal(t, "start 1.1", a.sees(h))
	b.sees(h)
	c.sees(h)
	h.set(gossip.Leaving, 1).set(gossip.Leaving, 2)
	require.Equal(t, "ask 1, ask 2", c.sees(h))
	require.Empty(t, b.sees(h))
	require.Equal(t, singleton.Ended, b.Phase(), "who leaves never starts")
	require.Equal(t, "done 3", b.hear(3, singleton.Request{}))
	require.Empty(t, c.hear(2, singleton.Done{}))
	a.sees(h)
	a.hear(3, singleton.Request{})
	require.Equal(t, "done 3", a.stopped())
	require.Equal(t, "start 3.1", c.hear(1, singleton.Done{}))
}

// A member that is down is waited for until it is removed and fenced, and a
// confirmation from before does not count for it.
// covers I3.
func TestDownMemberIsAwaited(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2)
	b := newCore(2)
	b.sees(h)
	require.Empty(t, b.sees(h.set(gossip.Down, 1)), "nobody is asked: it may be cut off and running")
	require.Empty(t, b.hear(1, singleton.Done{}))
	require.Empty(t, b.tick(time.Hour))
	require.Empty(t, b.sees(h.remove(1)))
	require.Equal(t, "start 2.1", b.fence(1))
	require.Empty(t, b.fence(1), "heard again")
}

// A fence that is heard before the removal is kept: stale news of the member bring
// nothing back.
func TestFenceAheadOfTheState(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2)
	b := newCore(2)
	require.Empty(t, b.sees(h.set(gossip.Leaving, 1))[len("ask 1"):])
	require.Equal(t, "start 2.1", b.fence(1))
	require.Empty(t, b.sees(h))
	require.Equal(t, singleton.Oldest, b.Phase())
	require.Contains(t, b.String(), "known 0")
}

// A node that joins after the removal of a member that it never knew waits for that
// member's fence too: the node may be the oldest by then, with the removed member still
// running. covers I3.
func TestJoinerWaitsForTheFenceOfWhomItNeverKnew(t *testing.T) {
	h := newHistory(t).join(1).up(1).set(gossip.Down, 1).remove(1).join(2).up(2)
	b := newCore(2)
	require.Empty(t, b.sees(h))
	b.SetFloor(gossip.Age{UpNumber: 2})
	require.Empty(t, b.tick(time.Minute), "its age is not known, so that no floor excludes it")
	require.Equal(t, "start 200001.1", b.fence(1), "a removal outbids what was given before")

	late := newCore(2)
	require.Empty(t, late.fence(1), "a core that is made late is told of fences first")
	require.Equal(t, "start 200001.1", late.sees(h))
}

// A member that was fenced is not waited for, before its removal is known, after that,
// and when the cluster has forgotten it.
// covers I23.
func TestWhoWasFencedIsNotWaitedFor(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2)
	b := newCore(2)
	b.sees(h)
	require.Equal(t, "start 2.1", b.fence(1))
	require.Empty(t, b.sees(h), "the node is a member in a state from before its fence")
	require.Empty(t, b.sees(h.set(gossip.Down, 1).remove(1)))
	h.edit(func(e *gossip.Edit) bool { return e.SetPrunedBefore(time.Unix(2000, 0)) })
	_, removed := h.state.Removed(node(1))
	require.False(t, removed)
	require.Empty(t, b.sees(h))
	require.Equal(t, "oldest term 2-2.1 floor 0 known 0 confirmed 0", b.String())
}

// Two cores of a component ask the same fences: one that is made after a fence starts,
// although it was never told of that.
func TestACoreThatIsMadeLaterKnowsTheFences(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2)
	b := newCore(2)
	b.sees(h)
	b.sees(h.set(gossip.Down, 1).remove(1))
	require.Equal(t, "start 2.1", b.fence(1))
	later := &core{Core: singleton.New(singleton.Config{Service: service}, b.fences), fences: b.fences, self: b.self}
	require.Equal(t, "start 2.1", later.sees(h))
	stranger := newCoreOf(2, singleton.Config{Service: service})
	require.Empty(t, stranger.sees(h), "a component that has not heard of the fence waits")
}

// A core is not told of a fence that its component has not added.
func TestAFenceThatWasNotAdded(t *testing.T) {
	c := newCore(2)
	require.Panics(t, func() { c.Fenced(0, node(1), &c.out) })
}

// A member that is removed while it runs the instance stops it, and one that is
// removed before stays quiet.
func TestRemovedMemberStops(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2)
	a, b := newCore(1), newCore(2)
	require.Equal(t, "start 1.1", a.sees(h))
	b.sees(h)
	require.Equal(t, "stop", a.sees(h.set(gossip.Down, 1)))
	require.Empty(t, b.sees(h.set(gossip.Leaving, 2)))
	require.Equal(t, singleton.Ended, b.Phase(), "down is not up, and neither is leaving")
	c := newCore(3)
	require.Equal(t, "ask 2", c.sees(h.join(3).remove(1))+c.sees(h.up(3))+c.fence(1))
	require.Empty(t, c.sees(h.set(gossip.Down, 3)))
	require.Equal(t, singleton.Ended, c.Phase(), "what is becoming and goes down ends")
	d := newCore(4)
	d.sees(h.join(4).up(4))
	d.fence(1)
	d.hear(2, singleton.Done{})
	require.Empty(t, d.sees(h.remove(4)), "removed before it ran anything")
	require.Empty(t, d.fence(4))
}

// Two members with one up-number, which two leaders could give at the same time,
// are told apart as membership tells them apart: by their uids. Their terms never
// are equal.
func TestEqualAge(t *testing.T) {
	h := newHistory(t).join(1, 2)
	one := h.state.Edit(node(1), func(e *gossip.Edit) { require.True(t, e.SetStatus(node(1), gossip.Up, 7)) })
	two := h.state.Edit(node(2), func(e *gossip.Edit) { require.True(t, e.SetStatus(node(2), gossip.Up, 7)) })
	h.state = one.Merge(two)
	require.Equal(t, h.state.Member(node(1)).UpNumber, h.state.Member(node(2)).UpNumber)
	a, b := newCore(1), newCore(2)
	require.Equal(t, "start 7.1", a.sees(h))
	require.Empty(t, b.sees(h))
	require.Equal(t, "ask 1", b.sees(h.set(gossip.Leaving, 1)))
	a.stopped()
	require.Equal(t, "start 7.1", b.hear(1, singleton.Done{}))
	require.Equal(t, -1, a.Term().Compare(b.Term()))
}

func TestTermsAreOrdered(t *testing.T) {
	ordered := []singleton.Term{
		{}, {UpNumber: 1, UID: 7, Start: 1}, {UpNumber: 1, UID: 7, Start: 2}, {UpNumber: 1, UID: 31, Start: 1}, {UpNumber: 2, UID: 5, Start: 1},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			require.Equal(t, i < j, a.Compare(b) < 0)
			require.Equal(t, i == j, a.Compare(b) == 0)
		}
		require.Equal(t, i == 0, a.IsZero())
	}
	require.Equal(t, "1-7.2", ordered[2].String())
	require.Equal(t, "1-1f.1", ordered[3].String())
	require.Equal(t, "none", singleton.Phase(9).String())
}

func TestDefaults(t *testing.T) {
	h := newHistory(t).join(1, 2).up(1, 2).set(gossip.Leaving, 1)
	c := newCoreOf(2, singleton.Config{})
	require.Equal(t, "ask 1", c.sees(h), "without a role everybody is a candidate")
	require.Empty(t, c.tick(time.Second-1))
	require.Equal(t, "ask 1", c.tick(1))
	require.Equal(t, "ask 1, stuck 1", c.tick(9*time.Second))
}
