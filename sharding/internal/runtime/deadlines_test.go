// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// The asks of a node whose shards have no home, so that no message is ever delivered, in a
// time that the test moves on: first the lobby in which they wait, with its clock and its
// timers, then the asks and their laws.

// lobby is the node.
type lobby struct {
	t      require.TestingT
	node   *Node
	region *Region
	now    machine.Instant
	timers []*bell
	asks   []*asked
}

func newLobby(t require.TestingT) *lobby {
	l := &lobby{t: t, now: 1}
	l.node = NewNode(Ports{
		Self: gossip.NodeID{UID: 1}, Clock: l,
		AfterFunc: func(after time.Duration, f func()) Timer {
			b := &bell{lobby: l, f: f}
			b.Reset(after)
			l.timers = append(l.timers, b)
			return b
		},
		Report: func(string, protocol.ShardID, protocol.CellEvent) {},
	})
	l.region = l.node.NewRegion("k", 3, cell.Config{WindowBytes: 1 << 20}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
	return l
}

// Instant returns the time.
func (l *lobby) Instant() machine.Instant { return l.now }

// bell is a timer.
type bell struct {
	lobby *lobby
	f     func()
	at    machine.Instant // When it rings; 0: it does not.
}

func (b *bell) Reset(after time.Duration) bool {
	b.at = b.lobby.now.Add(after)
	return true
}

func (b *bell) Stop() bool {
	b.at = 0
	return true
}

// pass lets time pass: timers ring in their order.
func (l *lobby) pass(d time.Duration) {
	for end := l.now.Add(d); ; {
		var next *bell
		for _, b := range l.timers {
			if b.at != 0 && b.at <= end && (next == nil || b.at < next.at) {
				next = b
			}
		}
		if next == nil {
			l.now = end
			return
		}
		l.now, next.at = max(l.now, next.at), 0
		next.f()
	}
}

// asked is an ask, and what its asker was told.
type asked struct {
	Ask

	lobby *lobby
	slot  *Slot
	told  int
	reply *protocol.Reply
	back  bool
	cause error
	at    machine.Instant // When the asker was told.
	gone  bool            // The asker has given up.
}

func (a *asked) Answer(r *protocol.Reply) {
	a.reply, a.at = r, a.lobby.now
	a.told++
}

func (a *asked) End(back bool, cause error) {
	a.back, a.cause, a.at = back, cause, a.lobby.now
	a.told++
}

// ask begins an ask that ends by itself after a time; 0: it does not.
func (l *lobby) ask(shard protocol.ShardID, after time.Duration) *asked {
	a := &asked{lobby: l, slot: l.region.Slot(shard)}
	a.Renew(uint64(len(l.asks) + 1))
	a.Asker = a
	if after > 0 {
		a.Deadline, a.Limited = l.now.Add(after), true
	}
	m, _ := a.slot.Blank("e", "x", nil)
	m.Correlation, m.Deadline, m.Payload = a.Correlation, a.Deadline, []byte("x")
	admission, _, _ := a.slot.Offer(m, &a.Ask)
	require.Equal(l.t, cell.Accepted, admission)
	l.asks = append(l.asks, a)
	return a
}

// waiting returns the asks that wait.
func (l *lobby) waiting() (all []*asked) {
	for _, a := range l.asks {
		if a.told == 0 && !a.gone {
			all = append(all, a)
		}
	}
	return all
}

// check holds what was told against the laws: an asker is told once, and never when it has
// given up; an ask that ends by itself ends at its deadline, or a little later if another
// one of its slot has just ended; its message is taken back, since nobody else has it.
func (l *lobby) check() {
	in := make(map[*Slot]int)
	for _, a := range l.asks {
		switch {
		case a.gone:
			require.Zero(l.t, a.told, "ask %d had given up", a.Correlation)
		case a.told == 0:
			in[a.slot]++
			require.False(l.t, a.Limited && l.now > a.Deadline.Add(deadlinesApart), "ask %d waits until %v, now %v", a.Correlation, a.Deadline, l.now)
		default:
			require.Equal(l.t, 1, a.told, "ask %d", a.Correlation)
			if a.reply == nil {
				require.True(l.t, a.back)
			}
			if a.reply == nil && a.cause == nil {
				require.True(l.t, a.Limited && a.at >= a.Deadline && a.at <= a.Deadline.Add(deadlinesApart), "ask %d until %v ended at %v", a.Correlation, a.Deadline, a.at)
			}
		}
	}
	l.region.EachSlot(func(sl *Slot) { require.Equal(l.t, in[sl], sl.Asking()) })
}

// Whatever asks come and go, each is told once how it ended, at its time. When all are over,
// no timer is left that rings for them.
func TestAsksEndOnceAndInTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLobby(t)
		some := func(do func(*asked)) func(*rapid.T) {
			return func(t *rapid.T) {
				if all := l.waiting(); len(all) > 0 {
					do(rapid.SampledFrom(all).Draw(t, "which"))
				}
			}
		}
		ended := errors.New("ended")
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { l.check() },
			"ask": func(t *rapid.T) {
				l.ask(protocol.ShardID(rapid.IntRange(0, 2).Draw(t, "shard")), time.Duration(rapid.IntRange(0, 60).Draw(t, "ms"))*time.Millisecond)
			},
			"pass": func(t *rapid.T) { l.pass(time.Duration(rapid.IntRange(0, 40_000).Draw(t, "us")) * time.Microsecond) },
			"answer": some(func(a *asked) {
				a.slot.mu.Lock()
				defer a.slot.mu.Unlock()
				a.slot.complete(&protocol.Reply{Correlation: a.Correlation})
			}),
			"give up": some(func(a *asked) {
				back, told := a.Retract()
				require.True(t, back)
				require.False(t, told)
				a.gone = true
			}),
			"end all": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					l.region.EndAsks(ended)
					require.Empty(t, l.waiting())
				}
			},
		})
		l.pass(time.Second)
		l.check()
		for _, a := range l.waiting() {
			require.False(t, a.Limited)
		}
		require.Empty(t, l.node.limits.slots)
	})
}

// Many asks of one slot that end one after the other have its table looked through seldom.
func TestAsksThatEndOneAfterTheOtherEndTogether(t *testing.T) {
	l := newLobby(t)
	l.ask(0, time.Second)
	for i := range 400 {
		l.pass(50 * time.Microsecond)
		l.ask(0, time.Second+time.Duration(i%7)*time.Microsecond)
	}
	rings := 0
	l.node.limits.timer.(*bell).f = func() {
		rings++
		l.node.limits.ring(l.node)
		l.check()
	}
	l.pass(2 * time.Second)
	require.Empty(t, l.waiting())
	require.LessOrEqual(t, rings, 5, "401 asks end within 20 ms")
}

// roomless is a sender that waits for room.
type roomless struct{ told int }

func (r *roomless) Room() { r.told++ }

// An ask whose message finds no room is not in the table, and a sender that gives up waiting for room hears of none.
func TestWhoFindsNoRoomLeavesNothingBehind(t *testing.T) {
	l := newLobby(t)
	waiter := new(roomless)
	l.node.Ports.Waiter = func(*cell.Message) Waiter { return waiter }
	sl := l.region.Slot(0)
	offer := func(correlation uint64) (*cell.Message, *Ask, cell.Admission) {
		a := new(asked)
		a.lobby, a.slot = l, sl
		a.Renew(correlation)
		a.Asker = a
		m, _ := sl.Blank("e", "x", nil)
		m.Correlation, m.Payload = correlation, make([]byte, 1<<20-100)
		admission, _, _ := sl.Offer(m, &a.Ask)
		return m, &a.Ask, admission
	}
	_, first, admission := offer(1)
	require.Equal(t, cell.Accepted, admission)
	m, second, admission := offer(2)
	require.Equal(t, cell.WindowFull, admission)
	require.Equal(t, 1, sl.Asking())
	require.Equal(t, 1, sl.Waiting())
	_, told := second.Retract()
	require.True(t, told)

	sl.Withdraw(m)
	require.Zero(t, sl.Waiting())
	back, told := first.Retract()
	require.True(t, back)
	require.False(t, told)
	require.Zero(t, waiter.told)
}

// A node that has ended ends its asks, and no timer rings any more.
func TestNoDeadlineOutlivesTheNode(t *testing.T) {
	l := newLobby(t)
	first, other := l.ask(0, time.Second), l.ask(1, time.Minute)
	l.node.Abandon()
	for _, a := range []*asked{first, other} {
		require.Equal(t, 1, a.told)
		require.NotNil(t, a.reply)
	}
	require.Zero(t, l.node.limits.timer.(*bell).at)
	l.node.limits.add(l.node, l.region.Slot(0), l.now.Add(time.Second), l.now)
	require.Empty(t, l.node.limits.slots)
	require.Zero(t, l.node.limits.timer.(*bell).at)
}
