// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/gossip"
)

// node returns the id of the i-th node.
func node(i uint16) gossip.NodeID {
	return gossip.NodeID{Address: gossip.Address{Host: "127.0.0.1", Port: 7000 + i}, UID: gossip.UID(i)}
}

// viewWith returns a view in which node 1 and some others have joined.
func viewWith(t *testing.T, statuses ...gossip.Status) View {
	t.Helper()
	state := gossip.New(gossip.ClusterID{Born: 1, Nonce: 1})
	for i, status := range statuses {
		state = state.Edit(node(1), func(e *gossip.Edit) {
			e.Join(gossip.Member{Node: node(uint16(i + 1)), Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}})
		})
		if status > gossip.Joining {
			state = state.Edit(node(1), func(e *gossip.Edit) { e.SetStatus(node(uint16(i+1)), status, gossip.UpNumber(i+1)) })
		}
	}
	return View{Self: node(1), State: state}
}

// read returns the events that wait.
func read(t *testing.T, s *Subscription, n int) []Event {
	t.Helper()
	var events []Event
	for range n {
		e, err := s.Next(t.Context())
		require.NoError(t, err)
		events = append(events, e)
	}
	return events
}

// TestASubscriptionBeginsWithASnapshot covers I25: the snapshot and the events
// behind it add up to the state.
func TestASubscriptionBeginsWithASnapshot(t *testing.T) {
	h := hub{view: viewWith(t, gossip.Up)}
	s := h.subscribe()
	defer s.Close()
	next := viewWith(t, gossip.Up, gossip.Up)
	h.advance(next)
	events := read(t, s, 3)
	require.IsType(t, Snapshot{}, events[0])
	require.Equal(t, gossip.Joining, events[1].(MemberChanged).Member.Status, "a new member is announced as joining first")
	require.Equal(t, MemberChanged{Member: next.State.Member(node(2)), Previous: gossip.Joining}, events[2])
}

// TestRemovalComesFirst shows the order within one change.
func TestRemovalComesFirst(t *testing.T) {
	h := hub{view: viewWith(t, gossip.Up, gossip.Exiting)}
	s := h.subscribe()
	defer s.Close()
	next := h.view
	next.State = next.State.Edit(node(1), func(e *gossip.Edit) {
		e.SetStatus(node(1), gossip.Leaving, 0)
		e.Join(gossip.Member{Node: node(3), Status: gossip.Joining, Protocol: gossip.ProtocolRange{Min: 1, Max: 1}})
	}).Edit(node(1), func(e *gossip.Edit) { e.SetStatus(node(2), gossip.Down, 0) })
	next.Leader = node(1)
	h.advance(next)
	events := read(t, s, 5)
	require.Equal(t, gossip.Leaving, events[1].(MemberChanged).Member.Status)
	require.Equal(t, gossip.Down, events[2].(MemberChanged).Member.Status)
	require.Equal(t, node(3), events[3].(MemberChanged).Member.Node)
	require.Equal(t, LeaderChanged{Leader: node(1)}, events[4])
}

// TestASlowSubscriberIsToldWhatItMissed shows that nothing is dropped in
// silence, that a slow subscriber costs no more than its buffer, and that it
// finds its way back.
func TestASlowSubscriberIsToldWhatItMissed(t *testing.T) {
	h := hub{view: viewWith(t, gossip.Up)}
	s := h.subscribe()
	defer s.Close()
	for range SubscriptionBuffer + 5 {
		h.publish(Fenced{Node: node(9)})
	}
	events := read(t, s, 2)
	require.Equal(t, Missed{N: SubscriptionBuffer + 6}, events[0], "the snapshot counts as well")
	require.Equal(t, Snapshot{View: h.view}, events[1])
	h.publish(Fenced{Node: node(8)})
	require.Equal(t, []Event{Fenced{Node: node(8)}}, read(t, s, 1))
}

// TestNextEnds shows each way in which waiting ends.
func TestNextEnds(t *testing.T) {
	h := hub{view: viewWith(t, gossip.Up)}
	s := h.subscribe()
	read(t, s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
	h.publish(Fenced{Node: node(2)})
	h.end()
	read(t, s, 1)
	_, err = s.Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	s.Close()
	s.Close()
	late := h.subscribe()
	read(t, late, 1)
	_, err = late.Next(t.Context())
	require.ErrorIs(t, err, ErrClosed)
}
