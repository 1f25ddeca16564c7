// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/bench/internal/figure"
	"github.com/quorate/quorate/bench/internal/loopback"
	"github.com/quorate/quorate/bench/internal/measure"
	"github.com/quorate/quorate/bench/internal/message"
	"github.com/quorate/quorate/bench/internal/process"
	"github.com/quorate/quorate/bench/internal/sequence"
)

// The two floors come with their peers: frames to a sink ([measureTCP]), and questions to
// an echo ([measureTCPAsk]). The writer and the answers that goroutines share are at the
// end.

// socketBytes is the size of the buffers before sockets.
const socketBytes = 64 << 10

// measureTCP measures the floor of messages between processes: the senders write frames
// of equal size to one connection, as the nodes of a cluster do, through one buffer.
func measureTCP(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(roleTCPSink))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer p.Stop()
	conn, err := loopback.Dial(ctx, address)
	if err != nil {
		return figure.Outcome{}, err
	}
	defer func() { _ = conn.Close() }() // All frames have arrived by then.
	out := &sharedWriter{out: bufio.NewWriterSize(conn, socketBytes)}
	return measure.Flood{
		Senders: s.Senders, Time: s.Time, Mark: measure.RemoteMark(p),
		Send: func(_ context.Context, sender uint32, stop *atomic.Bool) (n uint64, err error) {
			frame := make([]byte, s.Size)
			for !stop.Load() {
				n++
				message.PutHeader(frame, sender, n)
				if err := out.write(frame); err != nil {
					return n, err
				}
			}
			return n, out.flush()
		},
	}.Run(ctx)
}

// serveTCPSink receives and checks what senders write.
func serveTCPSink(ctx context.Context, s process.Spec, k *process.Link) error {
	return serveTCP(ctx, k, func(conn net.Conn, found *sequence.Tally) error {
		in, r := bufio.NewReaderSize(conn, socketBytes), found.Receiver(s.Senders, s.Size)
		for {
			frame, err := in.Peek(s.Size)
			if err != nil {
				return err
			}
			sender, seq := message.Header(frame)
			r.Take(sender, seq, len(frame))
			if _, err := in.Discard(s.Size); err != nil {
				return err
			}
		}
	})
}

// serveTCPEcho answers each frame with itself. Answers are flushed when no further
// question has arrived.
func serveTCPEcho(ctx context.Context, s process.Spec, k *process.Link) error {
	return serveTCP(ctx, k, func(conn net.Conn, found *sequence.Tally) error {
		in, out := bufio.NewReaderSize(conn, socketBytes), bufio.NewWriterSize(conn, socketBytes)
		r, frame := found.Receiver(s.Senders, s.Size), make([]byte, s.Size)
		for {
			if _, err := io.ReadFull(in, frame); err != nil {
				return err
			}
			sender, seq := message.Header(frame)
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
func serveTCP(ctx context.Context, k *process.Link, serve func(net.Conn, *sequence.Tally) error) error {
	l, err := loopback.Listen(ctx)
	if err != nil {
		return err
	}
	var found sequence.Tally
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
	if err := k.Send(process.Hello{Address: l.Addr().String()}); err != nil {
		return err
	}
	return errors.Join(measure.NewStopwatch(&found, measure.CPUTime).Serve(k), l.Close())
}

// measureTCPAsk measures the floor of asks: all askers share one connection.
func measureTCPAsk(ctx context.Context, s process.Spec, k *process.Link) (figure.Outcome, error) {
	p, address, err := k.Peer(ctx, s.As(roleTCPEcho))
	if err != nil {
		return figure.Outcome{}, err
	}
	defer p.Stop()
	conn, err := loopback.Dial(ctx, address)
	if err != nil {
		return figure.Outcome{}, err
	}
	answers := newAnswers(s.Senders)
	var reader sync.WaitGroup
	// Owned by this function: ends when the connection is closed below.
	reader.Go(func() {
		in, frame := bufio.NewReaderSize(conn, socketBytes), make([]byte, s.Size)
		for {
			if _, err := io.ReadFull(in, frame); err != nil {
				answers.end(err)
				return
			}
			answers.deliver(message.Header(frame))
		}
	})
	out := &sharedWriter{out: bufio.NewWriterSize(conn, socketBytes)}
	result, err := measure.Asking{
		Askers: s.Senders, Time: s.Time, Mark: measure.RemoteMark(p),
		Ask: func(ctx context.Context, asker uint32, seq uint64) error {
			frame := make([]byte, s.Size)
			message.PutHeader(frame, asker, seq)
			if err := out.writeThrough(frame); err != nil {
				return err
			}
			return answers.await(ctx, asker, seq)
		},
	}.Run(ctx)
	err = errors.Join(err, conn.Close())
	reader.Wait()
	return result, err
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

// answers hands answers to the waiting askers.
type answers struct {
	to    []chan uint64 // By asker; of capacity one, since an asker asks one question at a time.
	ended chan struct{}
	err   error // Set before ended is closed.
}

// newAnswers returns answers for a number of askers.
func newAnswers(askers int) *answers {
	a := &answers{to: make([]chan uint64, askers), ended: make(chan struct{})}
	for i := range a.to {
		a.to[i] = make(chan uint64, 1)
	}
	return a
}

// deliver hands over an answer. It belongs to the reader's goroutine.
func (a *answers) deliver(asker uint32, seq uint64) {
	if int(asker) < len(a.to) {
		a.to[asker] <- seq
	}
}

// end says that no more answers come.
func (a *answers) end(err error) {
	a.err = err
	close(a.ended)
}

// await waits for the answer to a question.
func (a *answers) await(ctx context.Context, asker uint32, seq uint64) error {
	select {
	case got := <-a.to[asker]:
		if got != seq {
			return fmt.Errorf("the answer is to question %d, want %d", got, seq)
		}
		return nil
	case <-a.ended:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
