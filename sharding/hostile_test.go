// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package sharding_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership"
	"github.com/quorate/quorate/sharding/epoch"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/memory"
)

// Peers that speak the protocol and lie: first a stranger, which is no member, and a member
// that lies, with the frames that they send; then what neither of them achieves, as the
// sender of a message, as a coordinator, and in the place of a home.

// hostile is a peer that speaks the protocol and lies.
type hostile struct {
	t    *testing.T
	self gossip.NodeID
	lane func(to *node) transport.Lane
}

// stranger returns a peer that may open connections, and is no member.
func (w *world) stranger() *hostile {
	w.t.Helper()
	self := gossip.NodeID{Address: gossip.Address{Host: "10.0.0.66", Port: 7946}, UID: 66}
	cfg := membership.Default().Transport
	id := transport.Identity{Node: self, Cluster: "test", Protocol: gossip.ProtocolRange{Min: 1, Max: 1}}
	t, err := memory.New(w.network, id, cfg)
	require.NoError(w.t, err)
	require.NoError(w.t, t.Start(w.t.Context()))
	w.others = append(w.others, t)
	return &hostile{w.t, self, func(to *node) transport.Lane { return t.Lane(to.Self(), machine.LaneMessage) }}
}

// liar returns a peer that lies from the member n, in whose name its frames come.
func (w *world) liar(n *node) *hostile {
	return &hostile{w.t, n.Self(), func(to *node) transport.Lane { return n.Transport().Lane(to.Self(), machine.LaneMessage) }}
}

// say sends a frame to the message service of a node.
func (h *hostile) say(to *node, frame []byte) {
	h.t.Helper()
	h.sayTo(to, protocol.MessageService, frame)
}

// sayTo sends a frame to a service of a node.
func (h *hostile) sayTo(to *node, service machine.Service, frame []byte) {
	h.t.Helper()
	require.NoError(h.t, h.lane(to).Append(service, func(dst []byte) []byte { return append(dst, frame...) }))
	synctest.Wait()
}

// write sends a message to an entity in the name of origin.
func (h *hostile) write(to *node, origin gossip.NodeID, id string, seq uint64, hops uint8, base protocol.Epoch) {
	h.t.Helper()
	payload, err := proto.Marshal(say("forged"))
	require.NoError(h.t, err)
	h.say(to, wire.AppendMessage(nil, &cell.Message{
		Kind: "test", Shard: shardOf(id), Entity: id, Origin: origin, Base: base, Route: base, Seq: seq, Hops: hops, Payload: payload,
	}, 0))
}

// place returns the epoch of the home of an entity. While the shard has its first home, that
// epoch is the base of its streams too.
func (n *node) place(id string) protocol.Epoch {
	n.w.t.Helper()
	e, err := epoch.Parse(n.must(id, "epoch"))
	require.NoError(n.w.t, err)
	return e
}

// A message of a stranger to an entity has no effect, whoever it names as its origin.
// covers I35.
func TestAStrangerWritesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		base, s := w.nodes[0].place(id), w.stranger()
		s.write(w.nodes[1], s.self, id, 1, 0, base)
		s.write(w.nodes[1], w.nodes[0].Self(), id, 1+w.nodes[0].region.Sent(id), 0, base)
		s.write(w.nodes[1], w.nodes[0].Self(), id, 2+w.nodes[0].region.Sent(id), 1, base)
		pass(5 * time.Second)
		require.Empty(t, w.journal.of(id, "forged"))
		require.EqualValues(t, 3, w.nodes[1].Stats().Strangers)
		w.nodes[0].must(id, "x")
	})
}

// A query of a stranger, which would make it the coordinator, does not reach the control
// machine: the node promises nothing, and goes on to obey the true coordinator.
// covers I35.
func TestAStrangerCoordinatesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(2)
		id := w.nodes[0].on(w.nodes[1])
		s := w.stranger()
		query, err := wire.Codec{}.Append(nil, control.Query{Kind: "test", Term: protocol.Term{UpNumber: 1 << 30, UID: s.self.UID, Start: 1}})
		require.NoError(t, err)
		s.sayTo(w.nodes[1], protocol.Service, query)
		pass(5 * time.Second)
		require.EqualValues(t, 1, w.nodes[1].Stats().Strangers)
		w.nodes[0].must(id, "x")
	})
}

// A member sends messages in its own name alone. In the name of another member it may only
// pass messages on, and not to that member.
// covers I35.
func TestAMemberWritesInItsOwnName(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		id := w.nodes[0].on(w.nodes[1])
		base, liar := w.nodes[0].place(id), w.liar(w.nodes[2])
		next := 1 + w.nodes[0].region.Sent(id)
		liar.write(w.nodes[1], w.nodes[0].Self(), id, next, 0, base)
		liar.write(w.nodes[1], w.nodes[1].Self(), id, 1, 0, base)
		liar.write(w.nodes[1], w.nodes[1].Self(), id, 1, 1, base)
		liar.write(w.nodes[1], gossip.NodeID{Address: gossip.Address{Host: "10.0.0.77", Port: 1}, UID: 1}, id, 1, 1, base)
		pass(5 * time.Second)
		require.Empty(t, w.journal.of(id, "forged"))
		require.EqualValues(t, 3, w.nodes[1].system.Stats().Forged.Origin)
		w.nodes[0].must(id, "x")
		require.Len(t, w.journal.of(id, "x"), 1, "the true message with the forged number is handled")
	})
}

// An acknowledgement, or a request for messages, that does not come from the home has no
// effect, even if everything in it is right: the messages that wait for the home are
// delivered.
// covers I20, I35.
func TestAcknowledgementsComeFromTheHome(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		id := w.nodes[0].on(w.nodes[1])
		base, s, liar := w.nodes[0].place(id), w.stranger(), w.liar(w.nodes[2])
		w.network.CutOneWay(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		for range 3 {
			w.nodes[0].tell(id, "told")
		}
		for _, forged := range [][]byte{
			wire.AppendAck(nil, protocol.Ack{Kind: "test", Shard: shardOf(id), Base: base, Seq: w.nodes[0].region.Sent(id)}),
			wire.AppendNeed(nil, protocol.Nack{Kind: "test", Shard: shardOf(id), Base: base, Seq: w.nodes[0].region.Sent(id)}),
		} {
			s.say(w.nodes[0], forged)
			liar.say(w.nodes[0], forged)
		}
		require.EqualValues(t, 2, w.nodes[0].system.Stats().Forged.Home)
		w.network.Break(w.nodes[0].Self().Address, w.nodes[1].Self().Address)
		w.network.HealAll()
		w.nodes[0].must(id, "x")
		require.Len(t, w.journal.of(id, "told"), 3)
		pass(5 * time.Second)
		require.EqualValues(t, 2, w.nodes[0].Stats().Strangers)
	})
}

// Only the home of an entity can say that the mailbox is full, and hold senders back.
// covers I35.
func TestTheHomeAloneHoldsBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		id := w.nodes[0].on(w.nodes[1])
		epoch, s, liar := w.nodes[0].place(id), w.stranger(), w.liar(w.nodes[2])
		hold := wire.AppendFlow(nil, protocol.Flow{Kind: "test", Shard: shardOf(id), Epoch: epoch, Entity: id, State: protocol.FlowHold})
		s.say(w.nodes[0], hold)
		require.Zero(t, w.nodes[0].system.Stats().Held)
		liar.say(w.nodes[0], hold)
		require.Zero(t, w.nodes[0].system.Stats().Held)
		require.EqualValues(t, 1, w.nodes[0].system.Stats().Forged.Home)
		pass(5 * time.Second)
		require.EqualValues(t, 1, w.nodes[0].Stats().Strangers)
		require.Zero(t, w.nodes[0].system.Stats().Held)
		w.nodes[0].must(id, "x")
	})
}

// A reply is taken only from a node to which the message can have gone: the number of an
// ask is soon guessed.
// covers I35.
func TestAnswersComeFromWhereTheMessageWent(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start(3)
		id := w.nodes[0].on(w.nodes[1])
		s, liar := w.stranger(), w.liar(w.nodes[2])
		answer := make(chan string, 1)
		go func() {
			text, err := w.nodes[0].ask(id, "wait", limit)
			answer <- text + errorText(err)
		}()
		synctest.Wait()
		payload, err := proto.Marshal(say("forged"))
		require.NoError(t, err)
		for correlation := range uint64(200) {
			forged := wire.AppendReply(nil, &protocol.Reply{Kind: "test", Shard: shardOf(id), Correlation: correlation, Payload: payload})
			s.say(w.nodes[0], forged)
			liar.say(w.nodes[0], forged)
		}
		pass(5 * time.Second)
		require.Empty(t, answer, "the entity has not answered")
		w.release()
		require.Equal(t, "waited", within(t, answer))
		require.EqualValues(t, 2, w.nodes[0].system.Stats().Forged.Reply, "the number of the ask, and none")
		pass(5 * time.Second)
		require.EqualValues(t, 200, w.nodes[0].Stats().Strangers)
	})
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
