// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/machine"
)

// Service is the number under which a component's messages travel. It is part
// of the wire.
type Service = machine.Service

// LaneClass says which connection to a peer a message takes.
type LaneClass = machine.Lane

// Handler takes one message. It is called on a goroutine of the transport.
// Calls for one peer and lane are sequential, in the order of the peer's
// appends; calls for other peers and lanes may run at the same time. The frame
// is valid during the call only and must not be changed. Blocking is allowed
// and is back-pressure on that lane of that peer. A handler may call Append,
// but must not call [Transport.Close].
type Handler func(from gossip.NodeID, frame []byte)

// Transport is one node's way to the others. Its methods are safe for
// concurrent use.
type Transport interface {
	// Handle registers the handler of a service, before or after Start. What
	// comes for a service without a handler is not kept for later, see
	// [Unhandled]. A second handler for a service is a defect of the program
	// and panics.
	Handle(s Service, h Handler)

	// Start begins to listen. The error says which address is concerned and
	// what to do about it. The context bounds Start alone, not the life of the
	// transport.
	Start(ctx context.Context) error

	// Self returns the identity under which this node speaks.
	Self() gossip.NodeID

	// Lane returns the lane of class k to a peer. It is cheap, never nil, and
	// neither dials nor keeps anything until the first Append. A peer without
	// a UID means whoever lives at the address, and is allowed on the control
	// lane only: once the peer has said who it is, its messages take the same
	// session as those of the lane to its full identity.
	Lane(to gossip.NodeID, k LaneClass) Lane

	// Block shuts out one incarnation of a peer for good: its connections are
	// closed, appends to it and connections from it are refused with
	// [ReasonBlocked], counted and noticed. Why is shown to people and sent to
	// the peer. The last 16,384 blocked incarnations are remembered.
	Block(peer gossip.NodeID, why string)

	// Probe dials an address, completes a handshake without opening a session,
	// and returns who answered. It is used to dial a joining node back before
	// it is recorded: whoever answers must have a certificate for the roles, if
	// certificates say for which roles they are. The error is a [*RefusedError],
	// or says why the address could not be reached.
	Probe(ctx context.Context, address gossip.Address, roles ...string) (gossip.NodeID, error)

	// Counters returns what was counted since Start.
	Counters() Counters

	// Close gives what is queued to peers that answer Config.Linger to be
	// acknowledged, closes every connection, and returns when all goroutines
	// of the transport have ended, handlers included. Calling it again waits
	// for the same end and returns the same. It may be called without Start.
	Close() error
}

// Sourcer is an optional interface of a [Transport] that knows where its peers connect
// from.
type Sourcer interface {
	// Source returns where a connection of a peer comes from that is open now; the
	// zero value if none is.
	Source(peer gossip.NodeID) Source
}

// Source says where a connection comes from, for people who look into what a peer does.
type Source struct {
	// Address is the remote socket address.
	Address string
	// Certificate describes the certificate that the peer has shown: its subject, and
	// the names that it is for. Empty without TLS.
	Certificate string
}

// Lane is one of the connections to a peer. Its methods are safe for
// concurrent use.
type Lane interface {
	// Append encodes one message into the batch that is being written, and
	// returns at once. Encode appends the message to dst and returns the
	// extended slice, as append does; it runs under the lane's lock, so that it
	// must neither block nor use the transport, and must not keep dst. It is
	// not called when the message has no chance.
	//
	// The error is nil, [ErrFull], [ErrTooLarge], [ErrClosed], or a
	// [*RefusedError]; then nothing was queued. Nil means accepted, not
	// delivered.
	Append(s Service, encode func(dst []byte) []byte) error

	// Track is Append for a sender that needs to know afterwards whether the
	// message can have reached anybody: it also returns where the message is.
	// Places in one passage never fall from one append to the next; messages of
	// one batch share theirs. With an error they mean nothing.
	Track(s Service, encode func(dst []byte) []byte) (p Passage, place uint64, err error)

	// Defer asks the lane to call f once when it takes the next batch off, so that
	// what f appends goes with it, and reports true. It reports false, and forgets
	// f, when the lane is connected and no batch waits at present: an Append would go
	// at once; and when an Append would fail. A sender of many small messages collects
	// them meanwhile, in place of one Append for each. A sender that may take a message
	// back keeps it meanwhile: what is appended to a lane without a connection leaves
	// with the next one, however late. Defer has the lane dialled as Append does.
	//
	// F runs on a goroutine of the lane, and holds the lane up for as long as it
	// runs: it may call Append, and must not block. Meanwhile Defer says no, since what
	// is appended goes with the batch. When the session ends before, f is called then,
	// and Defer is about the next one.
	Defer(f func()) bool

	// Room waits until an Append is worth trying again: half of the window is
	// free, or the session is over. It returns the error of ctx, or
	// [ErrClosed] when the transport is closed.
	Room(ctx context.Context) error
}

// Passage is the way that messages take through one queue of a lane, from the
// first append until the lane goes over to another queue. It can be compared, and
// asked from any goroutine, also when it is over and the transport is closed.
type Passage interface {
	// Written says how far the passage has come: what is at a place below may
	// have left this node, even if it has to be written again; what is at
	// another place has not. With over it never will.
	Written() (below uint64, over bool)
}

// Identity is who a node says it is.
type Identity struct {
	// Node is the node's address and incarnation. All three parts are set.
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

	// Roles are those of the node. Its own certificate must be one for them, if it
	// says for which it is.
	Roles []string

	// Known reports whether a peer may send frames above [StrangerFrameBytes]: a
	// member, or who was asked for something large. It is called when such a frame
	// comes, from any goroutine, and must be quick. Nil stands for everybody.
	Known func(gossip.NodeID) bool
}

// StrangerFrameBytes is the largest frame that is taken of a peer that is not
// known, see [Identity.Known]. Nothing of a larger one is kept: the connection ends.
const StrangerFrameBytes = 256 << 10
