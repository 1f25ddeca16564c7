// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"errors"
	"fmt"

	"github.com/quorate/quorate/gossip"
)

var (
	// ErrFull is returned by Append when Config.WindowBytes are waiting to be
	// acknowledged. [Lane.Room] waits until there is room again.
	ErrFull = errors.New("transport: the lane's window is full")

	// ErrTooLarge is returned by Append for a message above
	// [Config.MaxMessageBytes]. Trying again is of no use.
	ErrTooLarge = errors.New("transport: the message is larger than a frame may be")

	// ErrClosed is returned once the transport is closed.
	ErrClosed = errors.New("transport: closed")

	// ErrUnnamed is returned by Append when the lane has no UID and is not the
	// control lane, or has no address at all.
	ErrUnnamed = errors.New("transport: a lane to an address without a uid exists for control only")

	// ErrUnreachable is in a [PeerDown] when the peer stayed away for
	// Config.GiveUpAfter. It is joined with the error of the last attempt to connect.
	ErrUnreachable = errors.New("transport: the peer cannot be reached")

	// ErrIncarnation is in a [PeerDown] when the peer has lost its memory of
	// the session: the process there is another one, or was away too long.
	ErrIncarnation = errors.New("transport: the peer does not know the session")

	// ErrIdle is in a [PeerDown] when a lane was closed because it was idle.
	ErrIdle = errors.New("transport: the lane was idle")
)

// Reason is why a connection was refused. The numbers are part of the wire.
type Reason uint8

// The reasons. The zero Reason is none, and is what a reason of a later
// version is read as.
const (
	// The reasons. The zero Reason is none; a reason of a later version is read as
	// zero.
	ReasonClusterName Reason = iota + 1 // The cluster names differ.
	ReasonClusterID                     // Both are members, of different clusters; not on the control lane.
	ReasonProtocol                      // No protocol version in common.
	ReasonIncarnation                   // Another incarnation, or another address, was meant.
	ReasonBlocked                       // The incarnation was removed or downed here.
	ReasonCertificate                   // No valid certificate, or one without the node's host.
	ReasonInsecure                      // One side speaks TLS and the other does not, or TLS is required.
	ReasonConnections                   // Too many connections.
	ReasonMalformed                     // Bytes that mean nothing.
	ReasonLimits                        // The sender's frames may be larger than the receiver takes.
	ReasonStale                         // A later session of the node is known already.
	ReasonTaken                         // Another process is connected as the node.

	reasonCount
)

// Reasons is the number of values of [Reason], the zero one included.
const Reasons = int(reasonCount)

// String returns the reason in words.
func (r Reason) String() string {
	names := [...]string{
		"unknown reason", "wrong cluster name", "wrong cluster id", "no common protocol version",
		"wrong incarnation", "blocked", "not in certificate", "insecure", "too many connections",
		"malformed", "frame limits differ",
		"stale session", "taken",
	}
	if int(r) >= len(names) {
		return fmt.Sprintf("reason %d", uint8(r))
	}
	return names[r]
}

// RefusedError says that a connection was refused, or was not even tried.
type RefusedError struct {
	Reason Reason

	// Peer is the other node as far as it is known: who was dialled, or who a
	// caller says it is.
	Peer gossip.NodeID

	// Detail has both sides' values and says what to do.
	Detail string

	// Session is, with [ReasonStale], the number of the session that the refusing node
	// knows.
	Session uint64
}

// Error implements error.
func (e *RefusedError) Error() string {
	if e.Peer.IsZero() {
		return fmt.Sprintf("transport: refused: %s: %s", e.Reason, e.Detail)
	}
	return fmt.Sprintf("transport: refused with %s: %s: %s", e.Peer, e.Reason, e.Detail)
}
