// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package bench

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
)

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

// measureGRPC is the floor of messages over gRPC: the senders share one stream,
// as the nodes of a cluster do, and put a batch of frames into each message.
func measureGRPC(ctx context.Context, s spec, k *link) (outcome, error) {
	p, address, err := k.peer(ctx, s.as(roleGRPCSink))
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	cc, stream, err := openRaw(life, address)
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = cc.Close() }() // Everything has arrived by then.
	var sending sync.Mutex            // A stream is for one sender at a time.
	return flood{
		senders: s.Senders, time: s.Time, mark: remoteMark(p),
		send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			frame := make([]byte, s.Size)
			for !stop.Load() && err == nil {
				b := frames(s.Batch, s.Size)
				for i := range s.Batch {
					n++
					putHeader(frame, sender, n)
					copy((*b)[i*s.Size:], frame)
				}
				sending.Lock()
				err = stream.SendMsg(b)
				sending.Unlock()
			}
			return n, err
		},
	}.run(ctx)
}

// serveGRPCSink receives and checks what senders send.
func serveGRPCSink(ctx context.Context, s spec, k *link) error {
	return serveGRPC(ctx, k, func(stream grpc.ServerStream, found *tally) error {
		r := found.receiver(s.Senders, s.Size)
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				return nil //nolint:nilerr // The sender has closed; what is missing is counted.
			}
			for data := b.ReadOnlyData(); len(data) >= headerBytes; data = data[min(s.Size, len(data)):] {
				sender, seq := header(data)
				r.take(sender, seq, min(s.Size, len(data)))
			}
			b.Free()
		}
	})
}

// serveGRPCEcho answers each message with its header.
func serveGRPCEcho(ctx context.Context, s spec, k *link) error {
	return serveGRPC(ctx, k, func(stream grpc.ServerStream, found *tally) error {
		r := found.receiver(s.Senders, s.Size)
		for {
			var b mem.Buffer
			if err := stream.RecvMsg(&b); err != nil {
				return nil //nolint:nilerr // The asker has closed, which is the end.
			}
			answer := frames(1, s.Size)
			size := copy(*answer, b.ReadOnlyData())
			b.Free()
			sender, seq := header(*answer)
			r.take(sender, seq, size)
			if err := stream.SendMsg(answer); err != nil {
				return err
			}
		}
	})
}

// serveGRPC serves streams until the parent is gone.
func serveGRPC(ctx context.Context, k *link, serve func(grpc.ServerStream, *tally) error) error {
	l, err := listen(ctx)
	if err != nil {
		return err
	}
	var found tally
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
	if err := k.send(hello{l.Addr().String()}); err != nil {
		return err
	}
	err = newStopwatch(&found, cpuTime).serve(k)
	server.Stop()
	return errors.Join(err, <-served)
}

// measureGRPCAsk is the floor of asks over gRPC: all askers share one stream,
// with a message a question.
func measureGRPCAsk(ctx context.Context, s spec, k *link) (outcome, error) {
	p, address, err := k.peer(ctx, s.as(roleGRPCEcho))
	if err != nil {
		return outcome{}, err
	}
	defer p.stop()
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	cc, stream, err := openRaw(life, address)
	if err != nil {
		return outcome{}, err
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
			answers.deliver(header(b.ReadOnlyData()))
			b.Free()
		}
	})
	var sending sync.Mutex // A stream is for one sender at a time.
	result, err := asking{
		askers: s.Senders, time: s.Time, mark: remoteMark(p),
		ask: func(ctx context.Context, asker uint32, seq uint64) error {
			b := frames(1, s.Size)
			putHeader(*b, asker, seq)
			sending.Lock()
			err := stream.SendMsg(b)
			sending.Unlock()
			if err != nil {
				return err
			}
			return answers.await(ctx, asker, seq)
		},
	}.run(ctx)
	err = errors.Join(err, cc.Close())
	reader.Wait()
	return result, err
}
