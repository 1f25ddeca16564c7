// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
)

// Replies to node 2, by a host whose lane there is busy or idle.

// answerer is a host that sends replies to node 2.
type answerer struct {
	*hostStub

	t    *testing.T
	peer *peer
	lane *laneStub
	lost int
}

func newAnswerer(t *testing.T, version uint16) *answerer {
	t.Helper()
	a := &answerer{hostStub: newHost(), t: t}
	a.node.Ports.Notes.Unsent = func(frames int) { a.lost += frames }
	a.node.Connected(node(2), version)
	a.peer = a.node.peer(node(2))
	a.lane = a.lanes[node(2)]
	return a
}

// reply sends replies to asks with these numbers.
func (a *answerer) reply(correlations ...uint64) {
	a.t.Helper()
	for _, c := range correlations {
		require.NoError(a.t, a.peer.reply(&protocol.Reply{Kind: "a", Shard: 1, Correlation: c}))
	}
}

// frames returns the replies of each frame that the lane has taken since the last call.
func (a *answerer) frames() (all [][]uint64) {
	a.t.Helper()
	for _, f := range a.lane.frames {
		item, err := wire.DecodeItem(f, a.now)
		require.NoError(a.t, err)
		var frame []uint64
		note := func(r *protocol.Reply) {
			require.Equal(a.t, a.now, r.Clock)
			frame = append(frame, r.Correlation)
		}
		if list, ok := item.(*wire.Replies); ok {
			require.NoError(a.t, list.Each(note))
		} else {
			note(item.(*protocol.Reply))
		}
		all = append(all, frame)
	}
	a.lane.frames = nil
	return all
}

// Replies leave at once while the lane is idle. While it is busy they wait for it to call, and go
// in one envelope with the clock of that moment; the lane is asked once for each call.
func TestRepliesTravelTogether(t *testing.T) {
	a := newAnswerer(t, protocol.VersionReplies)
	a.reply(1, 2)
	require.Equal(t, [][]uint64{{1}, {2}}, a.frames())
	for range 3 {
		a.lane.busy = true
		a.reply(3, 4, 5)
		require.Empty(t, a.frames())
		require.Len(t, a.lane.deferred, 1)
		a.now += 50
		a.lane.call()
		require.Equal(t, [][]uint64{{3, 4, 5}}, a.frames())
	}
	a.reply(6)
	require.Equal(t, [][]uint64{{6}}, a.frames())
}

// A node of an earlier version, or one with which no session has begun, gets each reply by itself.
func TestRepliesOfEarlierVersionsTravelAlone(t *testing.T) {
	for _, version := range []uint16{0, protocol.VersionReplies - 1} {
		a := newAnswerer(t, version)
		a.lane.busy = true
		a.reply(1, 2)
		require.Equal(t, [][]uint64{{1}, {2}}, a.frames())
	}
}

// A list that is full leaves before the lane calls, and a reply that no list has room for goes by
// itself.
func TestFullListsOfRepliesLeave(t *testing.T) {
	a := newAnswerer(t, protocol.VersionReplies)
	a.lane.busy = true
	half := make([]byte, wire.ReplyListBytes/2)
	big := func(correlation uint64, payload []byte) {
		require.NoError(t, a.peer.reply(&protocol.Reply{Kind: "a", Correlation: correlation, Payload: payload}))
	}
	big(1, half)
	big(2, half)
	require.Equal(t, [][]uint64{{1}, {2}}, a.frames())
	a.reply(3)
	big(4, append(half, half...))
	a.reply(5)
	require.Equal(t, [][]uint64{{3}, {4}}, a.frames())
	a.lane.call()
	require.Equal(t, [][]uint64{{5}}, a.frames())
	require.Zero(t, a.lost)
}

// A list that finds the lane full waits in the backlog, and one that the lane refuses for good is
// counted, each of its replies.
func TestAListOfRepliesWaitsForTheLane(t *testing.T) {
	a := newAnswerer(t, protocol.VersionReplies)
	a.lane.busy = true
	a.reply(1, 2)
	a.lane.err = transport.ErrFull
	a.lane.call()
	require.Equal(t, 1, a.waited)
	a.lane.err = nil
	a.node.Flush(node(2))
	require.Equal(t, [][]uint64{{1, 2}}, a.frames())
	a.lane.busy = true
	a.reply(3, 4)
	a.lane.err = transport.ErrClosed
	a.lane.call()
	require.Empty(t, a.frames())
	require.Equal(t, 2, a.lost)
}

// When a session ends, the replies that wait for it are appended to the lane, which has them go by
// the next session if there is one; and nothing waits for a call that may never come.
func TestRepliesDoNotWaitForASessionThatHasEnded(t *testing.T) {
	a := newAnswerer(t, protocol.VersionReplies)
	a.lane.busy = true
	a.reply(1, 2)
	a.node.Disconnected(node(2))
	require.Equal(t, [][]uint64{{1, 2}}, a.frames())
	a.reply(3)
	require.Equal(t, [][]uint64{{3}}, a.frames(), "what was looked up before the end")
	a.lane.call()
	require.Empty(t, a.frames())
}

// answerTo is an ask, and the reply that came to it.
type answerTo struct {
	Ask

	reply *protocol.Reply
}

func (a *answerTo) Answer(r *protocol.Reply) { a.reply = r }
func (a *answerTo) End(bool, error)          {}

// ask asks an entity of a shard.
func (s *sender) ask(correlation uint64, shard protocol.ShardID) *answerTo {
	s.t.Helper()
	a := new(answerTo)
	a.Renew(correlation)
	a.Asker = a
	sl := s.node.Region("a").Slot(shard)
	m, _ := sl.Blank("e", nil, nil)
	m.Correlation, m.Payload = a.Correlation, []byte("x")
	admission, _, _ := sl.Offer(m, &a.Ask)
	require.Equal(s.t, cell.Accepted, admission)
	return a
}

// A reply of a node to which the message has not gone, as far as is known here, does not count before that node is
// known as the home. A few of them are kept, one of each node.
func TestEarlyRepliesAreBounded(t *testing.T) {
	s := newSender(t, protocol.VersionReplies)
	a := s.ask(1, 0)
	for from := range uint16(10) {
		for again := range byte(3) {
			reply := &protocol.Reply{Kind: "a", Correlation: 1, Payload: []byte{byte(from), again}}
			s.node.Received(node(3+from), wire.AppendReply(nil, reply))
		}
	}
	require.Nil(t, a.reply)
	require.Len(t, a.earlyReplies, maxEarlyReplies)
	s.home(4)
	require.NotNil(t, a.reply)
	require.Equal(t, []byte{1, 2}, a.reply.Payload)
	require.Zero(t, s.node.Region("a").Slot(0).Asking())
}

// The asks of one envelope are answered, each by its own reply. What is wrong ends the envelope,
// and is counted; what came before counts.
func TestRepliesThatCameTogetherAnswerTheirAsks(t *testing.T) {
	s := newSender(t, protocol.VersionReplies)
	asks := []*answerTo{s.ask(1, 0), s.ask(2, 1), s.ask(3, 0)}
	var list wire.ReplyList
	for i, a := range asks {
		require.True(t, list.Add(&protocol.Reply{Kind: "a", Shard: protocol.ShardID(i % 2), Correlation: a.Correlation, Payload: []byte{byte(i)}}))
	}
	frame := list.Append(nil, 70)
	s.node.Received(node(2), frame[:len(frame)-1])
	require.Equal(t, 1, s.malformed)
	require.Equal(t, []byte{0}, asks[0].reply.Payload)
	require.Equal(t, []byte{1}, asks[1].reply.Payload)
	require.Nil(t, asks[2].reply)
	s.node.Received(node(2), frame)
	require.Equal(t, []byte{2}, asks[2].reply.Payload)
	require.Equal(t, []byte{0}, asks[0].reply.Payload, "nobody waits for a reply that comes again")
	require.EqualValues(t, 70, s.node.ClockOf(node(2), s.now))
	require.Equal(t, 1, s.malformed)
}
