// Copyright The Quorate Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"container/list"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A connection goes the way of Accept, enter, Admit and Close; weakest finds which one gives way.

// Config bounds the connections of a gate.
type Config struct {
	// Pending bounds the connections that are not admitted, and HostPending those of one IP address. Both are
	// at least 1. Beyond them the oldest of the address with most is closed.
	Pending, HostPending int

	// Admitted bounds the admitted connections, and HostAdmitted those of one IP address. Beyond them new ones are
	// closed. Zero means no bound.
	Admitted, HostAdmitted int

	// Bytes is how many bytes are read from a connection while it is pending. Beyond it the connection is
	// closed. At least 1.
	Bytes int64

	// AllBytes is how many bytes are read from all pending connections together. Beyond it those on which most has come
	// give way. At least Bytes.
	AllBytes int64

	// Closed hears of each connection that the gate closes by itself, and why. It is called on the goroutine that
	// closes, without locks. It must be set, as must Failed.
	Closed func(remote net.Addr, why Reason)

	// Failed hears of each error of accepting, most likely that descriptors have run out. The gate then closes the pending
	// connection that would give way next, and goes on.
	Failed func(error)
}

// PendingBytes is the value of [Config.Bytes] at the ports of a node: room for certificates, and for the head of a
// request.
const PendingBytes = 64 << 10

// AllPendingBytes is the value of [Config.AllBytes] there: eight KiB, which is more than an honest end says in a
// handshake, for each of 512 connections.
const AllPendingBytes = 4 << 20

// Reason is why a gate closes a connection.
type Reason int

// The reasons of a gate.
const (
	GaveWay      Reason = iota // Pending, for another one.
	FullHost                   // Its IP address has as many admitted connections as it may.
	Full                       // There are as many admitted connections as there may be.
	TooManyBytes               // Pending, and more has come than [Config.Bytes].
)

// acceptPause is how long accepting rests after an error.
const acceptPause = 10 * time.Millisecond

// ErrTooManyBytes ends the reading from a pending connection from which too much has come.
var ErrTooManyBytes = errors.New("gate: too many bytes of who was not admitted")

// Gate is a listener with places.
type Gate struct {
	net.Listener

	cfg     Config
	closed  chan struct{} // Closed when the gate is.
	closing sync.Once

	mu                sync.Mutex // Guards what follows, and the place of each connection.
	hosts             map[string]*host
	pending, admitted int
	came              int64  // Bytes that came on the connections that are pending.
	seq               uint64 // Of the connection that became pending last.
}

// host are the connections of one IP address.
type host struct {
	pending  list.List // Of *Conn, the oldest first.
	admitted int
}

// New puts a gate behind a listener.
func New(l net.Listener, cfg Config) *Gate {
	return &Gate{Listener: l, cfg: cfg, closed: make(chan struct{}), hosts: map[string]*host{}}
}

// Open returns how many connections are pending, and how many are admitted.
func (g *Gate) Open() (pending, admitted int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending, g.admitted
}

// Accept waits for a connection that gets a place. The error says that the listener is closed.
func (g *Gate) Accept() (net.Conn, error) {
	for {
		raw, err := g.Listener.Accept()
		switch {
		case err == nil:
		case errors.Is(err, net.ErrClosed):
			return nil, err
		default:
			g.cfg.Failed(err)
			g.relieve()
			select {
			case <-time.After(acceptPause):
			case <-g.closed:
				return nil, net.ErrClosed
			}
			continue
		}
		c := &Conn{Conn: raw, gate: g, host: HostOf(raw.RemoteAddr())}
		if why, full := g.full(c.host); full {
			_ = raw.Close() // Nothing was read from it.
			g.cfg.Closed(raw.RemoteAddr(), why)
			continue
		}
		g.enter(c, waits)
		return c, nil
	}
}

// Close closes the listener. Connections stay open.
func (g *Gate) Close() error {
	g.closing.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// full reports whether no connection of a host could be admitted, and why.
func (g *Gate) full(name string) (why Reason, full bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fullLocked(name)
}

func (g *Gate) fullLocked(name string) (why Reason, full bool) {
	h := g.hosts[name]
	switch {
	case h != nil && g.cfg.HostAdmitted > 0 && h.admitted >= g.cfg.HostAdmitted:
		return FullHost, true
	case g.cfg.Admitted > 0 && g.admitted >= g.cfg.Admitted:
		return Full, true
	}
	return 0, false
}

// enter makes a connection pending that was new or admitted, and closes those that give way.
func (g *Gate) enter(c *Conn, to state) {
	g.mu.Lock()
	if c.state == closed {
		g.mu.Unlock()
		return
	}
	g.move(c, to)
	var gone []*Conn
	for {
		h := g.hosts[c.host]
		switch {
		case h != nil && h.pending.Len() > g.cfg.HostPending:
			gone = append(gone, h.oldest())
		case g.pending > g.cfg.Pending:
			gone = append(gone, g.weakest())
		default:
			g.mu.Unlock()
			for _, weak := range gone {
				g.evict(weak)
			}
			return
		}
		g.move(gone[len(gone)-1], closed)
	}
}

// relieve closes the connection that would give way next, so that a descriptor is free.
func (g *Gate) relieve() {
	g.mu.Lock()
	weak := g.weakest()
	if weak != nil {
		g.move(weak, closed)
	}
	g.mu.Unlock()
	if weak != nil {
		g.evict(weak)
	}
}

func (g *Gate) evict(c *Conn) {
	_ = c.Conn.Close() // Nobody has been promised anything on it.
	g.cfg.Closed(c.Conn.RemoteAddr(), GaveWay)
}

func (h *host) oldest() *Conn { return h.pending.Front().Value.(*Conn) }

// weakest returns the pending connection that gives way next: the oldest of the host with most; nil if none is pending.
func (g *Gate) weakest() *Conn {
	var most *host
	for _, h := range g.hosts {
		switch {
		case h.pending.Len() == 0:
		case most == nil || h.pending.Len() > most.pending.Len(),
			h.pending.Len() == most.pending.Len() && h.oldest().seq < most.oldest().seq:
			most = h
		}
	}
	if most == nil {
		return nil
	}
	return most.oldest()
}

// move changes the state of a connection, and all counts with it.
func (g *Gate) move(c *Conn, to state) {
	h := g.hosts[c.host]
	if h == nil {
		h = new(host)
		g.hosts[c.host] = h
	}
	switch c.state {
	case waits:
		h.pending.Remove(c.at)
		g.pending--
		g.came -= c.came
		c.came = 0
	case speaks:
		h.admitted--
		g.admitted--
	case accepted, closed:
	}
	switch c.state = to; to {
	case waits:
		g.seq++
		c.seq, c.at = g.seq, h.pending.PushBack(c)
		g.pending++
	case speaks:
		h.admitted++
		g.admitted++
	case accepted, closed:
	}
	if h.pending.Len() == 0 && h.admitted == 0 {
		delete(g.hosts, c.host)
	}
}

// state is where a connection is on its way.
type state int

const (
	accepted state = iota
	waits          // Pending.
	speaks         // Admitted.
	closed
)

// Conn is a connection that has a place until it is closed.
type Conn struct {
	net.Conn

	gate *Gate
	host string

	state state         // Guarded by the lock of the gate, as are at, seq and came.
	at    *list.Element // While it is pending.
	seq   uint64
	came  int64 // Bytes that came while it was pending.

	known atomic.Bool // It is admitted: what comes is not counted.
}

// Of returns the connection of a gate whose address a is: [Conn.RemoteAddr] carries it through TLS, HTTP and gRPC. Nil
// if it is none.
func Of(a net.Addr) *Conn {
	if at, ok := a.(address); ok {
		return at.conn
	}
	return nil
}

// address is an address that knows its connection.
type address struct {
	net.Addr

	conn *Conn
}

// RemoteAddr returns the address of the other end, see [Of].
func (c *Conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// Host returns the IP address of the other end, as the gate counts it.
func (c *Conn) Host() string { return c.host }

// Admit makes the connection an admitted one: it is known who speaks on it. It reports false if there is no
// place for it, or it is closed: then it is closed by the gate. It may be called again.
func (c *Conn) Admit() bool {
	if c.known.Load() {
		return true
	}
	c.gate.mu.Lock()
	if c.state != waits {
		admitted := c.state == speaks
		c.gate.mu.Unlock()
		return admitted
	}
	why, full := c.gate.fullLocked(c.host)
	if full {
		c.gate.move(c, closed)
	} else {
		c.gate.move(c, speaks)
		c.known.Store(true)
	}
	c.gate.mu.Unlock()
	if full {
		_ = c.Conn.Close() // It could not be served.
		c.gate.cfg.Closed(c.Conn.RemoteAddr(), why)
	}
	return !full
}

// Rest makes an admitted connection a pending one again, the newest of its host: nothing is asked on it, and it may
// give way.
func (c *Conn) Rest() {
	if c.known.CompareAndSwap(true, false) {
		c.gate.enter(c, waits)
	}
}

// Read reads from the connection. While it is pending the error may be [ErrTooManyBytes].
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 || c.known.Load() || c.gate.take(c, int64(n)) {
		return n, err
	}
	return 0, errors.Join(ErrTooManyBytes, c.Close())
}

// take counts bytes that came on a connection, and closes those that give way. It reports false if the connection is
// one of them.
func (g *Gate) take(c *Conn, n int64) bool {
	g.mu.Lock()
	if c.state != waits {
		g.mu.Unlock()
		return true
	}
	c.came, g.came = c.came+n, g.came+n
	if c.came > g.cfg.Bytes {
		g.move(c, closed)
		g.mu.Unlock()
		g.cfg.Closed(c.Conn.RemoteAddr(), TooManyBytes)
		return false
	}
	var gone []*Conn
	for g.came > g.cfg.AllBytes {
		gone = append(gone, g.heaviest())
		g.move(gone[len(gone)-1], closed)
	}
	g.mu.Unlock()
	for _, heavy := range gone {
		g.evict(heavy)
	}
	return !slices.Contains(gone, c)
}

// heaviest returns the pending connection on which most has come; one is pending.
func (g *Gate) heaviest() (most *Conn) {
	for _, h := range g.hosts {
		for at := h.pending.Front(); at != nil; at = at.Next() {
			if c := at.Value.(*Conn); most == nil || c.came > most.came || c.came == most.came && c.seq < most.seq {
				most = c
			}
		}
	}
	return most
}

// CloseWrite ends the sending on a connection of TCP; on others it does nothing.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close closes the connection and frees its place. It may be called again.
func (c *Conn) Close() error {
	c.gate.mu.Lock()
	if c.state != closed {
		c.gate.move(c, closed)
	}
	c.gate.mu.Unlock()
	return c.Conn.Close()
}

// HostOf returns the IP address of an address, by which a gate counts: "10.0.0.1" of "10.0.0.1:7946". It is the whole
// text where there is no port.
func HostOf(a net.Addr) string {
	text := a.String()
	if name, _, err := net.SplitHostPort(text); err == nil {
		return name
	}
	return text
}
