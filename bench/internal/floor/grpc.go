// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package floor

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
	"github.com/quorate/quorate/bench/internal/loopback"
	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/sequence"
)

// The codec and the stream come first. Then the two floors, each with its peer: messages
// in batches to a sink ([measureGRPC]), and questions to an echo ([measureGRPCAsk]).

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

// measureGRPC measures the floor of messages over gRPC: the senders share one stream, as
// the nodes of a cluster do, and put a batch of frames into each message.
func measureGRPC(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
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
	return measure.Flood{
		Senders: s.Senders, Time: s.Time, Mark: measure.RemoteMark(p),
		Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			frame := make([]byte, s.Size)
			for !stop.Load() && err == nil {
				b := frames(s.Batch, s.Size)
				for i := range s.Batch {
					n++
					message.PutHeader(frame, sender, n)
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
func serveGRPCSink(ctx context.Context, s process.Spec, k *process.Link) error {
	return serveGRPC(ctx, k, func(stream grpc.ServerStream, found *sequence.Tally) error {
		r := found.Receiver(s.Senders, s.Size)
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				return nil //nolint:nilerr // The sender has closed; missing messages are counted.
			}
			for data := b.ReadOnlyData(); len(data) >= message.HeaderBytes; data = data[min(s.Size, len(data)):] {
				sender, seq := message.Header(data)
				r.Take(sender, seq, min(s.Size, len(data)))
			}
			b.Free()
		}
	})
}

// serveGRPCEcho answers each message with its header.
func serveGRPCEcho(ctx context.Context, s process.Spec, k *process.Link) error {
	return serveGRPC(ctx, k, func(stream grpc.ServerStream, found *sequence.Tally) error {
		r := found.Receiver(s.Senders, s.Size)
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				return nil //nolint:nilerr // The asker has closed, which is the end.
			}
			answer := frames(1, s.Size)
			size := copy(*answer, b.ReadOnlyData())
			b.Free()
			sender, seq := message.Header(*answer)
			r.Take(sender, seq, size)
			if err := stream.SendMsg(answer); err != nil {
				return err
			}
		}
	})
}

// serveGRPC serves streams until the parent process is gone.
func serveGRPC(ctx context.Context, k *process.Link, serve func(grpc.ServerStream, *sequence.Tally) error) error {
	l, err := loopback.Listen(ctx)
	if err != nil {
		return err
	}
	var found sequence.Tally
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
	if err := k.Send(process.Hello{Address: l.Addr().String()}); err != nil {
		return err
	}
	err = measure.NewStopwatch(&found, measure.CPUTime).Serve(k)
	server.Stop()
	return errors.Join(err, <-served)
}

// measureGRPCAsk measures the floor of asks over gRPC: all askers share one stream, with
// one message per question.
func measureGRPCAsk(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(roleGRPCEcho))
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
	answers := newAnswers(s.Senders)
	var reader sync.WaitGroup
	// Owned by this function: ends when the connection is closed below.
	reader.Go(func() {
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				answers.end(err)
				return
			}
			answers.deliver(message.Header(b.ReadOnlyData()))
			b.Free()
		}
	})
	var sending sync.Mutex // A stream is for one sender at a time.
	result, err := measure.Asking{
		Askers: s.Senders, Time: s.Time, Mark: measure.RemoteMark(p),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			b := frames(1, s.Size)
			message.PutHeader(*b, asker, seq)
			sending.Lock()
			err := stream.SendMsg(b)
			sending.Unlock()
			if err != nil {
				return err
			}
			return answers.await(ctx, asker, seq)
		},
	}.Run(ctx)
	err = errors.Join(err, cc.Close())
	reader.Wait()
	return result, err
}
