// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
	"github.com/quorate/quorate/membership/singleton"
	"github.com/quorate/quorate/sharding/internal/cell"
	"github.com/quorate/quorate/sharding/internal/control"
	"github.com/quorate/quorate/sharding/internal/protocol"
	"github.com/quorate/quorate/sharding/internal/wire"
	world "github.com/quorate/quorate/simulation"
)

// Hostile peers have a valid certificate, speak the protocol, and lie. There are two: a stranger, which is no member,
// and a liar, a member that hosts nothing of the kind and sends messages in the names of others. Both know everything:
// the homes and epochs of all shards, the numbers of asks, and which node each node takes for a home. Their messages
// are such that they would have an effect if they were believed, and the ledger finds every such effect: a message is
// processed that nobody sent, or one that was sent is not; an ask is answered too early; a node is held back for ever;
// a coordinator gives way to one that does not exist.

// forgedID marks the messages that no client has sent.
const forgedID = 1 << 62

// stranger is a node that is no member.
var stranger = gossip.NodeID{ //nolint:gochecknoglobals // A constant of struct type.
	Address: gossip.Address{Host: "stranger", Port: 7946}, UID: 666,
}

// roomForLies is how many shards the nodes have room for beside those of the kind, when a peer is hostile.
const roomForLies = 300

// hostile lies to the nodes of a cluster.
type hostile struct {
	cluster *Cluster
	rand    *rand.Rand
	every   time.Duration
	liar    gossip.Address
	lies    uint64
}

// startLying starts the hostile peers.
func (c *Cluster) startLying() {
	h := &hostile{
		cluster: c, every: c.opt.Hostile, liar: Address(c.opt.Nodes),
		rand: rand.New(rand.NewPCG(c.opt.World.Seed, 99)),
	}
	c.Start(c.opt.Nodes)
	c.World.After(time.Second, h.lie)
}

// lies reports whether the node at an address is the liar.
func (c *Cluster) lies(a gossip.Address) bool {
	return c.opt.Hostile > 0 && a == Address(c.opt.Nodes)
}

// lie sends a lie to a random node, again and again.
func (h *hostile) lie() {
	h.cluster.World.After(time.Duration(h.rand.Int64N(int64(2*h.every)))+1, h.lie)
	nodes := h.cluster.World.Nodes()
	if len(nodes) == 0 {
		return
	}
	to := nodes[h.rand.IntN(len(nodes))]
	from := stranger
	if liar := h.cluster.World.Node(h.liar); liar != nil && liar != to && h.rand.IntN(2) == 0 {
		from = liar.ID()
	}
	if _, shards := Control(to).Kept(); shards > roomForLies+2*int(h.cluster.opt.Shards) {
		h.cluster.Ledger.violate("I35: %s keeps %d shards, since a member has registered kinds that nobody runs", to.ID(), shards)
	}
	homes := Control(to).Inspect(KindName).Homes
	if len(homes) == 0 {
		return
	}
	home := homes[h.rand.IntN(len(homes))]
	h.lies++
	h.cluster.Ledger.counts.Lies++
	if from != stranger && h.rand.IntN(10) == 0 {
		to.Input(protocol.Service, machine.Received{From: from, Message: h.foreignKind()})
		return
	}
	if from == stranger && h.rand.IntN(5) == 0 {
		to.Input(protocol.Service, machine.Received{From: from, Message: h.command(home)})
		return
	}
	if from != stranger && h.cluster.opt.Behaviour.Snapshots.On && h.rand.IntN(5) == 0 {
		to.Input(protocol.Service, machine.Received{From: from, Message: h.stopped(home)})
		return
	}
	to.Input(protocol.MessageService, machine.Received{From: from, Message: h.frame(from, to, home)})
}

// foreignKind returns a message of a coordinator of a kind that no node runs, or one that changes the number of its
// shards.
func (h *hostile) foreignKind() control.Message {
	kind, shards := fmt.Sprintf("tenant-%d", h.rand.IntN(50)), 1+h.rand.Uint32N(2*roomForLies)
	settings := control.Settings{Shards: shards, Hash: protocol.HashName, Codec: "none"}
	switch h.rand.IntN(4) {
	case 0:
		return control.SingletonMessage{Kind: kind, Settings: settings, Message: singleton.Request{}}
	case 1:
		return control.ReshardKind{Kind: kind, ID: h.lies, Shards: shards}
	default:
		return control.Register{Kind: kind, Registration: control.Registration{Settings: settings, Follows: true}}
	}
}

// stopped returns what the home of a shard says when that has stopped, with a memory that nobody had.
func (h *hostile) stopped(home control.Home) control.Message {
	return control.ShardsStopped{Kind: KindName, Term: home.Epoch.Term, Shards: []control.StoppedShard{{
		Shard: home.Shard, Epoch: home.Epoch, Base: home.Base,
		Snapshots: []protocol.Snapshot{{Entity: h.resident(home.Shard), Data: (&instance{number: forgedID}).bytes()}},
	}}}
}

// command returns a message that a coordinator of a later term would send.
func (h *hostile) command(home control.Home) control.Message {
	term := home.Epoch.Term
	term.UpNumber += 1000
	epoch := home.Epoch
	epoch.Term = term
	switch h.rand.IntN(3) {
	case 0:
		return control.Query{Kind: KindName, Term: term}
	case 1:
		return control.Map{Kind: KindName, Term: term, To: 1, Homes: []control.Home{{Shard: home.Shard, Node: stranger, Epoch: epoch, Base: epoch}}}
	default:
		return control.Refused{Kind: KindName, Promise: term}
	}
}

// frame returns a frame of the message service that the sender may not send. Its numbers
// are often small, so that they are in the range of the numbers under way.
func (h *hostile) frame(from gossip.NodeID, to *world.Node, home control.Home) []byte {
	seq := 1 + h.rand.Uint64N(1<<h.rand.IntN(12))
	switch h.rand.IntN(5) {
	case 0:
		return h.message(from, to.ID(), home, seq)
	case 1:
		return wire.AppendAck(nil, protocol.Ack{Kind: KindName, Shard: home.Shard, Base: home.Base, Seq: seq})
	case 2:
		return wire.AppendNeed(nil, protocol.Nack{Kind: KindName, Shard: home.Shard, Base: home.Base, Seq: seq})
	case 3:
		epoch := home.Epoch
		epoch.N += 1000
		return wire.AppendFlow(nil, protocol.Flow{
			Kind: KindName, Shard: home.Shard, Epoch: epoch, Entity: h.resident(home.Shard), State: protocol.FlowHold,
		})
	default:
		return h.reply(to, home)
	}
}

// message returns a message in the name of a member, or of the stranger itself; or of the
// node to which it goes, as if it had come back.
func (h *hostile) message(from, to gossip.NodeID, home control.Home, seq uint64) []byte {
	nodes := h.cluster.World.Nodes()
	origin, hops := nodes[h.rand.IntN(len(nodes))].ID(), uint8(0)
	switch {
	case from == stranger:
		hops = uint8(h.rand.IntN(2))
		if h.rand.IntN(2) == 0 {
			origin = stranger
		}
	case origin == from:
		origin, hops = stranger, 1
	case h.rand.IntN(4) == 0:
		origin, hops = to, 1
	}
	return wire.AppendMessage(nil, &cell.Message{
		Kind: KindName, Shard: home.Shard, Entity: h.resident(home.Shard), Origin: origin, Hops: hops,
		Base: home.Base, Route: home.Epoch, Seq: seq, Payload: binary.BigEndian.AppendUint64(nil, forgedID+h.lies),
	}, 0)
}

// reply returns a reply to the oldest ask of a node, with the shard of that ask.
func (h *hostile) reply(to *world.Node, home control.Home) []byte {
	r := &protocol.Reply{Kind: KindName, Shard: home.Shard, Correlation: 1}
	if asks := h.cluster.Ledger.nodes[to.ID()].asks; len(asks) > 0 {
		r.Correlation = slices.Min(slices.Collect(maps.Keys(asks)))
		r.Shard = asks[r.Correlation].shard
	}
	return wire.AppendReply(nil, r)
}

// resident draws an entity of a shard.
func (h *hostile) resident(s protocol.ShardID) string {
	for i := h.rand.IntN(1000); ; i++ {
		if id := fmt.Sprintf("e%d", i); protocol.ShardOf(id, h.cluster.opt.Shards) == s {
			return id
		}
	}
}
