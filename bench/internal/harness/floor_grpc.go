// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/quorate/quorate/bench/internal/figure"
)

// The codec and the stream come first. Then the two floors, each with its peer: messages
// in batches to a sink ([GRPC]), and questions to an echo ([GRPCAsk]).

const (
	rawService = "bench.Raw"
	rawMethod  = "/" + rawService + "/Open"
)

// rawCodec passes bytes through gRPC. Outgoing messages are *[]byte from the
// pool, which gRPC gives back; incoming ones *mem.Buffer.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

// Name is the name of the content type.
func (rawCodec) Name() string { return "proto" }

// Marshal passes a buffer on.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("bench: a %T is not bytes", v)
	}
	return mem.BufferSlice{mem.NewBuffer(b, mem.DefaultBufferPool())}, nil
}

// Unmarshal passes a buffer on; the receiver frees it.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*mem.Buffer)
	if !ok {
		return fmt.Errorf("bench: a %T takes no bytes", v)
	}
	*b = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// frames returns a buffer for n frames.
func frames(n, size int) *[]byte { return mem.DefaultBufferPool().Get(n * size) }

// openRaw opens a connection with one stream.
func openRaw(ctx context.Context, address string) (*grpc.ClientConn, grpc.ClientStream, error) {
	cc, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	if err != nil {
		return nil, nil, err
	}
	stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, rawMethod, grpc.ForceCodecV2(rawCodec{}))
	if err != nil {
		return nil, nil, errors.Join(err, cc.Close())
	}
	return cc, stream, nil
}

// GRPC measures the floor of messages over gRPC: the senders share one stream, as
// the nodes of a cluster do, and put a batch of frames into each message.
func GRPC(ctx context.Context, s Spec, k *Link) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(roleGRPCSink))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer p.Stop()
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	cc, stream, err := openRaw(life, address)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer func() { _ = cc.Close() }() // All messages have arrived by then.
	var sending sync.Mutex            // A stream is for one sender at a time.
	return Flood{
		Senders: s.Senders, Time: s.Time, Mark: p.Marks,
		Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			frame := make([]byte, s.Size)
			for !stop.Load() && err == nil {
				b := frames(s.Batch, s.Size)
				for i := range s.Batch {
					n++
					PutHeader(frame, sender, n)
					copy((*b)[i*s.Size:], frame)
				}
				sending.Lock()
				err = stream.SendMsg(b)
				sending.Unlock()
			}
			return n, err
		},
	}.Run(ctx)
}

// serveGRPCSink receives and checks what senders send.
func serveGRPCSink(ctx context.Context, s Spec, k *Link) error {
	return serveGRPC(ctx, k, func(stream grpc.ServerStream, found *Tally) error {
		r := found.Receiver(s.Senders, s.Size)
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				return nil //nolint:nilerr // The sender has closed; missing messages are counted.
			}
			for data := b.ReadOnlyData(); len(data) >= HeaderBytes; data = data[min(s.Size, len(data)):] {
				sender, seq := Header(data)
				r.Take(sender, seq, min(s.Size, len(data)))
			}
			b.Free()
		}
	})
}

// serveGRPCEcho answers each message with its header.
func serveGRPCEcho(ctx context.Context, s Spec, k *Link) error {
	return serveGRPC(ctx, k, func(stream grpc.ServerStream, found *Tally) error {
		r := found.Receiver(s.Senders, s.Size)
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				return nil //nolint:nilerr // The asker has closed, which is the end.
			}
			answer := frames(1, s.Size)
			size := copy(*answer, b.ReadOnlyData())
			b.Free()
			sender, seq := Header(*answer)
			r.Take(sender, seq, size)
			if err := stream.SendMsg(answer); err != nil {
				return err
			}
		}
	})
}

// serveGRPC serves streams until the parent process is gone.
func serveGRPC(ctx context.Context, k *Link, serve func(grpc.ServerStream, *Tally) error) error {
	l, err := Listen(ctx)
	if err != nil {
		return err
	}
	var found Tally
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: rawService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{
			StreamName: "Open", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return serve(stream, &found) },
		}},
	}, nil)
	served := make(chan error, 1)
	// Owned by this function: ends with Stop below.
	go func() { served <- server.Serve(l) }()
	err = k.HostMarks(l.Addr().String(), &found)
	server.Stop()
	return errors.Join(err, <-served)
}

// GRPCAsk measures the floor of asks over gRPC: one message per question.
func GRPCAsk(ctx context.Context, s Spec, k *Link) (figure.Outcome, error) {
	return askOver(ctx, s, k, roleGRPCEcho, func(ctx context.Context, address string) (connection, error) {
		cc, stream, err := openRaw(ctx, address)
		if err != nil {
			return connection{}, err
		}
		var sending sync.Mutex // A stream is for one sender at a time.
		return connection{
			ask: func(asker uint32, seq uint64) error {
				b := frames(1, s.Size)
				PutHeader(*b, asker, seq)
				sending.Lock()
				defer sending.Unlock()
				return stream.SendMsg(b)
			},
			next: func() (asker uint32, seq uint64, err error) {
				var b mem.Buffer
				if err := stream.RecvMsg(&b); err != nil {
					return 0, 0, err
				}
				asker, seq = Header(b.ReadOnlyData())
				b.Free()
				return asker, seq, nil
			},
			close: cc.Close,
		}, nil
	})
}
