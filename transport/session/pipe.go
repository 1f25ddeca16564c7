// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorate/quorate/gossip"
	"github.com/quorate/quorate/transport"
	"github.com/quorate/quorate/transport/internal/wire"
)

// ErrOversize is wrapped by what [Pipe.Recv] returns for a message above the
// limit.
var ErrOversize = errors.New("message above the limit")

// Buffer is a message to be sent, its bytes in B, with a count of references. An
// implementation that was handed a Buffer calls Free when the bytes are written, once
// for each reference.
type Buffer = wire.Buffer

// Pipe carries messages both ways between two nodes, in order. One goroutine
// sends and one receives at a time; Close may be called from any.
type Pipe interface {
	// Send sends one message, and blocks while the other end does not keep up. It
	// takes over one reference of b, also when it fails. After a failure, Recv fails
	// too.
	Send(b *Buffer) error

	// Recv waits for one message. The bytes are valid until in is freed. A message
	// that in.Large does not allow is dropped, if possible before all of it has come;
	// the error then wraps [ErrOversize].
	Recv(in *Incoming) error

	// Close ends the pipe, both ways, and unblocks Send and Recv soon. What
	// was sent before may still arrive.
	Close()
}

// Certified is an optional interface of a [Pipe] whose other end has shown a
// certificate.
type Certified interface {
	// Covers returns why the certificate does not allow the roles, or nil.
	Covers(roles []string) error
}

// Acknowledger is an optional interface of a [Pipe] over a connection of the system.
type Acknowledger interface {
	// Acknowledge has the system acknowledge at once what has come, since nothing will be sent
	// in return; and, for what comes next, wait for what is sent in return to go with.
	Acknowledge()
}

// Incoming is a received message and the owner of its bytes.
type Incoming struct {
	Bytes []byte
	Owner interface{ Free() }

	// Large reports whether a message above [transport.StrangerFrameBytes] is allowed.
	// It is called when such a message comes; nil allows it.
	Large func() bool
}

// Free returns the bytes to their owner.
func (in *Incoming) Free() {
	if in.Owner != nil {
		in.Owner.Free()
	}
	in.Bytes, in.Owner = nil, nil
}

// Admits reports whether a message of the given size is allowed.
func (in *Incoming) Admits(size int) bool {
	return size <= transport.StrangerFrameBytes || in.Large == nil || in.Large()
}

// ErrStranger returns the error for a message that is too large for a peer that is not
// known.
func ErrStranger(size string) error {
	return fmt.Errorf("%w: %s by who is no member here, at most %d are taken", ErrOversize, size, transport.StrangerFrameBytes)
}

// Dialer opens pipes.
type Dialer interface {
	// Dial opens a pipe to an address. The context bounds the dialling only.
	// An error may be a [*transport.RefusedError].
	Dial(ctx context.Context, to gossip.Address, k transport.LaneClass) (Pipe, error)
}

// Caller describes the other end of an accepted pipe.
type Caller struct {
	// Address is the remote socket address.
	Address string

	// Certificate describes the certificate of the other end; empty if there is none.
	Certificate string

	// Owner names the owner of the connection for people: from its certificate, or
	// without a certificate its IP address.
	Owner string

	// Verify returns why the certificate of the other end is not valid for a host, or
	// nil. A nil function: there are no certificates.
	Verify func(host string) error

	// Admitted is called once when the handshake has completed. It may be nil.
	Admitted func()
}

// who returns owner and address of the caller, for people.
func (c *Caller) who() string {
	if c.Owner == "" {
		return c.Address
	}
	return fmt.Sprintf("%s (%s)", c.Owner, c.Address)
}
