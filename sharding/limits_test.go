// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/patience"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding"
	"github.com/quorate/quorate/sharding/internal/protocol"
)

// Bounds, and what a sender meets at them: first a mailbox and a window that are full, then
// ids and messages that are refused, then messages that are too large for the lane or the
// frame, and last frames that mean nothing and a lane that was idle.

// Senders to a full mailbox wait until their context ends, on each node, and no other entity
// of the same shard is held up.
// covers F42.
func TestAFullMailboxLetsSendersWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MailboxSize, s.NumberOfShards = 2, 1 }
		w.start(2)
		for _, n := range w.nodes {
			id := fmt.Sprintf("busy-%d", n.i)
			for range 3 { // One message that the entity handles, and two that wait.
				n.tell(id, "wait")
				synctest.Wait()
			}
			n.ask("beside", "x", limit) //nolint:errcheck // After this ask the node knows the home, and that the home holds it back.
			accepted := 3
			for ; ; accepted++ { // From another node one more message is on its way before the home says that the mailbox is full.
				before := time.Now()
				err := n.region.Tell(patience.Expiring(t, time.Second), id, say("wait"))
				if err == nil {
					pass(10 * time.Millisecond)
					continue
				}
				require.Equal(t, time.Second, time.Since(before))
				require.ErrorIs(t, err, sharding.ErrOverloaded)
				require.ErrorIs(t, err, sharding.ErrNotDelivered)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "waited for room: the mailbox of the entity is full")
				break
			}
			require.LessOrEqual(t, accepted, 4)
			_, err := n.ask(id, "x", time.Second)
			require.ErrorIs(t, err, sharding.ErrOverloaded)
			before := time.Now()
			require.ErrorIs(t, n.region.Tell(patience.Expiring(t, 0), id, say("x")), sharding.ErrNotDelivered)
			n.must(fmt.Sprintf("idle-%d", n.i), "x")
			require.Less(t, time.Since(before), 100*time.Millisecond)
		}
		var late []<-chan error
		for _, n := range w.nodes {
			late = append(late, n.asked(fmt.Sprintf("busy-%d", n.i), "late"))
			require.EqualValues(t, 1, n.system.Stats().Waiting)
		}
		w.release()
		for i, n := range w.nodes {
			require.NoError(t, within(t, late[i]))
			require.Len(t, w.journal.of(fmt.Sprintf("busy-%d", n.i), "late"), 1)
			stats := n.system.Stats()
			require.Zero(t, stats.Waiting)
			require.Zero(t, stats.Held)
			require.Zero(t, stats.Failed)
		}
	})
}

// Tell and Ask wait for room in a full window until their context ends.
// covers F42.
func TestAFullWindowLetsSendersWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.WindowBytes = 4 << 10 }
		n := w.build()
		n.startKind() // No shard has a home yet.
		big := say(strings.Repeat("x", 1000))
		ctx := patience.Expiring(t, 100*time.Millisecond)
		var err error
		accepted := 0
		before := time.Now()
		for ; err == nil; accepted++ {
			err = n.region.Tell(ctx, "a", big)
		}
		require.Equal(t, 100*time.Millisecond, time.Since(before))
		require.InDelta(t, 4, accepted, 1)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = n.ask("a", strings.Repeat("x", 1000), 50*time.Millisecond)
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		err = n.region.Tell(ctx, "b", big)
		require.ErrorIs(t, err, sharding.ErrNotDelivered, "a context that has ended sends nothing")
		other := sibling("zz")
		for shardOf(other) == shardOf("a") {
			other = sibling(other + "z")
		}
		n.tell(other, "x")
		for range 10 {
			require.NoError(t, n.region.Tell(t.Context(), "a", big))
		}
		n.must("a", "x")
		require.Len(t, w.journal.of("a", "xxx"), accepted-1+10)
	})
}

// An ask without a deadline that waits for room ends after a minute.
func TestAnAskThatWaitsForRoomEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.WindowBytes = 4 << 10 }
		w.kind = func(_ *node, k *sharding.Kind[text]) { k.Role = "host" } // No node has this role, so that no shard gets a home.
		n := w.build()
		n.startKind()
		for range 3 {
			n.tell("a", strings.Repeat("x", 1000))
		}
		before := time.Now()
		_, err := sharding.Ask[text](t.Context(), n.region, "a", say(strings.Repeat("x", 1000)))
		require.ErrorIs(t, err, sharding.ErrNotDelivered)
		require.ErrorContains(t, err, "waited for room")
		require.Equal(t, time.Minute, time.Since(before))
	})
}

// Ids and messages that no entity could get are refused before they are sent. The error is
// short, however long they are.
func TestUnacceptableMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.MaxMessageBytes = 2000 }
		w.start(2)
		r := w.nodes[0].region
		there := w.nodes[0].on(w.nodes[1]) // Only messages to other nodes are encoded.
		tests := map[string]struct {
			id      string
			message text
			detail  string
		}{
			"empty id":    {"", say("x"), "the id is empty"},
			"long id":     {strings.Repeat("i", protocol.MaxEntityBytes+1), say("x"), "at most"},
			"huge id":     {strings.Repeat("i", 1<<20), say("x"), "1048576 bytes"},
			"not UTF-8":   {"\xff", say("x"), "not valid UTF-8"},
			"nil pointer": {"a", nil, "the message is nil"},
			"too large":   {there, say(strings.Repeat("x", 2000)), "sharding.max-message-bytes is 2000"},
		}
		for name, test := range tests {
			err := r.Tell(t.Context(), test.id, test.message)
			require.ErrorIs(t, err, sharding.ErrInvalid, name)
			require.ErrorContains(t, err, test.detail)
			_, err = sharding.Ask[text](t.Context(), r, test.id, test.message)
			require.ErrorIs(t, err, sharding.ErrInvalid, name)
			require.ErrorContains(t, err, test.detail)
			require.Less(t, len(err.Error()), 300)
		}
		longest := strings.Repeat("é", protocol.MaxEntityBytes/2)
		require.Equal(t, "test/"+longest, w.nodes[0].must(longest, "kind"))
		for _, odd := range []string{"../..", "a\x00b", " ", "\n"} {
			require.Equal(t, "test/"+odd, w.nodes[0].must(odd, "kind"))
		}
	})
}

// Messages of which each fills more than half of a lane's window get through, over a link
// that is cut for a while. Such a message once made its sender spin.
func TestLargeMessagesGetThroughAFullLane(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.config = func(_ *membership.Config, s *sharding.Config) { s.WindowBytes = 8 << 20 }
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		w.network.CutOneWay(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		for i := range 4 {
			w.nodes[0].tell(id, fmt.Sprintf("n %d", i+1))
			w.nodes[0].tell(id, strings.Repeat("x", (400+300*(i%2))<<10))
		}
		pass(time.Second)
		w.network.HealAll()
		w.nodes[0].must(id, "x")
		w.inOrder(id, "n", 4)
	})
}

// When a lane is full, the messages wait in their cells, and keep the order of their
// sender.
func TestAFullLaneLetsMessagesWait(t *testing.T) {
	inBubble(t, func(_ *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) { m.Transport.WindowBytes = 64 << 10 }
		w.start(2)
		ids := w.nodes[0].hosted(w.nodes[1], 4)
		w.network.CutOneWay(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		for i := range 80 {
			for _, id := range ids {
				w.nodes[0].tell(id, fmt.Sprintf("n %d", i+1))
				w.nodes[0].tell(id, strings.Repeat("x", 1000))
			}
		}
		w.network.HealAll()
		for _, id := range ids {
			w.nodes[0].must(id, "x")
			w.inOrder(id, "n", 80)
		}
	})
}

// A message that is larger than a frame of the transport may be fails at its place in the
// stream, and so does a reply; the stream goes on.
func TestFramesSmallerThanMessages(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) { m.Transport.MaxFrameBytes = 128 << 10 }
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		_, err := w.nodes[0].ask(id, strings.Repeat("x", 200<<10), limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.ErrorContains(t, err, "smaller frames")
		_, err = w.nodes[0].ask(id, "huge", limit)
		require.ErrorIs(t, err, sharding.ErrEntityFailed)
		require.ErrorContains(t, err, "larger than a frame")
		w.nodes[0].must(id, "x")
		require.Len(t, w.journal.of(id, "start"), 1)
	})
}

// A frame of a peer that cannot be decoded is counted and dropped.
func TestFramesThatMeanNothingAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		lane := w.nodes[0].Transport().Lane(w.nodes[1].Self(), machine.LaneMessage)
		for _, frame := range []string{"", "garbage", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\x00"} {
			require.NoError(t, lane.Append(protocol.MessageService, func(dst []byte) []byte { return append(dst, frame...) }))
		}
		eventually(t, "they are counted", func() bool { return w.nodes[1].system.Stats().Malformed == 4 })
		w.nodes[0].must("a", "x")
	})
}

// Neither a member whose frames mean nothing nor a client whose messages cannot be decoded fills the log.
func TestOthersDoNotFillTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var log bytes.Buffer
		w.options = append(w.options, sharding.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		w.start(2)
		lane := w.nodes[0].Transport().Lane(w.nodes[1].Self(), machine.LaneMessage)
		for range 500 {
			require.NoError(t, lane.Append(protocol.MessageService, func(dst []byte) []byte { return append(dst, "garbage"...) }))
		}
		eventually(t, "they are counted", func() bool { return w.nodes[1].system.Stats().Malformed == 500 })
		for i := range 500 {
			answers := make(chan sharding.Answer, 1)
			wait := sharding.EncodedOf(w.nodes[1].system, "test").Ask(t.Context(), fmt.Sprint("e", i), []byte{0xff}, time.Now().Add(limit), "",
				func(a sharding.Answer) { answers <- a })
			if wait != nil {
				wait()
			}
			_, err := within(t, answers).Append(nil)
			require.ErrorIs(t, err, sharding.ErrEntityFailed)
		}
		require.NoError(t, w.nodes[0].Close())
		require.NoError(t, w.nodes[1].Close())
		require.LessOrEqual(t, strings.Count(log.String(), `msg="message dropped"`), 8)
		require.NotContains(t, log.String(), "garbage")
		require.LessOrEqual(t, strings.Count(log.String(), `msg="message cannot be decoded"`), 2*8)
	})
}

// A lane that was closed because it was idle opens again at once.
func TestAnIdleLaneOpensAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.config = func(m *membership.Config, _ *sharding.Config) { m.Transport.IdleAfter = 10 * time.Second }
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		for range 5 {
			pass(time.Minute)
			before := time.Now()
			w.nodes[0].must(id, "x")
			require.Less(t, time.Since(before), 100*time.Millisecond)
		}
	})
}
