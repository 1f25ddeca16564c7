// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package grpc

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/session"
)

// outgoing is what SendMsg is given. Its reference to the buffer goes over to
// gRPC when lent is set.
type outgoing struct {
	buffer *wire.Buffer
	lent   bool
}

// codec passes bytes through. Outgoing messages are *outgoing, incoming ones
// *session.Incoming.
type codec struct{}

var _ encoding.CodecV2 = codec{}

// Name makes the content type the one of protobuf, which the bytes are.
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
		return errStranger // Before a copy is made of it.
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

// Get is part of the interface and not used by gRPC for a buffer of ours.
func (*lender) Get(n int) *[]byte {
	b := make([]byte, n)
	return &b
}

// Put gives the reference back.
func (l *lender) Put(*[]byte) { (*wire.Buffer)(l).Free() }
