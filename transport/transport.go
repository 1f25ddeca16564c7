// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// The contract of a transport: [Transport] has the lanes to all peers, [Lane] takes
// messages for one, a [Handler] takes those that arrive, and [Identity] is what a node
// says of itself in the handshake.

// Service is the number under which a component's messages travel. It is part
// of the wire.
type Service = machine.Service

// LaneClass says which connection to a peer a message takes.
type LaneClass = machine.Lane

// Handler takes one message. It is called on a goroutine of the transport.
// Calls for one peer and lane are sequential, in the order of the peer's
// appends; calls for other peers and lanes, and for what an [Answerer] has sent,
// may run at the same time. The frame
// is valid during the call only and must not be changed. Blocking is allowed
// and is back-pressure on that lane of that peer. A handler may call Append,
// but must not call [Transport.Close].
type Handler func(from gossip.NodeID, frame []byte)

// Transport connects one node with the others. Its methods are safe for concurrent
// use.
type Transport interface {
	// Handle registers the handler of a service, before or after Start. Messages for a
	// service without a handler are dropped, see [Unhandled]. A second handler for a
	// service is a defect of the program and panics.
	Handle(s Service, h Handler)

	// Start begins to listen. The error says which address is concerned and
	// what to do about it. The context bounds Start alone, not the life of the
	// transport.
	Start(ctx context.Context) error

	// Self returns the identity under which this node speaks.
	Self() gossip.NodeID

	// Lane returns the lane of class k to a peer. It is cheap, never nil, and neither
	// dials nor keeps anything until the first Append. A peer without a UID means any
	// node that lives at the address, and is allowed on the control lane only: once
	// the node has said which it is, the messages take the session of the lane to its
	// full identity.
	Lane(to gossip.NodeID, k LaneClass) Lane

	// Block refuses one incarnation of a peer for good: its connections are closed,
	// appends to it and connections from it are refused with [ReasonBlocked], counted
	// and noticed. The text why is shown to people and sent to the peer. The last
	// 16,384 blocked incarnations are remembered.
	Block(peer gossip.NodeID, why string)

	// Probe dials an address, completes a handshake without opening a session, and
	// returns the node that answered. It is used to dial a joining node back before
	// the node is recorded: its certificate must allow the roles, if certificates name
	// roles. The error is a [*RefusedError], or says why the address could not be
	// reached.
	Probe(ctx context.Context, address gossip.Address, roles ...string) (gossip.NodeID, error)

	// Counters returns the counts since the transport was built.
	Counters() Counters

	// Close waits up to Config.Linger for connected peers to acknowledge what is
	// queued, closes every connection, and returns when all goroutines of the
	// transport have ended, handlers included. Calling it again waits for the same end
	// and returns the same. It may be called without Start.
	Close() error
}

// Answerer is an optional interface of a [Transport] that can send a small message to a
// peer with the receipt that it owes that peer anyhow, or, where it answers a message that
// came so, on the connection on which that came, without a receipt for it.
type Answerer interface {
	// Answer is Append for a message that answers one of the peer, on the lane of class k,
	// and that the peer asks for again if it does not come. The message takes no place in
	// the order of the own lane to the peer, and is gone without a notice if the
	// connection breaks. The handler of the service takes it as any message, possibly
	// while it takes another one of the same peer.
	//
	// Answer returns false, and sends nothing, when this node has no connection to the peer,
	// or neither the peer's nor this one can carry the message, or the peer does not take
	// answers, or too many answers wait: then the message has to be appended to the lane.
	Answer(to gossip.NodeID, k LaneClass, s Service, encode func(dst []byte) []byte) bool
}

// Sourcer is an optional interface of a [Transport] that knows from where its peers
// connect.
type Sourcer interface {
	// Source returns from where an open connection of a peer comes; the zero Source if
	// there is none.
	Source(peer gossip.NodeID) Source
}

// Source says where a connection comes from, for people who investigate a peer.
type Source struct {
	// Address is the remote socket address.
	Address string
	// Certificate describes the certificate that the peer has shown: its subject, and
	// the names in it. Empty without TLS.
	Certificate string
}

// Lane is one of the connections to a peer. Its methods are safe for
// concurrent use.
type Lane interface {
	// Append encodes one message into the batch that is being filled, and returns at
	// once. The function encode appends the message to dst and returns the extended
	// slice, as append does; it runs under the lane's lock, so that it must neither
	// block nor use the transport, and must not keep dst. It is not called when the
	// message has no chance.
	//
	// The error is nil, [ErrFull], [ErrTooLarge], [ErrClosed], or a [*RefusedError];
	// after an error nothing was queued. Nil means accepted, not delivered.
	Append(s Service, encode func(dst []byte) []byte) error

	// Track is Append for a sender that needs to know afterwards whether the message
	// may have reached its peer: it also returns the passage and the place of the
	// message. Places in one passage never fall from one append to the next; messages
	// of one batch have the same place. With an error, both mean nothing.
	Track(s Service, encode func(dst []byte) []byte) (p Passage, place uint64, err error)

	// Defer asks the lane to call f once, right before the lane takes its next batch,
	// so that messages appended by f go with that batch. It returns true when f will
	// be called. It returns false, and forgets f, when the lane is connected and no
	// batch waits, since an Append would be sent at once; and when an Append would
	// fail. With Defer, a sender of many small messages collects them in place of one
	// Append for each; and a sender that may take a message back keeps it until f,
	// since messages appended to a lane without a connection are sent over the next
	// connection, however late. Defer has the lane dialled, as Append does.
	//
	// F runs on a goroutine of the lane and holds the lane up meanwhile: it may call
	// Append, and must not block. While f runs, Defer returns false, since appends go
	// with the batch. When the session ends before, f is called then; a later Defer is
	// about the next session.
	Defer(f func()) bool

	// Room waits until an Append is worth trying again: half of the window is
	// free, or the session is over. It returns the error of ctx, or
	// [ErrClosed] when the transport is closed.
	Room(ctx context.Context) error
}

// Passage is the way of messages through one queue of a lane, from the first append
// until the lane changes to another queue. A Passage can be compared, and asked from
// any goroutine, also when the queue is over and the transport closed.
type Passage interface {
	// Written says how far the passage has come: a message at a place under below may
	// have left this node, even if it has to be written again; a message at another
	// place has not left it. With over it never will.
	Written() (below uint64, over bool)
}

// Identity is who a node says it is.
type Identity struct {
	// Node is the node's address and incarnation: host, port and uid are all set.
	Node gossip.NodeID

	// Cluster is the name of the cluster, 1 to 255 bytes. Nodes of different
	// names refuse each other.
	Cluster string

	// Protocol is the range of versions of the protocol between nodes that
	// this node speaks. Zero is not a version.
	Protocol gossip.ProtocolRange

	// ClusterID returns the id of the cluster of which the node is a member,
	// or the zero id before it is one. Two nodes with different ids, neither
	// zero, refuse each other's lanes but the control lane, on which they find out
	// which of the two clusters goes on. It is called at each handshake, from any
	// goroutine. Nil stands for the zero id.
	ClusterID func() gossip.ClusterID

	// Roles are the roles of the node. The node's own certificate must allow them, if
	// it names a cluster and roles.
	Roles []string

	// Known reports whether a peer may send frames above [StrangerFrameBytes]: a
	// member, or a node that was asked for something large. It is called when such a
	// frame comes, from any goroutine, and must be quick. Nil allows every peer.
	Known func(gossip.NodeID) bool
}

// StrangerFrameBytes is the largest frame that is accepted from a peer that is not
// known, see [Identity.Known]. A larger frame is dropped and its connection ends.
const StrangerFrameBytes = 256 << 10
