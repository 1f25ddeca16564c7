// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// Streams by number: what a node sends in one session and in the next, and what a host does with
// numbers that it does not know.

// batch has cells share an envelope, and returns its bytes.
func (s *sender) batch() []byte {
	l := s.collect()
	l.call()
	require.Len(s.t, l.frames, 1)
	return l.frames[0]
}

// A stream is spelled out once a session, and in every envelope to a node that does not know
// numbers.
func TestStreamsAreSpelledOutOnceASession(t *testing.T) {
	s := newSender(t, protocol.VersionNumbers)
	first := s.batch()
	require.Equal(t, []any{[]string{"a/0:2=2", "a/0:3=3", "b/1:2=2", "a/1:2=2"}}, s.taken(t, node(2)))
	second := s.batch()
	require.Equal(t, []any{[]string{"a/0:4=4", "a/0:5=5", "b/1:3=3", "a/1:3=3"}}, s.taken(t, node(2)))
	require.Less(t, len(second)+3*40, len(first))

	s.node.Disconnected(node(2))
	s.node.Connected(node(2), protocol.VersionNumbers)
	s.taken(t, node(2)) // All that was not acknowledged, once more.
	third := s.batch()
	s.lanes[node(2)].numbers = wire.Numbers{} // The other node is asked for nothing that it has learned before.
	require.Equal(t, []any{[]string{"a/0:6=6", "a/0:7=7", "b/1:4=4", "a/1:4=4"}}, s.taken(t, node(2)))
	require.Greater(t, len(third), len(second)+3*40)

	s = newSender(t, protocol.VersionNumbers-1)
	for range 2 {
		s.batch()
		s.lanes[node(2)].numbers = wire.Numbers{}
		require.Len(t, s.taken(t, node(2)), 1)
	}
}

// A batch that the lane does not take has defined nothing.
func TestABatchThatIsRefusedDefinesNothing(t *testing.T) {
	s := newSender(t, protocol.VersionNumbers)
	l := s.collect()
	l.err = transport.ErrFull
	l.call()
	l.err = nil
	s.node.Flush(node(2))
	s.taken(t, node(2))
	s.batch()
	require.Len(t, s.taken(t, node(2)), 1, "nothing is refused")
}

// When all numbers are given, the next batch begins with the first again, of another generation.
func TestNumbersBeginAgain(t *testing.T) {
	s := newSender(t, protocol.VersionNumbers)
	s.batch()
	s.taken(t, node(2))
	p := s.node.peer(node(2))
	var e wire.Encoder
	s.tell("a", 0)
	o := s.node.Region("a").Slot(0).cell.Outbound().Transmission()
	for !p.batch.numbers.Exhausted() {
		e.Forget()
		_, _ = e.Part(nil, &o, 1, 1, s.now, &p.batch.numbers)
	}
	generation := p.batch.numbers.Generation
	s.taken(t, node(2))
	s.batch()
	require.Equal(t, generation+1, p.batch.numbers.Generation)
	require.False(t, p.batch.numbers.Exhausted())
	s.lanes[node(2)].numbers = wire.Numbers{}
	require.Len(t, s.taken(t, node(2)), 1)
}

// Messages of a number that a host does not know are dropped, counted one by one, and taken when
// they come again. Those beside them, and the numbers of other nodes, are not concerned.
func TestAHostRefusesNumbersThatItDoesNotKnow(t *testing.T) {
	s, h := newSender(t, protocol.VersionNumbers), newHostAt(node(2))
	dropped := make(map[cell.Drop]int)
	h.node.Ports.Notes.Dropped = func(why cell.Drop) { dropped[why]++ }
	h.receive(node(1))
	defines := s.batch()
	s.taken(t, node(2))
	uses := s.batch()

	h.node.Received(node(1), uses)
	require.Equal(t, map[cell.Drop]int{cell.DropUnknownStream: 4}, dropped)
	h.node.Received(node(1), defines)
	h.node.Received(node(3), uses)
	require.Equal(t, map[cell.Drop]int{cell.DropUnknownStream: 8}, dropped, "the numbers are those of another node")
	h.node.Received(node(1), uses)
	require.Equal(t, map[cell.Drop]int{cell.DropUnknownStream: 8}, dropped)
	require.Zero(t, h.malformed)
	var received uint64
	h.node.eachSlot(func(sl *Slot) {
		var t cell.Tally
		sl.Tally(&t)
		received += t.Received
	})
	require.EqualValues(t, 4+4+4, received)
}

// Numbers of nodes that are no members any more are forgotten when another node comes.
func TestNumbersOfWhoIsGoneAreForgotten(t *testing.T) {
	h := newHost()
	var o originMap
	first := o.of(node(2), h)
	require.Same(t, first, o.of(node(2), h))
	gone := leavers{h, node(2)}
	o.of(node(3), gone)
	require.NotSame(t, first, o.of(node(2), h))
	kept := o.of(node(3), gone)
	o.of(node(4), gone)
	require.Same(t, kept, o.of(node(3), gone))
}

// leavers are the members without one that has left.
type leavers struct {
	Members
	left gossip.NodeID
}

func (l leavers) IsMember(node gossip.NodeID) bool { return node != l.left }
