// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
)

// The two floors come with their peers: frames to a sink ([TCP]), and questions to
// an echo ([TCPAsk]). The writer that goroutines share is at the end.

// socketBytes is the size of the buffers before sockets.
const socketBytes = 64 << 10

// TCP measures the floor of messages between processes: the senders write frames
// of equal size to one connection, as the nodes of a cluster do, through one buffer.
func TCP(ctx context.Context, s Spec, k *Link) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(roleTCPSink))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer p.Stop()
	conn, err := Dial(ctx, address)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer func() { _ = conn.Close() }() // All frames have arrived by then.
	out := &sharedWriter{out: bufio.NewWriterSize(conn, socketBytes)}
	return Flood{
		Senders: s.Senders, Time: s.Time, Mark: p.Marks,
		Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			frame := make([]byte, s.Size)
			for !stop.Load() {
				n++
				PutHeader(frame, sender, n)
				if err := out.write(frame); err != nil {
					return n, err
				}
			}
			return n, out.flush()
		},
	}.Run(ctx)
}

// serveTCPSink receives and checks what senders write.
func serveTCPSink(ctx context.Context, s Spec, k *Link) error {
	return serveTCP(ctx, k, func(conn net.Conn, found *Tally) error {
		in, r := bufio.NewReaderSize(conn, socketBytes), found.Receiver(s.Senders, s.Size)
		for {
			frame, err := in.Peek(s.Size)
			if err != nil {
				return err
			}
			sender, seq := Header(frame)
			r.Take(sender, seq, len(frame))
			if _, err := in.Discard(s.Size); err != nil {
				return err
			}
		}
	})
}

// serveTCPEcho answers each frame with itself. Answers are flushed when no further
// question has arrived.
func serveTCPEcho(ctx context.Context, s Spec, k *Link) error {
	return serveTCP(ctx, k, func(conn net.Conn, found *Tally) error {
		in, out := bufio.NewReaderSize(conn, socketBytes), bufio.NewWriterSize(conn, socketBytes)
		r, frame := found.Receiver(s.Senders, s.Size), make([]byte, s.Size)
		for {
			if _, err := io.ReadFull(in, frame); err != nil {
				return err
			}
			sender, seq := Header(frame)
			r.Take(sender, seq, len(frame))
			if _, err := out.Write(frame); err != nil {
				return err
			}
			if in.Buffered() < s.Size {
				if err := out.Flush(); err != nil {
					return err
				}
			}
		}
	})
}

// serveTCP serves connections until the parent process is gone.
func serveTCP(ctx context.Context, k *Link, serve func(net.Conn, *Tally) error) error {
	l, err := Listen(ctx)
	if err != nil {
		return err
	}
	var found Tally
	var conns sync.WaitGroup
	// Owned by this function: ends when the listener is closed below. The goroutines of
	// connections end with the senders, whose end ends this process.
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer func() { _ = conn.Close() }() // The senders have closed the connection.
				_ = serve(conn, &found)             // It ends with the connection; missing frames are counted.
			})
		}
	})
	return errors.Join(k.HostMarks(l.Addr().String(), &found), l.Close())
}

// TCPAsk measures the floor of asks over TCP.
func TCPAsk(ctx context.Context, s Spec, k *Link) (figure.Outcome, error) {
	return askOver(ctx, s, k, roleTCPEcho, func(ctx context.Context, address string) (connection, error) {
		conn, err := Dial(ctx, address)
		if err != nil {
			return connection{}, err
		}
		out := &sharedWriter{out: bufio.NewWriterSize(conn, socketBytes)}
		in, answer := bufio.NewReaderSize(conn, socketBytes), make([]byte, s.Size)
		return connection{
			ask: func(asker uint32, seq uint64) error {
				frame := make([]byte, s.Size)
				PutHeader(frame, asker, seq)
				return out.writeThrough(frame)
			},
			next: func() (asker uint32, seq uint64, err error) {
				if _, err := io.ReadFull(in, answer); err != nil {
					return 0, 0, err
				}
				asker, seq = Header(answer)
				return asker, seq, nil
			},
			close: conn.Close,
		}, nil
	})
}

// sharedWriter writes frames of several goroutines.
type sharedWriter struct {
	waiting atomic.Int32 // Writers that will flush.

	mu  sync.Mutex // Guards out.
	out *bufio.Writer
}

// write writes one frame into the buffer.
func (w *sharedWriter) write(frame []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(frame)
	return err
}

// flush sends what is in the buffer.
func (w *sharedWriter) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Flush()
}

// writeThrough writes one frame and flushes it. The last of the waiting writers flushes
// for all.
func (w *sharedWriter) writeThrough(frame []byte) error {
	w.waiting.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(frame)
	if w.waiting.Add(-1) == 0 {
		err = errors.Join(err, w.out.Flush())
	}
	return err
}
