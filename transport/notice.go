// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "github.com/quorate/quorate/gossip"

// Notice is something that happened to a connection, [PeerUp], [PeerDown], [Refused],
// [Unhandled], [FellBack] or [NotAccepted], or to certificate files, [Certificates].
//
// Notices are passed to the function that was given when the transport was built, on
// goroutines of the transport. Notices about one lane to one peer come in order;
// others may come at the same time. The function must return soon, and must not call
// Close.
type Notice interface{ notice() }

// PeerUp says that a session on a lane to Peer has begun: the handshake is
// complete and Protocol is the version that both speak. A reconnect within a
// session is not noticed, only counted.
type PeerUp struct {
	Peer     gossip.NodeID
	Lane     LaneClass
	Protocol uint16
}

// PeerDown says that a session, or the attempt to begin one, is over. Err says why:
// [ErrUnreachable], [ErrIncarnation], [ErrIdle], [ErrClosed] (all to be tested with
// errors.Is), or a [*RefusedError]. Lost is the number of messages that were accepted
// and not acknowledged; whether the peer has handled them is unknown. Peer has no UID
// when no node ever answered at the address.
type PeerDown struct {
	Peer gossip.NodeID
	Lane LaneClass
	Err  error
	Lost int
}

// Refused says that a connection was refused. Inbound: by this node. Otherwise: by the
// other end, or by this node because of what the other end has shown. Address is the
// remote socket address of an inbound connection, and the dialled address otherwise.
// Node is the name that an inbound caller gives itself, zero when the refusal came
// before the handshake; otherwise it is the node that was dialled, whatever name the
// answering side gives itself, and has a UID only if a certain incarnation was
// dialled.
type Refused struct {
	Address string
	Node    gossip.NodeID
	Err     *RefusedError
	Inbound bool

	// Certificate describes the certificate that an inbound caller has shown, see
	// [Source]. Empty: the caller has shown none, or TLS itself has refused it.
	Certificate string
}

// Unhandled says that messages of a service met no handler: on this node when Inbound,
// at the peer otherwise. The messages were dropped and counted, and the connection
// goes on. The notice comes once a connection and service; [Counters] counts every
// message.
type Unhandled struct {
	Peer    gossip.NodeID
	Lane    LaneClass
	Service Service
	Inbound bool
}

// FellBack says that the node at an address takes messages over gRPC alone, although
// [Config.Lane] is [LaneTCP] here: it has the other setting, or is of an older version.
// The lane to it goes over gRPC. The notice comes once, and again if the address has
// taken the other wire in between; [Counters] counts every such connection.
type FellBack struct{ Peer gossip.Address }

// NotAccepted says that accepting a connection has failed although the node listens:
// mostly because the process has no file descriptor left. Accepting is retried soon,
// and each failure noticed.
type NotAccepted struct{ Err error }

// Certificates says that certificate files have changed. Files names them as a
// configuration does. Err is nil when the new content is in use from now on, and
// otherwise says why it cannot be used; the previous content then stays in use.
type Certificates struct {
	Files string
	Err   error
}

func (PeerUp) notice()       {}
func (PeerDown) notice()     {}
func (Refused) notice()      {}
func (Unhandled) notice()    {}
func (Certificates) notice() {}
func (FellBack) notice()     {}
func (NotAccepted) notice()  {}
