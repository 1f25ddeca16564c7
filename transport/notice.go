// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import "github.com/quorate/quorate/gossip"

// Notice is something that happened to a connection: [PeerUp], [PeerDown],
// [Refused], [Unhandled] or
// [NotAccepted]; or to the files of its certificates: [Certificates].
//
// Notices are handed to the function that was given when the transport was
// built, on goroutines of the transport. Those about one lane to one peer come
// in order; others may come at the same time. The function must return soon,
// and must not call Close.
type Notice interface{ notice() }

// PeerUp says that a session on a lane to Peer has begun: the handshake is
// complete and Protocol is the version that both speak. A reconnect within a
// session is not noticed, only counted.
type PeerUp struct {
	Peer     gossip.NodeID
	Lane     LaneClass
	Protocol uint16
}

// PeerDown says that a session, or the attempt to begin one, is over. Err says
// why: [ErrUnreachable], [ErrIncarnation], [ErrIdle], [ErrClosed] (all to be
// tested with errors.Is), or a [*RefusedError]. Lost is the number of messages
// that were accepted and not acknowledged; whether the peer has handled them
// is unknown. Peer has no UID when nobody ever answered at the address.
type PeerDown struct {
	Peer gossip.NodeID
	Lane LaneClass
	Err  error
	Lost int
}

// Refused says that a connection was refused: by this node when Inbound, by
// the other end or because of what the other end showed when not. Address is
// the remote socket address for an inbound connection and the dialled address
// otherwise. Node is who an inbound connection says it is, and zero when the
// refusal came before the handshake; otherwise it is who was dialled, whatever the
// answering side calls itself, and has a UID only if that one was meant.
type Refused struct {
	Address string
	Node    gossip.NodeID
	Err     *RefusedError
	Inbound bool

	// Certificate describes the certificate with which an inbound connection was
	// opened, see [Source]. Empty: none, or one that TLS itself has refused.
	Certificate string
}

// Unhandled says that messages of a service met no handler: here when Inbound,
// at the peer when not. They were dropped and counted, and the connection goes
// on. It is noticed once a connection and service; [Counters] has them all.
type Unhandled struct {
	Peer    gossip.NodeID
	Lane    LaneClass
	Service Service
	Inbound bool
}

// NotAccepted says that the system has handed no connection out, although the node
// listens: mostly because the process has no file descriptor left. It is tried again
// soon, and noticed each time.
type NotAccepted struct{ Err error }

// Certificates says that files of certificates have changed. Files names them, as
// in a configuration. Err is nil when their content is in use from now on, and
// otherwise says why it cannot be, so that the one before stays in use.
type Certificates struct {
	Files string
	Err   error
}

func (PeerUp) notice()       {}
func (PeerDown) notice()     {}
func (Refused) notice()      {}
func (Unhandled) notice()    {}
func (Certificates) notice() {}
func (NotAccepted) notice()  {}
