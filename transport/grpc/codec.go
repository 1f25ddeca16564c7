// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/session"
)

// outgoing is a message on its way into SendMsg. When lent is set, gRPC has taken over
// the reference to the buffer.
type outgoing struct {
	buffer *wire.Buffer
	lent   bool
}

// codec passes bytes through. Outgoing messages are *outgoing, incoming ones
// *session.Incoming.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// Name returns the content type of protobuf, since the bytes are protobuf messages.
func (codec) Name() string { return "proto" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	o, ok := v.(*outgoing)
	if !ok {
		return nil, errType
	}
	o.lent = true
	return mem.BufferSlice{mem.NewBuffer(&o.buffer.B, (*lender)(o.buffer))}, nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	in, ok := v.(*session.Incoming)
	if !ok {
		return errType
	}
	if !in.Admits(data.Len()) {
		return errStranger // Before the message is copied.
	}
	var b mem.Buffer
	if len(data) == 1 {
		b = data[0]
		b.Ref()
	} else {
		b = data.MaterializeToBuffer(mem.DefaultBufferPool())
	}
	in.Bytes, in.Owner = b.ReadOnlyData(), b
	return nil
}

// lender is a buffer in the shape of the pool to which gRPC returns it.
type lender wire.Buffer

var _ mem.BufferPool = (*lender)(nil)

// Get is part of the interface; gRPC does not call it for a buffer that it has been
// lent.
func (*lender) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// Put frees the reference that gRPC held.
func (l *lender) Put(*[]byte) { (*wire.Buffer)(l).Free() }
