// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/transport"
)

// Batches, by a node whose shards live at node 2: what is in them, what may happen while one is
// on its way into the lane, and what follows when the lane does not take it.

// sender is a node whose shards all live at node 2. The first message of each has left it.
type sender struct {
	*hostStub

	t    *testing.T
	sent map[string]int
}

func newSender(t *testing.T, version uint16) *sender {
	t.Helper()
	s := &sender{newNode(), t, make(map[string]int)}
	s.node.Connected(node(2), version)
	s.home(2)
	for _, kind := range []string{"a", "b"} {
		for shard := range protocol.ShardID(2) {
			s.tell(kind, shard)
		}
	}
	s.taken(t, node(2))
	return s
}

// home gives all shards a home.
func (s *sender) home(n uint16) {
	epoch := base
	epoch.N = uint64(n)
	s.node.ApplyAll("", protocol.SetRoute{Home: node(n), Epoch: epoch, Base: base})
}

// tell sends the next message to a shard: its payload is its number.
func (s *sender) tell(kind string, shard protocol.ShardID) *cell.Message {
	s.t.Helper()
	sl, name := s.node.Region(kind).Slot(shard), fmt.Sprint(kind, shard)
	s.sent[name]++
	m, _ := sl.Blank("e", nil, nil)
	m.Payload = fmt.Append(nil, s.sent[name])
	admission, _, _ := sl.Offer(m, nil)
	require.Equal(s.t, cell.Accepted, admission)
	return m
}

// collect tells four messages to three shards while the lane is busy.
func (s *sender) collect() *laneStub {
	s.t.Helper()
	l := s.lanes[node(2)]
	l.busy = true
	s.tell("a", 0)
	s.tell("b", 1)
	s.tell("a", 0)
	s.tell("a", 1)
	require.Empty(s.t, s.taken(s.t, node(2)))
	return l
}

// What several cells have collected goes in one envelope when the lane calls, which was asked to
// do so once. A single cell needs none, and an older node gets an envelope for each.
func TestCellsShareAnEnvelope(t *testing.T) {
	s := newSender(t, protocol.VersionFrames)
	l := s.collect()
	require.Len(t, l.deferred, 1)
	l.call()
	require.Equal(t, []any{[]string{"a/0:2=2", "a/0:3=3", "b/1:2=2", "a/1:2=2"}}, s.taken(t, node(2)))
	s.tell("a", 0)
	require.Equal(t, []any{"a/0:4=4"}, s.taken(t, node(2)), "nothing waits any more")
	l.busy = true
	s.tell("a", 1)
	l.call()
	require.Equal(t, []any{"a/1:3=3"}, s.taken(t, node(2)))

	s = newSender(t, protocol.VersionFrames-1)
	s.collect().call()
	require.Equal(t, []any{[]string{"a/0:2=2", "a/0:3=3"}, "b/1:2=2", "a/1:2=2"}, s.taken(t, node(2)))
}

// What is accepted while a batch is on its way into the lane follows it.
func TestNothingOvertakesABatch(t *testing.T) {
	s := newSender(t, protocol.VersionFrames)
	l := s.collect()
	l.track = func() {
		s.tell("a", 0)
		s.node.Flush(node(2)) // As if there were room again.
		s.tell("a", 0)
	}
	l.call()
	require.Equal(t, []any{[]string{"a/0:2=2", "a/0:3=3", "b/1:2=2", "a/1:2=2"}, []string{"a/0:4=4", "a/0:5=5"}}, s.taken(t, node(2)))
}

// The lane is asked to call as often as the cells that wait need it, and a part of them transmits in each call.
func TestManyCellsWaitForALane(t *testing.T) {
	const shards = 100
	s := newSender(t, protocol.VersionFrames)
	r := s.node.NewRegion("many", shards, cell.Config{}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
	s.home(2)
	l := s.lanes[node(2)]
	for _, busy := range []bool{false, true} { // The first message to a home goes at once.
		l.busy, l.frames = busy, nil
		r.EachSlot(func(sl *Slot) { s.tell("many", sl.shard) })
	}
	require.Empty(t, l.frames)
	require.Len(t, l.deferred, (shards+maxDrain-1)/maxDrain)
	left := shards
	for _, call := range l.deferred {
		call()
		sent := s.taken(t, node(2))
		require.Len(t, sent, 1)
		require.Len(t, sent[0], min(left, maxDrain))
		left -= maxDrain
	}
}

// A message that does not fit into a batch goes by itself, in its place.
func TestALargeMessageGoesBehindTheBatch(t *testing.T) {
	s := newSender(t, protocol.VersionFrames)
	l := s.collect()
	sl := s.node.Region("b").Slot(1)
	m, _ := sl.Blank("e", nil, nil)
	m.Payload = make([]byte, 64<<10)
	admission, _, _ := sl.Offer(m, nil)
	require.Equal(t, cell.Accepted, admission)
	s.tell("b", 1)
	l.call()
	got := s.taken(t, node(2))
	require.Len(t, got, 3)
	require.Equal(t, []string{"a/0:2=2", "a/0:3=3", "b/1:2=2"}, got[0])
	large := got[1].([]string)
	require.True(t, strings.HasPrefix(large[0], "b/1:3="))
	require.Equal(t, "b/1:4=3", large[1])
	require.Equal(t, []string{"a/1:2=2"}, got[2], "the slots behind it begin another")
}

// A batch that the lane does not take is sent when there is room, cell by cell, and one that is
// too large for it at once. Nothing is sent twice.
func TestABatchThatIsRefusedIsSentLater(t *testing.T) {
	want := []any{[]string{"a/0:2=2", "a/0:3=3"}, "a/1:2=2", "b/1:2=2"}
	s := newSender(t, protocol.VersionFrames)
	l := s.collect()
	l.err = transport.ErrFull
	l.call()
	require.Equal(t, 1, s.waited)
	l.err = nil
	s.node.Flush(node(2))
	require.ElementsMatch(t, want, s.taken(t, node(2)))

	l = s.collect()
	l.err, l.track = transport.ErrTooLarge, func() { l.err = nil }
	l.call()
	require.ElementsMatch(t, []any{[]string{"a/0:4=4", "a/0:5=5"}, "a/1:3=3", "b/1:3=3"}, s.taken(t, node(2)))
}

// A home that is heard of while a batch is on its way into the lane to the one before gets all
// messages; those of the batch count as having left.
func TestABatchMeetsANewHome(t *testing.T) {
	s := newSender(t, protocol.VersionFrames)
	l := s.collect()
	l.track = func() { s.home(3) }
	l.call()
	require.Len(t, s.taken(t, node(2)), 1)
	require.Contains(t, s.taken(t, node(3)), []string{"a/0:1=1", "a/0:2=2", "a/0:3=3"})
	var lost int
	s.node.Ports.Notes.Lost = func(string, string, protocol.Code, string) { lost++ }
	epoch := base
	epoch.N = 9
	s.node.ApplyAll("", protocol.SetRoute{Home: node(4), Epoch: epoch, Base: epoch})
	require.Equal(t, 8, lost)
}

// Messages of a batch whose place is below what was written have left when their host dies, and
// the others are sent to the next host.
func TestMessagesOfABatchHaveAPlace(t *testing.T) {
	for _, left := range []bool{false, true} {
		s := newSender(t, protocol.VersionFrames)
		var lost int
		s.node.Ports.Notes.Lost = func(string, string, protocol.Code, string) { lost++ }
		l := s.collect()
		l.written = l.place // Everything before the batch.
		if left {
			l.track = func() { l.written = l.place + 1 }
		}
		l.call()
		epoch := base
		epoch.N = 9
		s.node.ApplyAll("", protocol.SetRoute{Home: node(3), Epoch: epoch, Base: epoch})
		if left {
			require.Equal(t, 8, lost)
			require.Nil(t, s.lanes[node(3)])
			continue
		}
		require.Equal(t, 4, lost, "the first message of each shard")
		require.ElementsMatch(t, []any{[]string{"a/0:1=2", "a/0:2=3"}, "a/1:1=2", "b/1:1=2"}, s.taken(t, node(3)))
	}
}

// gone is a passage that was given up: what was in it has not left.
type gone struct{}

func (gone) Written() (below uint64, over bool) { return 0, true }

// A message of a lane that was given up goes by a batch of the next, and has its place there: when
// the batch has left, the message is not taken back.
func TestABatchHasWhatAnEarlierPassageHasLost(t *testing.T) {
	s := newSender(t, protocol.VersionFrames)
	l := s.lanes[node(2)]
	l.passage = gone{}
	first, other := s.ask(1, 0), s.ask(2, 1)
	s.taken(t, node(2))
	l.passage, l.busy = nil, true
	s.node.Disconnected(node(2))
	s.node.Connected(node(2), protocol.VersionFrames)
	l.call()
	require.Equal(t, []any{[]string{"a/0:1=1", "a/0:2=x", "a/1:1=1", "a/1:2=x", "b/0:1=1", "b/1:1=1"}}, s.taken(t, node(2)))
	l.written = l.place
	for _, a := range []*answerTo{first, other} {
		back, told := a.Retract()
		require.False(t, back)
		require.False(t, told)
	}
}

// BenchmarkFrames measures a round of one message to each of 1,000 shards of a node: what the
// sender does until the messages are acknowledged, and what the host does with messages that it
// has had already, which is all but the mailbox. Nodes of the version before have an envelope for
// each shard.
func BenchmarkFrames(b *testing.B) {
	const shards = 1000
	for version, name := range map[uint16]string{protocol.VersionFrames - 1: "cell", protocol.VersionFrames: "batch", protocol.VersionNumbers: "number"} {
		h := newNode()
		r := h.node.NewRegion("many", shards, cell.Config{}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
		h.node.Connected(node(2), version)
		h.node.ApplyAll("many", protocol.SetRoute{Home: node(2), Epoch: base, Base: base})
		l, payload := h.lane(node(2)).(*laneStub), make([]byte, 64)
		var rounds uint64
		round := func() {
			rounds++
			h.now += 100
			r.EachSlot(func(sl *Slot) {
				m, _ := sl.Blank("entity", nil, nil)
				m.Payload = append(m.Payload, payload...)
				_, _, _ = sl.Offer(m, nil)
			})
			l.call()
			l.busy = true
		}
		acknowledge := func() {
			r.EachSlot(func(sl *Slot) {
				sl.acked(node(2), protocol.Ack{Kind: "many", Shard: sl.shard, Base: base, Seq: rounds}, h.now)
			})
		}
		round() // Each cell by itself.
		round() // All together, with their streams spelled out.
		named := slices.Clone(l.frames)
		b.Run("sender/by="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l.frames = l.frames[:0]
				round()
				acknowledge()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/shards, "ns/msg")
		})
		host := newNode()
		host.node.Ports.Self = node(2)
		host.node.NewRegion("many", shards, cell.Config{}, KindPorts{Work: func(Task) {}, Ended: func(*Slot) {}})
		host.node.ApplyAll("many", protocol.SetRoute{Home: node(2), Epoch: base, Base: base})
		host.node.ApplyAll("many", protocol.StartHosting{Epoch: base, Base: base})
		for _, f := range named {
			host.node.Received(node(1), f)
		}
		b.Run("host/by="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range l.frames {
					host.node.Received(node(1), f)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/shards, "ns/msg")
		})
	}
}
