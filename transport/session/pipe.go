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

// Buffer is a message to be sent, with a count of references: its bytes are B. Whoever
// has been handed one calls Free when the bytes are written, once for each reference.
type Buffer = wire.Buffer

// Pipe carries messages both ways between two nodes, in order. One goroutine
// sends and one receives at a time; Close may be called from any.
type Pipe interface {
	// Send sends one message, and blocks while the other end does not keep up.
	// It takes over one reference of b, also when it fails. When it fails, so
	// does a coming Recv.
	Send(b *Buffer) error

	// Recv waits for one message. The bytes are valid until in is freed. A message
	// that in.Large does not allow is not kept, as far as the pipe can tell before
	// it has it: the error then wraps [ErrOversize].
	Recv(in *Incoming) error

	// Close ends the pipe, both ways, and unblocks Send and Recv soon. What
	// was sent before may still arrive.
	Close()
}

// Certified is a [Pipe] whose other end has shown a certificate.
type Certified interface {
	// Covers says why the certificate is not one for roles.
	Covers(roles []string) error
}

// Incoming is a received message and who owns its bytes.
type Incoming struct {
	Bytes []byte
	Owner interface{ Free() }

	// Large reports whether a message above [transport.StrangerFrameBytes] may be
	// taken. It is asked when one comes; nil allows it.
	Large func() bool
}

// Free gives the bytes back.
func (in *Incoming) Free() {
	if in.Owner != nil {
		in.Owner.Free()
	}
	in.Bytes, in.Owner = nil, nil
}

// Admits reports whether a message of so many bytes may be taken.
func (in *Incoming) Admits(size int) bool {
	return size <= transport.StrangerFrameBytes || in.Large == nil || in.Large()
}

// ErrStranger is the error of a message that is too large for who sent it.
func ErrStranger(size string) error {
	return fmt.Errorf("%w: %s by who is no member here, at most %d are taken", ErrOversize, size, transport.StrangerFrameBytes)
}

// Dialer opens pipes.
type Dialer interface {
	// Dial opens a pipe to an address. The context bounds the dialling only.
	// An error may be a [*transport.RefusedError].
	Dial(ctx context.Context, to gossip.Address, k transport.LaneClass) (Pipe, error)
}

// Caller is what is known of the other end of an accepted pipe.
type Caller struct {
	// Address is the remote socket address.
	Address string

	// Certificate describes the certificate of the other end; empty if there is none.
	Certificate string

	// Owner is who connects, for people: by the certificate, or without one by the
	// IP address.
	Owner string

	// Verify reports why the certificate of the other end is not one of host.
	// Nil: there are no certificates.
	Verify func(host string) error

	// Admitted is called once when the handshake has completed. It may be nil.
	Admitted func()
}

// who describes the caller for people.
func (c *Caller) who() string {
	if c.Owner == "" {
		return c.Address
	}
	return fmt.Sprintf("%s (%s)", c.Owner, c.Address)
}
