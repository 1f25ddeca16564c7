// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // The codec of what is sent.
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"

	clientv1 "github.com/quorate/quorate/client/proto/quorate/client/v1"
	"github.com/quorate/quorate/machine/wire"
)

// The calls of gRPC: who asks is decided when the head of a call has come ([Server.tap]); its messages come as bytes
// ([message]), which the handlers decode, so that a message costs no more than what is made of it.

// exchangeMethod is the name of the call with many requests.
const exchangeMethod = "Exchange"

// service describes the calls, as the generated description does, with handlers that take bytes.
func (s *Server) service() *grpc.ServiceDesc {
	unary := func(name string, tell bool) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, receive func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			r := new(clientv1.Request)
			if err := receiveOf(ctx, receive, func(b []byte) error { return malformed(decodeRequest(b, r)) }); err != nil {
				return nil, err
			}
			return s.one(ctx, r, tell)
		}}
	}
	return &grpc.ServiceDesc{
		ServiceName: clientv1.Entities_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{unary("Ask", false), unary("Tell", true)},
		Streams: []grpc.StreamDesc{{
			StreamName: exchangeMethod, ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.exchange(stream) },
		}},
		Metadata: clientv1.Entities_ServiceDesc.Metadata,
	}
}

// tap decides about a call by its head, before a byte of its message is taken. It runs on the goroutine that reads the
// connection.
func (s *Server) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	prefix := "/" + clientv1.Entities_ServiceDesc.ServiceName + "/"
	if !slices.Contains([]string{prefix + "Ask", prefix + "Tell", prefix + exchangeMethod}, info.FullMethodName) {
		return nil, status.Error(codes.Unimplemented, "there is no such call")
	}
	if _, err := s.admit(ctx); err != nil {
		return nil, err
	}
	if s.ending() {
		return nil, errEnding
	}
	f := inflowOf(ctx)
	if f == nil || !f.gate.Admit() {
		return nil, status.Error(codes.Unavailable, "the node has as many clients as it takes")
	}
	return s.arrivals.begin(ctx, f, info.FullMethodName != prefix+exchangeMethod), nil
}

// message is a message that has come, as bytes.
type message struct{ buffer mem.Buffer }

// receiveOf receives a message of a call, takes it out of what is arriving, and hands it to read. The bytes are read's
// until it returns.
func receiveOf(ctx context.Context, receive func(any) error, read func([]byte) error) error {
	var m message
	if err := receive(&m); err != nil {
		return err
	}
	defer m.buffer.Free()
	b := m.buffer.ReadOnlyData()
	const prefix = 5 // Of a message of gRPC: whether it is compressed, and its length.
	arrivalOf(ctx).take(len(b) + prefix)
	return read(b)
}

// malformed is the status of a message that is none of the protocol. A status stays what it is.
func malformed(err error) error {
	if _, known := status.FromError(err); known {
		return err
	}
	return status.Error(codes.InvalidArgument, "no message of the protocol: "+err.Error())
}

// eachRequest decodes the requests of a message one by one, and calls begin with each until that fails. Beside what
// begin keeps, it allocates nothing but the texts and payloads of the requests.
func eachRequest(b []byte, begin func(*clientv1.Request) error) error {
	const requests = 1 // The number of its field.
	r := new(clientv1.Request)
	return wire.Each(b, func(f *wire.Field) error {
		if f.Number != requests {
			return nil
		}
		data, err := f.Data(len(f.Raw))
		if err == nil {
			err = decodeRequest(data, r)
		}
		if err != nil {
			return err
		}
		return begin(r)
	})
}

// decodeRequest replaces what is in a request. What it does not know is not kept.
func decodeRequest(b []byte, r *clientv1.Request) error {
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, r)
}

// codec passes what comes through as bytes.
type codec struct{ encoding.CodecV2 }

// Unmarshal keeps the bytes.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*message)
	if !ok {
		return status.Errorf(codes.Internal, "%T is no message of the gateway", v)
	}
	m.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}
