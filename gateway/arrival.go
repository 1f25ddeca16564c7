// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/quorate/quorate/transport/gate"
)

// gRPC collects a message before anybody sees it, whatever it has room for. So what has come of messages is counted
// below it, at the frames of HTTP/2 ([frameConn.Read], above TLS), for each call that [Server.tap] has let in
// ([arrivals.begin]). Beyond a bound of a connection, of a host or of all the call gives way that has most
// ([arrivals.crowd]). The handler takes a message out of the counts when it has it ([arrival.take]); a message that
// does not come in its time ends its call ([arrivals.sweep]).

const (
	// callBytes is what a call counts by itself, for its goroutines and buffers.
	callBytes = 4 << 10
	// readBuffer is how many bytes are read from a connection at a time while there are no more than that.
	readBuffer = 16 << 10
	// sweeps is how often within the time for a message it is looked whether it has come. They are counted, so that a node
	// that stood still takes that out on nobody.
	sweeps = 4
)

// Why a call is ended whose message has not come. gRPC itself tells the client, that the call was canceled.
var (
	errCrowded = errors.New("the node has as many bytes of messages that are on their way as it takes")
	errLate    = errors.New("the message has not come within gateway.read-timeout")
)

// arrivals counts what has come of messages that no handler has yet.
type arrivals struct {
	conn, host, all int             // The bounds, in bytes.
	count           func(why error) // Is told of each call that gives way or is late.

	mu    sync.Mutex // Guards what follows, and the counts of each connection and call.
	bytes int
	hosts map[string]int          // Bytes by host.
	open  map[*frameConn]struct{} // On which a call has begun.
}

// newArrivals bounds what arrives: all of it, half for a host and a quarter for a connection, but two of the largest
// messages always.
func newArrivals(all, message int, count func(error)) *arrivals {
	least := 2 * (message + callBytes)
	return &arrivals{
		conn: max(all/4, least), host: max(all/2, least), all: max(all, least), count: count,
		hosts: map[string]int{}, open: map[*frameConn]struct{}{},
	}
}

// frameConn is a connection whose frames are followed. gRPC reads each frame by itself, so that the frame which is
// being read is the one that gRPC looks at.
type frameConn struct {
	net.Conn

	in   *bufio.Reader
	of   *arrivals
	gate *gate.Conn

	// Used by the one goroutine that reads.
	skip   int // Bytes until the next head of a frame: the preface first.
	head   []byte
	padded bool   // The next byte says how many of the frame are padding.
	stream uint32 // Of the frame.

	bytes int // Guarded by the lock of of, as are the calls.
	calls map[uint32]*arrival
}

const (
	prefaceBytes = 24 // RFC 9113, section 3.4.
	headBytes    = 9  // Section 4.1: three of the length, type, flags, four of the stream.
	typeData     = 0
	flagPadded   = 8
)

func (a *arrivals) follow(conn net.Conn, g *gate.Conn) *frameConn {
	return &frameConn{Conn: conn, in: bufio.NewReaderSize(conn, readBuffer), of: a, gate: g, skip: prefaceBytes, calls: map[uint32]*arrival{}}
}

// inflowAddr carries the connection to the calls on it.
type inflowAddr struct {
	net.Addr

	conn *frameConn
}

// RemoteAddr returns the address of the client.
func (f *frameConn) RemoteAddr() net.Addr { return inflowAddr{f.Conn.RemoteAddr(), f} }

// Close ends the counting too.
func (f *frameConn) Close() error {
	f.of.mu.Lock()
	for _, c := range f.calls {
		f.of.drop(c)
	}
	delete(f.of.open, f)
	f.of.mu.Unlock()
	return f.Conn.Close()
}

// Read follows the frames in what is read.
func (f *frameConn) Read(b []byte) (int, error) {
	n, err := f.in.Read(b)
	for rest := b[:n]; len(rest) > 0; {
		switch {
		case f.padded:
			f.padded = false
			f.of.add(f, f.stream, -1-int(rest[0]))
			fallthrough
		case f.skip > 0:
			m := min(f.skip, len(rest))
			f.skip, rest = f.skip-m, rest[m:]
		default:
			m := min(headBytes-len(f.head), len(rest))
			f.head, rest = append(f.head, rest[:m]...), rest[m:]
			if len(f.head) == headBytes {
				f.begin()
			}
		}
	}
	return n, err
}

// begin takes the head of a frame.
func (f *frameConn) begin() {
	f.skip = int(binary.BigEndian.Uint32(f.head) >> 8)
	f.stream = binary.BigEndian.Uint32(f.head[5:]) &^ (1 << 31)
	if f.head[3] == typeData {
		f.padded = f.head[4]&flagPadded != 0 && f.skip > 0
		f.of.add(f, f.stream, f.skip)
	}
	f.head = f.head[:0]
}

// arrival is what has come of the messages of a call.
type arrival struct {
	conn   *frameConn
	stream uint32
	end    context.CancelCauseFunc
	once   bool // The call has one message, which is awaited from the beginning.

	// Guarded by the lock of the arrivals.
	bytes   int // With callBytes.
	swept   int // How often it was looked whether the message has come.
	taken   bool
	dropped bool
}

type arrivalKey struct{}

// arrivalOf returns the arrival of a call.
func arrivalOf(ctx context.Context) *arrival {
	a, _ := ctx.Value(arrivalKey{}).(*arrival)
	return a
}

// inflowOf returns the connection of a call; nil where it is none of the listener's.
func inflowOf(ctx context.Context) *frameConn {
	if p, ok := peer.FromContext(ctx); ok {
		if at, ok := p.Addr.(inflowAddr); ok {
			return at.conn
		}
	}
	return nil
}

// begin counts the call whose head is being read, until its context ends.
func (a *arrivals) begin(ctx context.Context, f *frameConn, once bool) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	c := &arrival{conn: f, stream: f.stream, end: end, once: once}
	a.mu.Lock()
	a.open[f] = struct{}{}
	f.calls[c.stream] = c
	a.grow(c, callBytes)
	a.mu.Unlock()
	context.AfterFunc(ctx, c.over)
	return context.WithValue(ctx, arrivalKey{}, c)
}

// over ends the counting of a call.
func (c *arrival) over() {
	c.conn.of.mu.Lock()
	defer c.conn.of.mu.Unlock()
	c.conn.of.drop(c)
}

// take takes a message out of the counts.
func (c *arrival) take(bytes int) {
	a := c.conn.of
	a.mu.Lock()
	defer a.mu.Unlock()
	if !c.dropped {
		c.swept, c.taken = 0, true
		a.grow(c, -min(bytes, c.bytes-callBytes))
	}
}

// add counts bytes of a call. Those of a call that was refused or is over are nobody's: gRPC drops them.
func (a *arrivals) add(f *frameConn, stream uint32, bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := f.calls[stream]; c != nil {
		a.grow(c, bytes)
	}
}

// grow changes the counts of a call, and ends calls that have no room.
func (a *arrivals) grow(c *arrival, bytes int) {
	c.bytes += bytes
	c.conn.bytes += bytes
	a.bytes += bytes
	host := c.conn.gate.Host()
	if a.hosts[host] += bytes; a.hosts[host] == 0 {
		delete(a.hosts, host)
	}
	for c.conn.bytes > a.conn || a.hosts[host] > a.host || a.bytes > a.all {
		within := c.conn
		if c.conn.bytes <= a.conn {
			within = a.fullest(host)
		}
		a.finish(within.largest(), errCrowded)
	}
}

// fullest returns the connection with most bytes: of a host, if that has more than it may, else of the host with most.
func (a *arrivals) fullest(host string) (most *frameConn) {
	if a.hosts[host] <= a.host {
		for other, bytes := range a.hosts {
			if bytes > a.hosts[host] || bytes == a.hosts[host] && other < host {
				host = other
			}
		}
	}
	for f := range a.open {
		if f.gate.Host() == host && (most == nil || f.bytes > most.bytes) {
			most = f
		}
	}
	return most
}

// largest returns the call of which most has come, the latest of several.
func (f *frameConn) largest() (most *arrival) {
	for _, c := range f.calls {
		if most == nil || c.bytes > most.bytes || c.bytes == most.bytes && c.stream > most.stream {
			most = c
		}
	}
	return most
}

// finish ends a call that has no room, or no time, left.
func (a *arrivals) finish(c *arrival, why error) {
	a.drop(c)
	a.count(why)
	c.end(why)
}

// drop takes a call out of the counts, once.
func (a *arrivals) drop(c *arrival) {
	if c.dropped {
		return
	}
	bytes := c.bytes
	delete(c.conn.calls, c.stream)
	a.grow(c, -bytes)
	c.dropped = true
}

// sweep ends the calls whose messages have not come in their time.
func (a *arrivals) sweep() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for f := range a.open {
		for _, c := range f.calls {
			if waits := c.bytes > callBytes || c.once && !c.taken; !waits {
				continue
			}
			if c.swept++; c.swept > sweeps {
				a.finish(c, errLate)
			}
		}
	}
}

// held returns how many bytes have come that no handler has.
func (a *arrivals) held() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

// frameCredentials are credentials whose connections are followed.
type frameCredentials struct {
	credentials.TransportCredentials

	of *arrivals
}

// ServerHandshake shakes hands.
func (f frameCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, auth, err := f.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return f.of.follow(conn, gate.Of(raw.RemoteAddr())), auth, nil
}

// Clone copies the credentials.
func (f frameCredentials) Clone() credentials.TransportCredentials {
	return frameCredentials{f.TransportCredentials.Clone(), f.of}
}
