// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quorate/quorate/transport/internal/wire"
	"github.com/quorate/quorate/transport/session"
)

// A pipe on a connection: Send writes a message behind its length, by one call of the
// system where it can; Recv reads a length, judges it, and then the message, into a buffer
// that grows as bytes come; Close ends both.

const (
	// lengthBytes is how many bytes the length of a message has.
	lengthBytes = 4

	// maxCopied is the size up to which a message is copied behind its length, so that
	// one call writes both. It is also the size of a record of TLS.
	maxCopied = 16 << 10

	// growthMin is the least number of bytes by which the buffer of a message grows as the message comes.
	growthMin = 16 << 10
)

// ErrBroken is wrapped by the errors of a connection that ended or failed.
var ErrBroken = errors.New("connection broken")

// Config is what a [Pipe] is made of.
type Config struct {
	// Conn is the connection. Messages are read from it.
	Conn net.Conn

	// Out is what messages are written to. It differs from Conn where Conn only adds
	// to the reading: what is written to a connection of TCP itself needs no copy.
	Out io.Writer

	Limit  int // The largest message that Recv takes, in bytes.
	Buffer int // How many bytes are read at a time while there are no more than that.

	// Pool has the buffers of messages that come, and those by which small messages
	// are written.
	Pool *wire.Pool

	// Close ends the connection. The other end is gone when reading from it has
	// failed.
	Close func(gone bool)
}

// Pipe is one end of a connection that carries messages with their lengths.
type Pipe struct {
	cfg    Config
	in     *bufio.Reader
	length [lengthBytes]byte // Used by the one goroutine that receives.
	gone   atomic.Bool       // Reading has failed.
	once   sync.Once
}

var _ session.Pipe = (*Pipe)(nil)

// New returns the pipe of a connection on which both ends have agreed to speak this
// wire.
func New(cfg Config) *Pipe {
	return &Pipe{cfg: cfg, in: bufio.NewReaderSize(cfg.Conn, cfg.Buffer)}
}

// Send implements [session.Pipe].
func (p *Pipe) Send(b *session.Buffer) error {
	defer b.Free()
	if len(b.B) > math.MaxUint32 {
		return session.ErrOversize
	}
	head := p.cfg.Pool.Get()
	defer head.Free()
	head.B = binary.LittleEndian.AppendUint32(head.B, uint32(len(b.B)))
	rest := b.B
	if n := p.copiedBytes(len(rest)); n > 0 {
		head.B, rest = append(head.B, rest[:n]...), rest[n:]
	}
	var err error
	if len(rest) == 0 {
		_, err = p.cfg.Out.Write(head.B)
	} else {
		_, err = (&net.Buffers{head.B, rest}).WriteTo(p.cfg.Out)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// copiedBytes returns how many bytes of a message are copied behind its length: all of a
// small one. A connection of TCP writes the rest of a large one from where it is, by the
// same call; any other, TLS above all, gets as much as fills a record.
func (p *Pipe) copiedBytes(n int) int {
	if n <= maxCopied-lengthBytes {
		return n
	}
	if _, ok := p.cfg.Out.(*net.TCPConn); ok {
		return 0
	}
	return maxCopied - lengthBytes
}

// Recv implements [session.Pipe].
func (p *Pipe) Recv(in *session.Incoming) error {
	if _, err := io.ReadFull(p.in, p.length[:]); err != nil {
		return p.broken(err)
	}
	n := binary.LittleEndian.Uint32(p.length[:])
	if uint64(n) > uint64(p.cfg.Limit) {
		return fmt.Errorf("%w: %d bytes, at most %d are taken", session.ErrOversize, n, p.cfg.Limit)
	}
	if !in.Admits(int(n)) {
		return session.ErrStranger(fmt.Sprintf("%d bytes", n))
	}
	b := p.cfg.Pool.Get()
	if err := p.fill(b, int(n)); err != nil {
		b.Free()
		return p.broken(err)
	}
	in.Bytes, in.Owner = b.B, b
	return nil
}

// fill reads n bytes into an empty buffer, which grows as they come.
func (p *Pipe) fill(b *wire.Buffer, n int) error {
	for len(b.B) < n {
		if len(b.B) == cap(b.B) {
			b.B = slices.Grow(b.B, min(max(growthMin, cap(b.B)), n-len(b.B)))
		}
		have := len(b.B)
		more := b.B[have:min(cap(b.B), n)]
		m, err := io.ReadFull(p.in, more)
		b.B = b.B[:have+m]
		if err != nil {
			return err
		}
	}
	return nil
}

// broken notes that reading has failed, and returns the error.
func (p *Pipe) broken(err error) error {
	p.gone.Store(true)
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// Close implements [session.Pipe].
func (p *Pipe) Close() { p.once.Do(func() { p.cfg.Close(p.gone.Load()) }) }
